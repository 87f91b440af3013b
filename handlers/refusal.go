package handlers

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"licet"
)

// refusal is how the commands of one route are refused while the node is full,
// before anything was made of their requests. In a flood most requests are
// refused, and what that costs, those who are served go without. More than half
// of it would be fasthttp's reading of the request and writing of the answer,
// so a connection leaves that out where a request comes whole and in the
// plainest form. All others go their usual way, and dispatch refuses them.
type refusal struct {
	line   []byte // the request line
	limit  int    // of the body
	method string
	route  string // its pattern
	kind   kind

	// The answer is these three, with the request id between each two.
	begin, between, end []byte
	length              int // of its body
}

// makeRefusals makes the answers once.
func (s *Server) makeRefusals(routes []route) []*refusal {
	// It is as long as all ids that are made, and nowhere else in an answer.
	id := strings.Repeat("?", ulid.EncodedSize)
	var all []*refusal
	for i := range routes {
		r := &routes[i]
		if !r.command {
			continue
		}
		e := &exchange{ctx: &fasthttp.RequestCtx{}, id: id, resource: s.fixed[r.pattern], route: r}
		e.write(s.failure(e, licet.ErrOverloaded))
		parts := bytes.Split(wholeAnswer(&e.ctx.Response), []byte(id))
		all = append(all, &refusal{
			line:    fmt.Appendf(nil, "%s %s HTTP/1.1\r\n", r.method, r.pattern),
			limit:   s.bodyLimits[r.pattern],
			method:  r.method,
			route:   r.pattern,
			kind:    s.errors[licet.ReasonOverloaded],
			begin:   parts[0],
			between: parts[1],
			end:     parts[2],
			length:  len(e.ctx.Response.Body()),
		})
	}
	return all
}

// wholeAnswer is an answer as it is sent, without the date, which a server
// error need not have (RFC 9110, 6.6.1).
func wholeAnswer(r *fasthttp.Response) []byte {
	answer := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n", r.StatusCode(), fasthttp.StatusMessage(r.StatusCode()))
	for name, value := range r.Header.All() {
		answer = fmt.Appendf(answer, "%s: %s\r\n", name, value)
	}
	return fmt.Appendf(answer, "%s: %d\r\n\r\n%s", fasthttp.HeaderContentLength, len(r.Body()), r.Body())
}

// refuse answers a request in the place of its own bytes, if the node is full
// and the request asks for nothing more.
func (s *Server) refuse(request []byte) (answer []byte) {
	// A server that leaves has to close the connection, too.
	if !s.cfg.Node.Full() || s.leaving.Load() {
		return nil
	}
	for _, r := range s.refusals {
		if r.matches(request) && s.cfg.Node.RefuseIfFull() != nil {
			return s.refuseAs(r, request[:0])
		}
	}
	return nil
}

// matches tells whether bytes are one whole request of the refusal's route, and
// nothing in its head makes the answer another one. What is loose about its
// framing is for the usual way to refuse.
func (r *refusal) matches(request []byte) bool {
	rest, found := bytes.CutPrefix(request, r.line)
	if !found {
		return false
	}
	head, body, found := bytes.Cut(rest, []byte("\r\n\r\n"))
	if !found {
		return false
	}
	head = rest[:len(head)+len("\r\n")]
	length, chunked, err := checkFraming(head, true)
	if err != nil || chunked || length != len(body) || length > r.limit {
		return false
	}
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		for _, special := range [...]string{headerRequestID, fasthttp.HeaderConnection, fasthttp.HeaderExpect} {
			if len(name) == len(special) && strings.EqualFold(string(name), special) {
				return false
			}
		}
	}
	return true
}

// refuseAs writes a refusal, counts it and logs it, as finish does for others.
func (s *Server) refuseAs(r *refusal, to []byte) []byte {
	began := time.Now()
	var id [ulid.EncodedSize]byte
	_ = makeRequestID(began).MarshalTextTo(id[:]) // it has the size
	to = append(append(to, r.begin...), id[:]...)
	to = append(append(to, r.between...), id[:]...)
	to = append(to, r.end...)
	took := time.Since(began)
	s.times.Observe(r.method, r.route, r.kind.status, took)
	if s.cfg.Log.GetLevel() <= zerolog.InfoLevel {
		s.log(zerolog.InfoLevel, requestLine{
			id:     string(id[:]),
			method: r.method,
			route:  r.route,
			status: r.kind.status,
			code:   r.kind.code(),
			bytes:  r.length,
			took:   took,
		})
	}
	return to
}
