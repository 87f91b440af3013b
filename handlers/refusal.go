package handlers

import (
	"net"
	"net/netip"
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
// or has no place left for the license's owner. In a flood the node refuses most requests, so an
// early refusal leaves more processor time for the other requests. A request that is not in the
// plainest form reaches dispatch, which refuses it too.
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
	license *requestType // of namedLicense
}

// newRefusals returns a refusal for each route of commands.
func newRefusals(s *Server, routes []route) *refusals {
	// No other part of a response has question marks.
	id := strings.Repeat("?", ulid.EncodedSize)
	all := &refusals{server: s, license: compile(reflect.TypeFor[namedLicense]())}
	for i := range routes {
		r := &routes[i]
		if !r.command {
			continue
		}
		sample := &request{call: call{fast: &fasthttp.RequestCtx{}, id: id}, resource: s.table.fixed[r.pattern],
			route: r}
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
	if !full && !node.HalfFull() || f.server.stopping.Load() {
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

// refuseIfShared reports whether the node has no place left for the owner of the license that body
// names, and counts the refusal.
func (f *refusals) refuseIfShared(body []byte) bool {
	var in namedLicense
	if decodeObject(body, false, f.license, &in) != nil {
		return false
	}
	c := checks{server: f.server}
	in.check(&c)
	if c.err() != nil {
		return false
	}
	key := f.server.cfg.Node.RecallKey(in.key)
	if in.external != "" {
		key, _ = f.server.cfg.Node.RecallExternal(in.owner(), in.external)
	}
	return f.server.cfg.Node.RefuseIfShared(key) != nil
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

// A server logs at most maxRefusalLogs refused connections in refusalLogPeriod: any client can cause
// them.
const (
	maxRefusalLogs   = 5
	refusalLogPeriod = time.Minute
)

// Serve serves the connections of a listener. It returns nil after [Server.Shutdown], also if that was called before.
func (s *Server) Serve(inner net.Listener) error {
	l := s.newListener(inner)
	s.cfg.Metrics.BodyBytes.AddSource(func() float64 { return float64(l.BodyBytes()) })
	s.listener.Store(l)
	if s.stopping.Load() { // Shutdown may have found no listener to close
		_ = l.Close()
	}
	return s.fast.Serve(l)
}

func (s *Server) newListener(inner net.Listener) *connection.Listener {
	return connection.NewListener(inner, connection.Config{
		MaxConnections: s.cfg.MaxConnections,
		Overloaded:     s.overloaded(),
		Network:        s.cfg.Proxies.Peer,
		Refused:        s.connectionRefusals(),
		Evicted:        s.cfg.Metrics.IdleConnectionsClosed,
		MaxBodies:      s.cfg.MaxBodies,
		MaxBody:        callbackBodyLimit,
		MaxChunked:     bodyLimit,
		BodyRefused:    s.cfg.Metrics.CommandsShed.WithLabelValues("bodies"),
		Guard:          s.guard,
		Refuse: func(request []byte) (response []byte) {
			s.guard.Do("refusal", func() { response = s.refusals.refuse(request) })
			return response // nil after a panic: fasthttp then reads the request
		},
		IdleTimeout:  s.cfg.IdleTimeout,
		WriteTimeout: s.cfg.WriteTimeout,
		MaxAge:       s.cfg.MaxConnectionAge,
	})
}

// connectionRefusals returns the function that counts and logs refused connections.
func (s *Server) connectionRefusals() func(network netip.Addr, full bool) {
	log := s.cfg.Log.Sample(&zerolog.BurstSampler{Burst: maxRefusalLogs, Period: refusalLogPeriod})
	ofNode := s.cfg.Metrics.CommandsShed.WithLabelValues("connection")
	ofAddress := s.cfg.Metrics.CommandsShed.WithLabelValues("connection_address")
	return func(network netip.Addr, full bool) {
		if full {
			ofNode.Inc()
			log.Warn().Int("limit", s.cfg.MaxConnections).
				Msg("refused a connection: the node has its maximum of open connections")
			return
		}
		ofAddress.Inc()
		log.Warn().Str("address", network.String()).Int("limit", s.cfg.MaxConnections).
			Msg("refused a connection: this address has as many connections as are still free. " +
				"If this is the address of a load balancer or an ingress, name it in --trusted-proxies")
	}
}
