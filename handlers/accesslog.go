package handlers

import (
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"licet/licensing"
)

// finish sends an answer on its way, counts it, and writes the request's one
// line in the log. The line holds nothing that a caller sent except the
// request id: paths carry license keys and tokens, so only the route's pattern
// is logged.
func (s *Server) finish(e *exchange, answer document) {
	e.write(answer)
	if s.stopping.Load() {
		e.ctx.SetConnectionClose()
	}
	took := time.Since(e.started)
	pattern := e.routeLabel()
	s.cfg.Metrics.HTTPInFlight.Dec()
	e.endTrace(&answer)
	trace := e.span.TraceID()
	s.times.Observe(e.method, pattern, answer.status, answer.code, took, trace)
	if e.activates() {
		s.activations.count(answer.code, e.made.bound)
	}
	s.log(s.level(e, answer), requestLine{
		id:     e.id,
		method: e.method,
		route:  pattern,
		status: answer.status,
		code:   answer.code,
		bytes:  len(e.ctx.Response.Body()),
		took:   took,
		trace:  trace,
	})
}

// requestLine is what the log says of a request.
type requestLine struct {
	id, method, route   string
	status, code, bytes int
	took                time.Duration
	trace               string // the id of its trace; empty where it is not sampled
}

func (s *Server) log(level zerolog.Level, line requestLine) {
	event := s.cfg.Log.WithLevel(level).
		Str("request_id", line.id)
	if line.trace != "" {
		event = event.Str("trace_id", line.trace)
	}
	event.
		Str("method", line.method).
		Str("route", line.route).
		Int("status", line.status).
		Int("code", line.code).
		Float64("duration_ms", float64(line.took.Microseconds())/1000).
		Int("bytes", line.bytes).
		Msg("request")
}

func (s *Server) level(e *exchange, answer document) zerolog.Level {
	switch {
	case answer.status == fasthttp.StatusInternalServerError:
		return zerolog.ErrorLevel
	case answer.code == s.errors[licensing.ReasonOverloaded].code():
		// They come by the thousand, and must cost little. The node says once
		// that it refuses.
		return zerolog.InfoLevel
	case answer.status > fasthttp.StatusInternalServerError:
		return zerolog.WarnLevel
	case e.route != nil && e.route.is(quiet):
		return zerolog.DebugLevel
	default:
		return zerolog.InfoLevel
	}
}

// routeLabel is the pattern, or a word for what has none: labels are bounded.
func (e *exchange) routeLabel() string {
	if e.resource == nil {
		return "none"
	}
	return e.resource.pattern
}

// activates tells whether a request is one for an activation, whatever was found wrong
// with it.
func (e *exchange) activates() bool {
	r := e.route
	if r == nil && e.resource != nil {
		r = e.resource.routes[e.method]
	}
	return r != nil && r.is(activates)
}

const otherMethod = "other"

var methods = [...]string{"POST", "GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"}

func methodLabel(method []byte) string {
	for _, known := range methods {
		if known == string(method) {
			return known
		}
	}
	return otherMethod
}

// reportUnknown logs an error that no caller may see: only the types it is
// made of, since its text may hold anything.
func (s *Server) reportUnknown(e *exchange, err error) {
	var types []string
	for ; err != nil; err = errors.Unwrap(err) {
		types = append(types, fmt.Sprintf("%T", err))
	}
	s.errorOf(e).Strs("types", types).Msg("unknown error")
}

// errorOf begins what the log says of a request that went wrong.
func (s *Server) errorOf(e *exchange) *zerolog.Event {
	event := s.cfg.Log.Error().Str("request_id", e.id).Str("route", e.routeLabel())
	if e.span != nil {
		event = event.Str("trace_id", e.span.TraceID())
	}
	return event
}

// serverLog takes what fasthttp logs by itself. Only the format is kept: the
// arguments quote the request. That a connection broke is not even that much
// worth, since a request that came over it has its own line.
type serverLog struct{ log zerolog.Logger }

// Printf implements fasthttp.Logger.
func (l serverLog) Printf(format string, _ ...any) {
	if format == `error when serving connection %q<->%q: %v` {
		return
	}
	l.log.Warn().Str("event", format).Msg("http server")
}
