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

// exchange is one request with its answer, as the adapter sees it. Exchanges
// are used again: nothing may hold on to one, or to its request, once it was
// answered.
type exchange struct {
	ctx     *fasthttp.RequestCtx
	id      string
	method  string // as a label
	started time.Time
	span    *tracing.Span // nil: it is not traced

	resource *resource // nil: the path names none, or was never looked at
	route    *route    // nil: no such method
	request  *request  // nil: nobody knows yet whose it is
	made     request   // what request points to
	page     bool      // answers a person
	refused  bool      // the connection is of no more use after this
}

// request is what a handler sees of an exchange. What its methods answer is
// copied out of fasthttp's buffers, except where they say otherwise.
type request struct {
	ctx    context.Context // with the request's own deadline
	id     string
	caller *licensing.APIKey // nil: an end user
	path   string            // undecoded
	query  string            // undecoded; see queryValue
	values map[string]string // of the path's variables, decoded
	strict bool              // unknown members of the body are refused
	fast   *fasthttp.RequestCtx
	checks checks

	once     *node.Once // what a good Idempotency-Key boils down to; nil: none was read
	replayed bool       // the answer is an earlier one's
	created  bool       // a success made something, though not all of the route's do
	bound    bool       // a device that was not bound is now
	// decisions are those of the limits that count this request.
	decisions []limits.Decision
	// idempotent: what was asked for is, though not all that the route may be
	// asked for.
	idempotent bool
}

func (r *request) header(name string) string { return string(r.fast.Request.Header.Peek(name)) }

// body is borrowed: it is gone when the handler has answered.
func (r *request) body() []byte { return r.fast.Request.Body() }

// owner returns the owner that the caller's API key acts for. The zero owner of an end user
// matches every license.
func (r *request) owner() licensing.Owner { return ownerOf(r.caller) }

func ownerOf(caller *licensing.APIKey) licensing.Owner {
	if caller == nil {
		return licensing.Owner{}
	}
	return caller.Owner
}

// actor returns the name that events give to the caller.
func (r *request) actor() licensing.Actor {
	if r.caller == nil {
		return licensing.EndUser
	}
	return licensing.Actor(r.caller.ID)
}

// watcher returns the function that watches the request's connection while its handler waits, or nil
// if no listener of package connection accepted the connection.
func (r *request) watcher() func() (gone <-chan struct{}, stop func()) {
	if c := connection.Of(r.fast); c != nil {
		return c.Watch
	}
	return nil
}

// serve serves a request. It is the handler of fasthttp.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	s.orFail(ctx, func() {
		e := s.begin(ctx)
		s.finish(e, s.attempt(e))
		*e = exchange{}
		s.exchanges.Put(e)
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
		e := s.begin(ctx)
		e.method = otherMethod
		e.refused = true
		s.finish(e, s.failure(e, connection.ReadError(c, cause)))
	})
}

func (s *Server) begin(ctx *fasthttp.RequestCtx) *exchange {
	s.cfg.Metrics.HTTPInFlight.Inc()
	now := time.Now()
	e := s.exchanges.Get().(*exchange)
	*e = exchange{
		ctx:     ctx,
		id:      s.requestID(ctx.Request.Header.Peek(headerRequestID), now),
		method:  methodLabel(ctx.Request.Header.Method()),
		started: now,
	}
	return e
}

// attempt works an answer out, and turns a panic on the way into one.
func (s *Server) attempt(e *exchange) (answer document) {
	returned := s.guard.Catch(
		func() { answer = s.work(e) },
		func() *zerolog.Event { return s.errorOf(e) },
	)
	if !returned {
		e.ctx.Response.Reset()
		answer = s.failure(e, licensing.ErrInternal)
	}
	return answer
}

func (s *Server) work(e *exchange) document {
	value, err := s.dispatch(e)
	if err != nil {
		return s.failure(e, s.limitFailures(e, err))
	}
	if ready, ok := value.(document); ok {
		return ready
	}
	answer, err := success(e, value)
	if err != nil {
		return s.failure(e, err)
	}
	return answer
}

// dispatch takes a request through the checks that all routes share. Their
// order is part of the contract: it says which error wins.
func (s *Server) dispatch(e *exchange) (any, error) {
	head := &e.ctx.Request.Header
	path, query := s.target(e, head.RequestURI())
	e.page = pageWanted(e.resource, path)
	s.beginTrace(e)

	chunked, err := connection.CheckHead(head, s.bodyLimit(head))
	if err == nil && chunked {
		if c := connection.Of(e.ctx); c == nil || !c.TakeChunkedBody() {
			err = connection.ErrAmbiguousFraming
		}
	}
	if err != nil {
		e.refused = true
		return nil, err
	}
	values, ok := e.pathValues()
	if e.resource == nil || !ok {
		e.resource = nil
		return nil, errNotFound
	}
	e.route = e.resource.routes[string(head.Method())]
	if e.route == nil {
		if e.resource.open && head.IsOptions() {
			return preflight(e.resource.allow), nil
		}
		return nil, errMethodNotAllowed
	}
	if e.route.scrape != nil {
		e.route.scrape(e.ctx)
		return document{status: e.ctx.Response.StatusCode(), written: true}, nil
	}

	if e.route.command {
		// Before all that costs something; see refusal.
		if err := s.cfg.Node.RefuseIfFull(); err != nil {
			return nil, err
		}
	}
	// fasthttp's own context never ends but at shutdown.
	ctx := tracing.NewContext(s.deadlines.Context(e.started), e.span)
	caller, err := s.authenticate(ctx, head, e.route.access)
	if err != nil {
		return nil, err
	}
	e.made = request{
		ctx:    ctx,
		id:     e.id,
		caller: caller,
		path:   path,
		query:  query,
		values: values,
		strict: e.route.access == RequiredAuth,
		fast:   e.ctx,
	}
	e.request = &e.made
	if e.route.access != NoAuth {
		if err := s.checkSignature(e.ctx, path, caller); err != nil {
			return nil, err
		}
	}
	if e.route.access == RequiredAuth {
		for scope := range e.route.scopes() {
			if !caller.Allows(scope) {
				return nil, forbidden(scope)
			}
		}
	}
	if err := s.limitAPIKey(e.request); err != nil {
		return nil, err
	}
	if err := checkMediaType(e.route.body, head, len(e.ctx.Request.Body()) > 0); err != nil {
		return nil, err
	}
	return e.route.endpoint.run(s, e.request)
}

// target finds the resource that a request target names, if any.
func (s *Server) target(e *exchange, target []byte) (path, query string) {
	if res := s.fixed[string(target)]; res != nil {
		e.resource = res
		return res.pattern, ""
	}
	path, query, named := splitTarget(string(target))
	if named {
		e.resource = s.match(e.ctx, path)
	}
	return path, query
}

// pathValues decodes the variable segments that the router left in ctx. A
// segment that can't be decoded names nothing.
func (e *exchange) pathValues() (map[string]string, bool) {
	if e.resource != nil && e.resource.fixed {
		return nil, true
	}
	return decodeSegments(e.ctx)
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
