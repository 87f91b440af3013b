package handlers

import (
	"reflect"
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

// refusals refuses requests before fasthttp reads them. It never changes.
type refusals struct {
	server  *Server
	routes  []*routeRefusal
	license *requestType // of licenseMember
}

// newRefusals returns a refusal for each route of commands.
func newRefusals(s *Server, routes []route) *refusals {
	// No other part of a response has question marks.
	id := strings.Repeat("?", ulid.EncodedSize)
	all := &refusals{server: s, license: compile(reflect.TypeFor[licenseMember]())}
	for i := range routes {
		r := &routes[i]
		if !r.command {
			continue
		}
		sample := &request{call: call{fast: &fasthttp.RequestCtx{}}, id: id, resource: s.table.fixed[r.pattern], route: r}
		sample.write(s.failure(sample, licensing.ErrOverloaded))
		all.routes = append(all.routes, &routeRefusal{
			Refusal: connection.NewRefusal(connection.RefusalConfig{
				Method:      r.method,
				Path:        r.pattern,
				BodyLimit:   s.table.bodyLimits[r.pattern],
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
func (f *refusals) refuse(request []byte) (response []byte) {
	// A server that shuts down must close the connection too.
	node := f.server.cfg.Node
	full := node.Full()
	if !full && !node.Crowded() || f.server.stopping.Load() {
		return nil
	}
	for _, r := range f.routes {
		given, body, matches := r.Match(request)
		switch {
		case !matches, given != nil && !validRequestID(given):
		case full && node.RefuseIfFull() != nil, !full && f.refuseIfShared(body):
			return f.refuseAs(r, given, request[:0])
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
func (f *refusals) refuseIfShared(body []byte) bool {
	var in licenseMember
	if decodeObject(body, false, f.license, &in) != nil {
		return false
	}
	c := checks{server: f.server}
	key := c.licenseKey("license_key", in.LicenseKey)
	return c.err() == nil && f.server.cfg.Node.RefuseIfShared(key) != nil
}

// refuseAs writes, counts and logs a refusal, as finish does for other responses. given, the id that
// the client gave the request, may overlap with to.
func (f *refusals) refuseAs(r *routeRefusal, given, to []byte) []byte {
	s := f.server
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
		s.accessLog.write(zerolog.InfoLevel, requestLine{
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
