package connection

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// Refusal answers the requests of one route with a prepared response, in which only the request id
// differs. Of the cost of a refusal, fasthttp's reading of the request and writing of the response are
// more than half. A connection saves both if the request arrives whole and in the plainest form.
type Refusal struct {
	requestLine []byte
	bodyLimit   int
	idHeader    string // names the request id, in the request and in the response

	// The response consists of four parts: begin, id, between, length of the body, body, id, end.
	begin, between, body, end []byte
	bodyLength                int // without the id
}

// RefusalConfig configures a [Refusal]. Every field is required.
type RefusalConfig struct {
	Method    string
	Path      string // without variables and without a query
	BodyLimit int    // in bytes
	IDHeader  string // the header of the request id
	// Response is the response to a request whose id is Placeholder.
	Response *fasthttp.Response
	// Placeholder occurs in Response once in the head and once in the body.
	Placeholder string
}

// NewRefusal returns a refusal, with its response prepared.
func NewRefusal(cfg RefusalConfig) *Refusal {
	id := []byte(cfg.Placeholder)
	length := []byte(fasthttp.HeaderContentLength + ": ")
	parts := bytes.Split(responseBytes(cfg.Response), id)
	at := bytes.Index(parts[1], length) + len(length)
	end := at + bytes.IndexByte(parts[1][at:], '\r')
	return &Refusal{
		requestLine: fmt.Appendf(nil, "%s %s HTTP/1.1\r\n", cfg.Method, cfg.Path),
		bodyLimit:   cfg.BodyLimit,
		idHeader:    cfg.IDHeader,
		begin:       parts[0],
		between:     parts[1][:at],
		body:        parts[1][end:],
		end:         parts[2],
		bodyLength:  len(cfg.Response.Body()) - len(id),
	}
}

// responseBytes returns a response as sent, without the date: a server error may omit the date
// (RFC 9110, section 6.6.1).
func responseBytes(r *fasthttp.Response) []byte {
	sent := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n", r.StatusCode(), fasthttp.StatusMessage(r.StatusCode()))
	for name, value := range r.Header.All() {
		sent = fmt.Appendf(sent, "%s: %s\r\n", name, value)
	}
	return fmt.Appendf(sent, "%s: %d\r\n\r\n%s", fasthttp.HeaderContentLength, len(r.Body()), r.Body())
}

// Match reports whether the bytes are exactly one request of the route, and no header of the request
// changes the response. It returns the request's body and the id that the client gave the request, or
// nil without such an id; both are parts of request. Match reports false for ambiguous framing, which
// has an error of its own.
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
			// handlers decides which of several ids counts, and what an empty id means.
			value = bytes.Trim(value, " \t")
			if id != nil || len(value) == 0 {
				return nil, nil, false
			}
			id = value
		case len(name) == len(fasthttp.HeaderExpect) && strings.EqualFold(string(name), fasthttp.HeaderExpect):
			return nil, nil, false
		case len(name) == len(fasthttp.HeaderConnection) && strings.EqualFold(string(name), fasthttp.HeaderConnection):
			// A refusal keeps the connection in any case.
			if !bytes.EqualFold(bytes.Trim(value, " \t"), []byte("keep-alive")) {
				return nil, nil, false
			}
		}
	}
	return id, body, true
}

// Append appends the response to a request with the given id. The spare capacity of to must not
// overlap with id. Append also returns the length of the response's body.
func (r *Refusal) Append(to, id []byte) (response []byte, bodyLength int) {
	bodyLength = r.bodyLength + len(id)
	to = append(append(to, r.begin...), id...)
	to = strconv.AppendInt(append(to, r.between...), int64(bodyLength), 10)
	to = append(append(to, r.body...), id...)
	return append(to, r.end...), bodyLength
}
