package connection

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// Refusal answers the requests of one route with one prepared response, in which
// only the request id differs. Reading a request and writing its response are
// more than half of what a refusal costs fasthttp, so a connection skips both
// for a request that arrives whole and in the plainest form.
type Refusal struct {
	requestLine []byte
	bodyLimit   int
	idHeader    string // names the request id, in the request and in the response

	// The response is these four parts. The request id stands between the first
	// two and between the last two, and the length of the body between the second
	// and the third.
	begin, between, body, end []byte
	bodyLength                int // without the id
}

// RefusalConfig is what a refusal is made of. Every field is needed.
type RefusalConfig struct {
	Method    string
	Path      string // without variables and without a query
	BodyLimit int    // in bytes
	IDHeader  string // the header of the request id
	// Response is the answer to a request whose id is Placeholder.
	Response *fasthttp.Response
	// Placeholder appears in Response as the request id, once in the head and
	// once in the body, and nowhere else.
	Placeholder string
}

// NewRefusal prepares the response.
func NewRefusal(cfg RefusalConfig) *Refusal {
	id := []byte(cfg.Placeholder)
	length := []byte(fasthttp.HeaderContentLength + ": ")
	parts := bytes.Split(responseBytes(cfg.Response), id)
	at := bytes.Index(parts[1], length) + len(length)
	behind := at + bytes.IndexByte(parts[1][at:], '\r')
	return &Refusal{
		requestLine: fmt.Appendf(nil, "%s %s HTTP/1.1\r\n", cfg.Method, cfg.Path),
		bodyLimit:   cfg.BodyLimit,
		idHeader:    cfg.IDHeader,
		begin:       parts[0],
		between:     parts[1][:at],
		body:        parts[1][behind:],
		end:         parts[2],
		bodyLength:  len(cfg.Response.Body()) - len(id),
	}
}

// responseBytes returns a response as it is sent, without the date, which a
// server error need not have (RFC 9110, 6.6.1).
func responseBytes(r *fasthttp.Response) []byte {
	sent := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n", r.StatusCode(), fasthttp.StatusMessage(r.StatusCode()))
	for name, value := range r.Header.All() {
		sent = fmt.Appendf(sent, "%s: %s\r\n", name, value)
	}
	return fmt.Appendf(sent, "%s: %d\r\n\r\n%s", fasthttp.HeaderContentLength, len(r.Body()), r.Body())
}

// Match reports whether bytes are one whole request of the route whose head
// asks for nothing that would change the response. It returns the request's own
// id, nil if the request has none, and its body; both are parts of request.
// Match reports false for ambiguous framing: the usual way refuses that with an
// error of its own.
func (r *Refusal) Match(request []byte) (id, body []byte, matches bool) {
	rest, found := bytes.CutPrefix(request, r.requestLine)
	if !found {
		return nil, nil, false
	}
	head, body, found := bytes.Cut(rest, []byte("\r\n\r\n"))
	if !found {
		return nil, nil, false
	}
	head = rest[:len(head)+len("\r\n")]
	length, chunked, err := checkFraming(head, true)
	if err != nil || chunked || length != len(body) || length > r.bodyLimit {
		return nil, nil, false
	}
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(name) == len(r.idHeader) && strings.EqualFold(string(name), r.idHeader):
			// The usual way decides which of several ids counts, and what an empty one means.
			value = bytes.Trim(value, " \t")
			if id != nil || len(value) == 0 {
				return nil, nil, false
			}
			id = value
		case len(name) == len(fasthttp.HeaderExpect) && strings.EqualFold(string(name), fasthttp.HeaderExpect):
			return nil, nil, false
		case len(name) == len(fasthttp.HeaderConnection) && strings.EqualFold(string(name), fasthttp.HeaderConnection):
			// Keeping the connection is what happens anyway.
			if !strings.EqualFold(string(bytes.Trim(value, " \t")), "keep-alive") {
				return nil, nil, false
			}
		}
	}
	return id, body, true
}

// Append appends the response to a request with an id to a buffer, which must
// not overlap with id. It also returns the length of the response's body.
func (r *Refusal) Append(to, id []byte) (response []byte, bodyLength int) {
	bodyLength = r.bodyLength + len(id)
	to = append(append(to, r.begin...), id...)
	to = strconv.AppendInt(append(to, r.between...), int64(bodyLength), 10)
	to = append(append(to, r.body...), id...)
	return append(to, r.end...), bodyLength
}
