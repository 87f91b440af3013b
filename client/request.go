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

// CallOption changes one call.
type CallOption func(*call)

// IdempotencyKey sends a POST under a key of the caller's, 1–255 printable ASCII
// characters, made for the one thing to be done. The same call again under the
// same key, within 24 hours, does it no second time.
func IdempotencyKey(key string) CallOption { return func(c *call) { c.key = key } }

// Record keeps the answer as it came, also where it is no success.
func Record(into *Response) CallOption { return func(c *call) { c.record = into } }

// Response is an answer as it came.
type Response struct {
	Status    int // of HTTP
	RequestID string
	Replayed  bool // it is the answer of an earlier request with the same Idempotency-Key
	Tries     int  // how often the request was sent
	// Data is what the envelope holds, with members that this package does not
	// know yet. It is null where the answer is no success.
	Data json.RawMessage
}

// call is one thing asked of the service, however often it is sent.
type call struct {
	method, pattern string
	path            string // with the query, encoded
	body            []byte
	key             string // its Idempotency-Key; empty: none is sent
	record          *Response
}

// maxAnswer bounds what is read of an answer. The largest is that of a grant of
// 1,000 licenses with 16 KiB of metadata each.
const maxAnswer = 64 << 20

// do does what a route says, such as "GET /v1/orders/{order_no}", with the values
// of its variable segments in their order. in becomes the body, unless it is
// nil; the answer's data goes into out.
func (c *Client) do(ctx context.Context, route string, values []string, query url.Values, in, out any, options []CallOption) error {
	asked := call{record: new(Response)}
	asked.method, asked.pattern, _ = strings.Cut(route, " ")
	for _, option := range options {
		option(&asked)
	}
	*asked.record = Response{}
	var err error
	if asked.path, err = fill(asked.pattern, values); err != nil {
		return err
	}
	if len(query) > 0 {
		asked.path += "?" + query.Encode()
	}
	if in != nil {
		if asked.body, err = encode(in); err != nil {
			return asked.failed(err)
		}
	}
	switch {
	case asked.method != http.MethodPost || c.apiKey == "":
		asked.key = "" // nobody looks at it
	case asked.key == "":
		asked.key = c.unique()
	}
	return c.persist(ctx, &asked, out)
}

// encode writes a body without the escapes that HTML would need.
func encode(in any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(in)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// fill puts values in place of a pattern's variable segments.
func fill(pattern string, values []string) (string, error) {
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

// escape encodes a segment of a path. What would be a dot segment is encoded as
// well, so that it stays a name.
func escape(segment string) string {
	if segment == "." || segment == ".." {
		return strings.ReplaceAll(segment, ".", "%2E")
	}
	return url.PathEscape(segment)
}

// failed says which call an error is about. The path itself is left out: it has
// license keys and e-mail addresses in it, which belong in no log.
func (a *call) failed(err error) error {
	return fmt.Errorf("%s %s: %w", a.method, a.pattern, err)
}

// send sends a call once and reads its answer.
func (c *Client) send(ctx context.Context, asked *call) (*answer, error) {
	request, err := http.NewRequestWithContext(ctx, asked.method, c.base+asked.path, bytes.NewReader(asked.body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", c.userAgent)
	request.Header.Set("Accept", "application/json")
	if c.apiKey != "" {
		request.Header.Set("Authorization", "Bearer "+c.apiKey)
	}
	if asked.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if asked.key != "" {
		request.Header.Set("Idempotency-Key", asked.key)
	}
	if c.signer != nil {
		c.signer.sign(request, asked.body, c.now())
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if len(text) > maxAnswer {
		return nil, errAnswerTooLong
	}
	return readAnswer(response, text), nil
}
