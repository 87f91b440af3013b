package handlers

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"licet/licensing"
)

// refusal is how the commands of one route are refused while the node is full, or
// has no place left for the license's owner, before anything was made of their requests. In a flood most requests are
// refused, and what that costs, those who are served go without. More than half
// of it would be fasthttp's reading of the request and writing of the answer,
// so a connection leaves that out where a request comes whole and in the
// plainest form. All others go their usual way, and dispatch refuses them.
type refusal struct {
	line   []byte // the request line
	limit  int    // of the body
	method string
	route  string // its pattern
	// activates: the route does.
	activates bool
	kind      kind

	// The answer is these four: the request id comes between the first two and
	// the last two, and the length of the body between the second and the third.
	begin, between, body, end []byte
	length                    int // of the body but for the id
}

// makeRefusals makes the answers once.
func (s *Server) makeRefusals(routes []route) []*refusal {
	// It is nowhere else in an answer.
	id := strings.Repeat("?", ulid.EncodedSize)
	length := []byte(fasthttp.HeaderContentLength + ": ")
	var all []*refusal
	for i := range routes {
		r := &routes[i]
		if !r.command {
			continue
		}
		e := &exchange{ctx: &fasthttp.RequestCtx{}, id: id, resource: s.fixed[r.pattern], route: r}
		e.write(s.failure(e, licensing.ErrOverloaded))
		parts := bytes.Split(wholeAnswer(&e.ctx.Response), []byte(id))
		at := bytes.Index(parts[1], length) + len(length)
		behind := at + bytes.IndexByte(parts[1][at:], '\r')
		all = append(all, &refusal{
			line:      fmt.Appendf(nil, "%s %s HTTP/1.1\r\n", r.method, r.pattern),
			limit:     s.bodyLimits[r.pattern],
			method:    r.method,
			route:     r.pattern,
			activates: r.activates,
			kind:      s.errors[licensing.ReasonOverloaded],
			begin:     parts[0],
			between:   parts[1][:at],
			body:      parts[1][behind:],
			end:       parts[2],
			length:    len(e.ctx.Response.Body()) - len(id),
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

// refuse answers a request in the place of its own bytes, if the node is full, or
// the owner of the license has no place left, and the request asks for nothing more.
func (s *Server) refuse(request []byte) (answer []byte) {
	// A server that leaves has to close the connection, too.
	full := s.cfg.Node.Full()
	if !full && !s.cfg.Node.Crowded() || s.leaving.Load() {
		return nil
	}
	for _, r := range s.refusals {
		given, body, matches := r.matches(request)
		switch {
		case !matches:
		case full && s.cfg.Node.RefuseIfFull() != nil, !full && s.refuseIfShared(body):
			return s.refuseAs(r, given, request[:0])
		}
	}
	return nil
}

// refuseIfShared reports whether the owner of the license that a body names has no
// place left, and counts that as a refusal.
func (s *Server) refuseIfShared(body []byte) bool {
	var named text
	if decodeObject(body, false, textMember("license_key", &named)) != nil {
		return false
	}
	var bad problems
	key, err := s.licenseKey(named, &bad)
	return err == nil && bad.err() == nil && s.cfg.Node.RefuseIfShared(key) != nil
}

// matches tells whether bytes are one whole request of the refusal's route, and
// nothing in its head makes the answer another one; given is the id that the
// caller gave to it. What is loose about its framing is for the usual way to
// refuse.
func (r *refusal) matches(request []byte) (given, body []byte, matches bool) {
	rest, found := bytes.CutPrefix(request, r.line)
	if !found {
		return nil, nil, false
	}
	head, body, found := bytes.Cut(rest, []byte("\r\n\r\n"))
	if !found {
		return nil, nil, false
	}
	head = rest[:len(head)+len("\r\n")]
	length, chunked, err := checkFraming(head, true)
	if err != nil || chunked || length != len(body) || length > r.limit {
		return nil, nil, false
	}
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch len(name) {
		case len(headerRequestID):
			if !strings.EqualFold(string(name), headerRequestID) {
				continue
			}
			// Which of several counts is for the usual way to say.
			if given != nil {
				return nil, nil, false
			}
			if given = bytes.Trim(value, " \t"); !validRequestID(given) {
				return nil, nil, false
			}
		case len(fasthttp.HeaderConnection), len(fasthttp.HeaderExpect):
			if strings.EqualFold(string(name), fasthttp.HeaderExpect) {
				return nil, nil, false
			}
			// Keeping a connection is what is done unasked.
			if strings.EqualFold(string(name), fasthttp.HeaderConnection) && !strings.EqualFold(string(bytes.Trim(value, " \t")), "keep-alive") {
				return nil, nil, false
			}
		}
	}
	return given, body, true
}

// refuseAs writes a refusal, counts it and logs it, as finish does for others.
// The id that was given to the request may lie where the answer is written.
func (s *Server) refuseAs(r *refusal, given, to []byte) []byte {
	began := time.Now()
	var buffer [maxRequestID]byte
	id := append(buffer[:0], given...)
	if given == nil || s.secret(string(given)) {
		id = buffer[:ulid.EncodedSize]
		_ = makeRequestID(began).MarshalTextTo(id) // it has the size
	}
	to = append(append(to, r.begin...), id...)
	to = strconv.AppendInt(append(to, r.between...), int64(r.length+len(id)), 10)
	to = append(append(to, r.body...), id...)
	to = append(to, r.end...)
	took := time.Since(began)
	s.times.Observe(r.method, r.route, r.kind.status, r.kind.code(), took, "")
	if r.activates {
		s.activations.count(r.kind.code(), false)
	}
	if s.cfg.Log.GetLevel() <= zerolog.InfoLevel {
		s.log(zerolog.InfoLevel, requestLine{
			id:     string(id),
			method: r.method,
			route:  r.route,
			status: r.kind.status,
			code:   r.kind.code(),
			bytes:  r.length + len(id),
			took:   took,
		})
	}
	return to
}
