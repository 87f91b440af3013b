package handlers

import (
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"licet/handlers/connection"
	"licet/licensing"
)

// routeRefusal refuses the requests of one route before fasthttp reads them, while the node is full
// or has no place left for the license's owner. In a flood the node refuses most requests, and
// whatever that costs, the other requests lack. A request that is not in the plainest form reaches
// dispatch, which refuses it too.
type routeRefusal struct {
	*connection.Refusal
	method    string
	pattern   string
	activates bool // see route
	kind      kind
}

// makeRefusals returns a refusal for each route of commands.
func (s *Server) makeRefusals(routes []route) []*routeRefusal {
	// No other part of a response has question marks.
	id := strings.Repeat("?", ulid.EncodedSize)
	var all []*routeRefusal
	for i := range routes {
		r := &routes[i]
		if !r.command {
			continue
		}
		sample := &request{fast: &fasthttp.RequestCtx{}, id: id, resource: s.fixed[r.pattern], route: r}
		sample.write(s.failure(sample, licensing.ErrOverloaded))
		all = append(all, &routeRefusal{
			Refusal: connection.NewRefusal(connection.RefusalConfig{
				Method:      r.method,
				Path:        r.pattern,
				BodyLimit:   s.bodyLimits[r.pattern],
				IDHeader:    headerRequestID,
				Response:    &sample.fast.Response,
				Placeholder: id,
			}),
			method:    r.method,
			pattern:   r.pattern,
			activates: r.is(activates),
			kind:      s.errors[licensing.ReasonOverloaded],
		})
	}
	return all
}

// refuse writes the refusal of a request over the request's own bytes, if the node is full or has no
// place left for the license's owner. refuse returns nil if fasthttp must read the request.
func (s *Server) refuse(request []byte) (response []byte) {
	// A server that shuts down must close the connection too.
	full := s.cfg.Node.Full()
	if !full && !s.cfg.Node.Crowded() || s.stopping.Load() {
		return nil
	}
	for _, r := range s.refusals {
		given, body, matches := r.Match(request)
		switch {
		case !matches, given != nil && !validRequestID(given):
		case full && s.cfg.Node.RefuseIfFull() != nil, !full && s.refuseIfShared(body):
			return s.refuseAs(r, given, request[:0])
		}
	}
	return nil
}

// licenseMember is the member that all commands have.
type licenseMember struct {
	LicenseKey text `json:"license_key"`
}

// refuseIfShared reports whether the node has no place left for the owner of the license that body
// names, and counts the refusal.
func (s *Server) refuseIfShared(body []byte) bool {
	var in licenseMember
	if decodeObject(body, false, s.licenseOnly, &in) != nil {
		return false
	}
	c := checks{server: s}
	key := c.licenseKey("license_key", in.LicenseKey)
	return c.err() == nil && s.cfg.Node.RefuseIfShared(key) != nil
}

// refuseAs writes, counts and logs a refusal, as finish does for other responses. given, the id that
// the client gave the request, may overlap with to.
func (s *Server) refuseAs(r *routeRefusal, given, to []byte) []byte {
	began := time.Now()
	var buffer [maxRequestID]byte
	id := append(buffer[:0], given...)
	if given == nil || s.secret(string(given)) {
		id = buffer[:ulid.EncodedSize]
		_ = makeRequestID(began).MarshalTextTo(id) // the buffer has the size
	}
	response, length := r.Append(to, id)
	took := time.Since(began)
	s.times.Observe(r.method, r.pattern, r.kind.status, r.kind.code(), took, "")
	if r.activates {
		s.activations.count(r.kind.code(), false)
	}
	if s.cfg.Log.GetLevel() <= zerolog.InfoLevel {
		s.log(zerolog.InfoLevel, requestLine{
			id:     string(id),
			method: r.method,
			route:  r.pattern,
			status: r.kind.status,
			code:   r.kind.code(),
			bytes:  length,
			took:   took,
		})
	}
	return response
}
