package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// CallOption configures a call.
type CallOption func(*call)

// IdempotencyKey sends a POST with the given Idempotency-Key: 1–255 printable ASCII characters, unique to the
// operation. If the same call with the same key is sent again within 24 hours, the service does not execute it
// again.
func IdempotencyKey(key string) CallOption { return func(c *call) { c.key = key } }

// Record stores the response in into, also the response of a refused request.
func Record(into *Response) CallOption { return func(c *call) { c.record = into } }

// Response is a response of the service.
type Response struct {
	Status    int // of HTTP
	RequestID string
	Replayed  bool // the response repeats that of an earlier request with the same Idempotency-Key
	Tries     int  // the number of times the client has sent the request
	// Data is the data of the envelope, including members that this package does not know. It is null if
	// the request was refused.
	Data json.RawMessage
}

// call is a request to the service. The client may send a call several times.
type call struct {
	method, pattern string
	path            string // with the query, encoded
	body            []byte
	key             string // the Idempotency-Key; empty: none
	etag            string // for If-None-Match; empty: none
	record          *Response
}

// maxResponse bounds the body of a response in bytes. The largest response is that to a grant of 1,000 licenses
// with 16 KiB of metadata each.
const maxResponse = 64 << 20

// do calls a route such as "GET /v1/orders/{order_no}". values are the values of the route's variable segments, in
// order. in becomes the body, unless in is nil. do decodes the data of the response into out.
func (c *Client) do(
	ctx context.Context, route string, values []string, query url.Values, in, out any, options []CallOption,
) error {
	sent, err := newCall(route, values, query)
	if err != nil {
		return err
	}
	for _, option := range options {
		option(sent)
	}
	*sent.record = Response{}
	if in != nil {
		if sent.body, err = encode(in); err != nil {
			return sent.failed(err)
		}
	}
	switch {
	case sent.method != http.MethodPost || c.apiKey == "":
		sent.key = "" // the service ignores it
	case sent.key == "":
		sent.key = c.newKey()
	}
	return c.sendWithRetries(ctx, sent, func() error { return c.attempt(ctx, sent, out) })
}

// newCall returns a call of a route with the values of its variable segments.
func newCall(route string, values []string, query url.Values) (*call, error) {
	sent := &call{record: new(Response)}
	sent.method, sent.pattern, _ = strings.Cut(route, " ")
	var err error
	if sent.path, err = expandPath(sent.pattern, values); err != nil {
		return nil, err
	}
	if len(query) > 0 {
		sent.path += "?" + query.Encode()
	}
	return sent, nil
}

// encode returns a body as JSON, without the escapes for HTML.
func encode(in any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(in)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// expandPath replaces the variable segments of a pattern by values.
func expandPath(pattern string, values []string) (string, error) {
	segments := strings.Split(pattern, "/")
	for i, segment := range segments {
		if !strings.HasPrefix(segment, "{") {
			continue
		}
		if values[0] == "" {
			return "", fmt.Errorf("client: the %s is empty", strings.ReplaceAll(strings.Trim(segment, "{}"), "_", " "))
		}
		segments[i] = escape(values[0])
		values = values[1:]
	}
	return strings.Join(segments, "/"), nil
}

// escape encodes a segment of a path. It also encodes "." and "..", which servers would resolve.
func escape(segment string) string {
	if segment == "." || segment == ".." {
		return strings.ReplaceAll(segment, ".", "%2E")
	}
	return url.PathEscape(segment)
}

// failed adds the route of a call to an error. It leaves out the path, which may contain license keys and e-mail
// addresses: those belong in no log.
func (c *call) failed(err error) error {
	return fmt.Errorf("%s %s: %w", c.method, c.pattern, err)
}

// send sends a call once and reads the response.
func (c *Client) send(ctx context.Context, sent *call) (*result, error) {
	response, text, err := c.roundTrip(ctx, sent)
	if err != nil {
		return nil, err
	}
	return readResponse(response, text), nil
}

// roundTrip sends a call once, and returns the response with its body.
func (c *Client) roundTrip(ctx context.Context, sent *call) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, sent.method, c.base+sent.path, bytes.NewReader(sent.body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("User-Agent", c.userAgent)
	request.Header.Set("Accept", "application/json")
	if c.apiKey != "" {
		request.Header.Set("Authorization", "Bearer "+c.apiKey)
	}
	if sent.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if sent.etag != "" {
		request.Header.Set("If-None-Match", sent.etag)
	}
	if sent.key != "" {
		request.Header.Set("Idempotency-Key", sent.key)
	}
	if c.signer != nil {
		c.signer.sign(request, sent.body, c.now())
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, nil, withoutURL(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read the response: %w", err)
	}
	if len(text) > maxResponse {
		return nil, nil, errResponseTooLong
	}
	return response, text, nil
}
