package handlers

import (
	"context"
	"time"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"licet/handlers/connection"
	"licet/handlers/limits"
	"licet/licensing"
	"licet/metrics/tracing"
	"licet/node"
)

// request is a request in progress and its response so far. The server pools requests: nothing may keep a
// request after the response.
type request struct {
	method  string // as a label
	started time.Time
	span    *tracing.Span // nil: not traced

	resource *resource // nil: no pattern matches the path
	route    *route    // nil: the resource lacks the method
	page     bool      // the response is for a person
	refused  bool      // the connection can't be used any longer

	ctx    context.Context   // with the request's own deadline
	path   string            // undecoded
	query  string            // undecoded; see queryValue
	values map[string]string // of the path's variables, decoded
	checks checks
	once   *node.Once // of a valid Idempotency-Key; nil: there is none
	call
}

func (r *request) header(name string) string { return string(r.fast.Request.Header.Peek(name)) }

// body returns the body, which is valid only until the handler returns.
func (r *request) body() []byte { return r.fast.Request.Body() }

// serve serves a request. It is the handler of fasthttp.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	s.orFail(ctx, func() {
		r := s.begin(ctx)
		answer := s.attempt(r)
		s.rates.charge(&r.call)
		s.finish(r, answer)
		s.responses.giveLater(r)
		*r = request{}
		s.requests.Put(r)
	})
}

// orFail runs work on a request. After a panic that nothing else has caught, orFail responds with 500
// and no body, and closes the connection: fasthttp would let the panic end the process.
func (s *Server) orFail(ctx *fasthttp.RequestCtx, work func()) {
	if !s.guard.Do("request", work) {
		ctx.Response.Reset()
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
		ctx.SetConnectionClose()
	}
}

// serveBroken responds to bytes that fasthttp could not read as a request, and closes the connection.
// fasthttp has discarded the head, even if only the body was bad. So the route and the id that the
// client gave the request are unknown.
func (s *Server) serveBroken(ctx *fasthttp.RequestCtx, cause error) {
	c := connection.Of(ctx)
	if c != nil && c.Silent() {
		// A port scan, or the health check of a load balancer. The client has sent nothing, but
		// fasthttp writes a response.
		c.DiscardWrites()
		return
	}
	s.orFail(ctx, func() {
		r := s.begin(ctx)
		r.method = otherMethod
		r.refused = true
		s.finish(r, s.failure(r, connection.ReadError(c, cause)))
	})
}

// begin returns the request in progress for a request of fasthttp.
func (s *Server) begin(ctx *fasthttp.RequestCtx) *request {
	if c := connection.Of(ctx); c != nil {
		c.EndResponse()
	}
	s.cfg.Metrics.HTTPInFlight.Inc()
	now := time.Now()
	r := s.requests.Get().(*request)
	*r = request{
		call:    call{fast: ctx, id: s.requestID(ctx.Request.Header.Peek(headerRequestID), now)},
		method:  methodLabel(ctx.Request.Header.Method()),
		started: now,
	}
	return r
}

// attempt returns the response to a request. It turns a panic into a response.
func (s *Server) attempt(r *request) (answer document) {
	returned := s.guard.Catch(
		func() { answer = s.work(r) },
		func() *zerolog.Event { return s.accessLog.failure(r) },
	)
	if !returned {
		r.fast.Response.Reset()
		answer = s.failure(r, licensing.ErrInternal)
	}
	return answer
}

func (s *Server) work(r *request) document {
	value, err := s.dispatch(r)
	if err != nil {
		return s.failure(r, s.rates.failure(r, err))
	}
	if ready, ok := value.(document); ok {
		return ready
	}
	answer, err := success(r, value)
	if err == nil {
		err = s.responses.charge(r, &answer)
	}
	if err != nil {
		return s.failure(r, err)
	}
	return answer
}

// dispatch runs the checks that all routes share, and then the route's function. The order of the checks is part
// of the contract: the first error wins.
func (s *Server) dispatch(r *request) (any, error) {
	head := &r.fast.Request.Header
	path, query := s.table.find(r, head.RequestURI())
	r.page = pageWanted(r.resource, path)
	s.beginTrace(r)

	chunked, err := connection.CheckHead(head, s.bodyLimit(head))
	if err == nil && chunked {
		if c := connection.Of(r.fast); c == nil || !c.TakeChunkedBody() {
			err = connection.ErrAmbiguousFraming
		}
	}
	if err != nil {
		r.refused = true
		return nil, err
	}
	values, ok := r.pathValues()
	if r.resource == nil || !ok {
		r.resource = nil
		return nil, s.table.noRoute(string(head.Method()), path)
	}
	r.route = r.resource.routes[string(head.Method())]
	if r.route == nil {
		if r.resource.open && head.IsOptions() {
			return preflight(r.resource.allow), nil
		}
		return nil, s.table.noMethod(r.resource, string(head.Method()), path)
	}
	if r.route.scrape != nil {
		r.route.scrape(r.fast)
		return document{status: r.fast.Response.StatusCode(), written: true}, nil
	}

	if !r.route.is(quiet) { // probes are answered in any case
		if err := s.cfg.Node.RefuseByClock(); err != nil {
			return nil, err
		}
	}
	if r.route.command {
		// Before any check that costs something; see routeRefusal.
		if err := s.cfg.Node.RefuseIfFull(); err != nil {
			return nil, err
		}
	}
	if r.route.is(grows) {
		if err := s.cfg.Node.RefuseGrowth(); err != nil {
			return nil, err
		}
	}
	// fasthttp's own context ends only at shutdown.
	ctx := tracing.NewContext(s.deadlines.Context(r.started), r.span)
	caller, err := s.authenticate(ctx, &r.call, r.route.access)
	if err != nil {
		return nil, err
	}
	r.ctx, r.path, r.query, r.values = ctx, path, query, values
	if r.key = caller; caller != nil {
		r.ctx = s.rates.countReads(ctx, caller.Owner)
	}
	if r.route.access != NoAuth {
		if err := s.checkSignature(&r.call, path); err != nil {
			return nil, err
		}
	}
	if r.route.access == RequiredAuth {
		for scope := range r.route.scopes() {
			if !caller.Allows(scope) {
				return nil, forbidden(scope)
			}
		}
	}
	if err := s.rates.account(&r.call); err != nil {
		return nil, err
	}
	if r.route.is(grows) {
		if err := s.cfg.Node.RefuseWrites(caller.Owner); err != nil {
			return nil, err
		}
	}
	if r.route.access == RequiredAuth {
		if err := s.responses.refuseIfOver(r); err != nil {
			return nil, err
		}
	}
	if err := checkMediaType(r.route.body, head, len(r.fast.Request.Body()) > 0); err != nil {
		return nil, err
	}
	return r.route.endpoint.run(s, r)
}

// pathValues returns the variable segments that the router has stored in ctx, decoded. It reports false if a
// segment can't be decoded.
func (r *request) pathValues() (map[string]string, bool) {
	if r.resource != nil && r.resource.fixed {
		return nil, true
	}
	return decodeSegments(r.fast)
}

func decodeSegments(ctx *fasthttp.RequestCtx) (map[string]string, bool) {
	var values map[string]string
	ok := true
	ctx.VisitUserValuesAll(func(key, value any) {
		name, isName := key.(string)
		segment, isText := value.(string)
		if !isName || !isText {
			return
		}
		decoded, decodes := pathValue(segment)
		ok = ok && decodes
		if values == nil {
			values = make(map[string]string, 2)
		}
		values[name] = decoded
	})
	return values, ok
}

// call has the caller of a request. The function of a route gets call with the request type, and sets
// the fields that change the response beside the answer.
type call struct {
	fast *fasthttp.RequestCtx
	id   string
	key  *licensing.APIKey // nil: an end user

	replayed   bool              // the response repeats an earlier one
	created    bool              // the request has created something; see mayCreate
	bound      bool              // the request has bound a device
	repeatable bool              // the request is idempotent, though not every request to the route is
	decisions  []limits.Decision // of the limits that count the request
	response   int64             // bytes of the response that count; see responses
	charged    int               // tokens, besides the first; see rateLimits.charge
}

// owner returns the owner that the caller's API key acts for. The zero owner of an end user
// matches every license.
func (c *call) owner() licensing.Owner { return ownerOf(c.key) }

func ownerOf(key *licensing.APIKey) licensing.Owner {
	if key == nil {
		return licensing.Owner{}
	}
	return key.Owner
}

// actor returns the name that events give to the caller.
func (c *call) actor() licensing.Actor {
	if c.key == nil {
		return licensing.EndUser
	}
	return licensing.Actor(c.key.ID)
}

// target is a license, with who asks for it.
func (c *call) target(key licensing.LicenseKey) licensing.Target {
	return licensing.Target{Key: key, Caller: c.owner(), By: c.actor()}
}

// notifyGone returns the function that notices the end of the client while the route's function waits; nil
// if there is none.
func (c *call) notifyGone() func() (gone <-chan struct{}, stop func()) {
	conn := connection.Of(c.fast)
	if conn == nil {
		return nil // no listener of package connection accepted the connection
	}
	return conn.NotifyGone
}
