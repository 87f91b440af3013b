package handlers

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"licet/licensing"
	"licet/metrics"
)

// finish writes and counts a response, and writes the request's log line. Of what the caller sent, the line
// has only the request id. Paths contain license keys and tokens, so finish logs the pattern of the route instead.
func (s *Server) finish(r *request, answer document) {
	r.write(answer)
	if s.stopping.Load() {
		r.fast.SetConnectionClose()
	}
	took := time.Since(r.started)
	pattern := r.routeLabel()
	s.cfg.Metrics.HTTPInFlight.Dec()
	r.endTrace(&answer)
	trace := r.span.TraceID()
	s.times.Observe(r.method, pattern, answer.status, answer.code, took, trace)
	if r.activates() {
		s.activations.count(answer.code, r.bound)
	}
	s.accessLog.write(s.accessLog.level(r, answer), requestLine{
		id:     r.id,
		method: r.method,
		route:  pattern,
		status: answer.status,
		code:   answer.code,
		bytes:  len(r.fast.Response.Body()),
		took:   took,
		trace:  trace,
	})
}

// requestLine is the log line of a request.
type requestLine struct {
	id, method, route   string
	status, code, bytes int
	took                time.Duration
	trace               string // the id of the trace; empty if the trace is not sampled
}

// accessLog writes the log lines of requests.
type accessLog struct {
	log        zerolog.Logger
	overloaded int // the code of refusals for want of a place
}

func (l *accessLog) write(level zerolog.Level, line requestLine) {
	event := l.log.WithLevel(level).
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

// level returns the level of the log line.
func (l *accessLog) level(r *request, answer document) zerolog.Level {
	switch {
	case answer.status == fasthttp.StatusInternalServerError:
		return zerolog.ErrorLevel
	case answer.code == l.overloaded:
		// There are thousands of these, and they must cost little. The node logs its overload once.
		return zerolog.InfoLevel
	case r.route != nil && r.route.is(quiet):
		// Also while the node is not ready, as in its first second: licet dev asks each few milliseconds then.
		return zerolog.DebugLevel
	case answer.status > fasthttp.StatusInternalServerError:
		return zerolog.WarnLevel
	default:
		return zerolog.InfoLevel
	}
}

// routeLabel returns the pattern of the resource, or none: the values of labels are bounded.
func (r *request) routeLabel() string {
	if r.resource == nil {
		return "none"
	}
	return r.resource.pattern
}

// activates reports whether the request is an activation, valid or not.
func (r *request) activates() bool {
	route := r.route
	if route == nil && r.resource != nil {
		route = r.resource.routes[r.method]
	}
	return route != nil && route.is(activates)
}

const otherMethod = "other"

var methods = [...]string{"POST", "GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"}

// methodLabel returns a known method, or other: the values of labels are bounded.
func methodLabel(method []byte) string {
	for _, known := range methods {
		if known == string(method) {
			return known
		}
	}
	return otherMethod
}

// unknown logs an error that no caller may see. It logs only the types of the error, because the text may contain
// anything.
func (l *accessLog) unknown(r *request, err error) {
	var types []string
	for ; err != nil; err = errors.Unwrap(err) {
		types = append(types, fmt.Sprintf("%T", err))
	}
	l.failure(r).Strs("types", types).Msg("unknown error")
}

// failure begins a log line about the failure of a request.
func (l *accessLog) failure(r *request) *zerolog.Event {
	event := l.log.Error().Str("request_id", r.id).Str("route", r.routeLabel())
	if r.span != nil {
		event = event.Str("trace_id", r.span.TraceID())
	}
	return event
}

// serverLog receives the log lines of fasthttp. It logs only the format, because the arguments quote the request.
// It drops lines about broken connections: each request has its own line.
type serverLog struct{ log zerolog.Logger }

// Printf implements fasthttp.Logger.
func (l serverLog) Printf(format string, _ ...any) {
	if format == `error when serving connection %q<->%q: %v` {
		return
	}
	l.log.Warn().Str("event", format).Msg("http server")
}

// count creates the counters of responses. The series of success and of server errors exist from the start, so that a
// rate includes the first error.
func (s *Server) count(routes []route) {
	s.times = metrics.NewRequestTimes(s.cfg.Metrics)
	var refusals []licensing.Reason // of activations
	for i := range routes {
		r := &routes[i]
		status := fasthttp.StatusOK
		if r.is(creates) {
			status = fasthttp.StatusCreated
		}
		s.times.Expect(r.method, r.pattern, status, 0)
		for _, reason := range []licensing.Reason{
			licensing.ReasonInternal, licensing.ReasonUnavailable,
			licensing.ReasonOverloaded, licensing.ReasonOutcomeUnknown,
		} {
			k := s.errors[reason]
			s.times.Expect(r.method, r.pattern, k.status, k.code())
		}
		if r.is(activates) {
			refusals = append(refusals, r.reasons()...)
		}
	}
	s.activations = newActivations(s.cfg.Metrics, s.errors.refusals(refusals))
}

// activations counts the responses to activations. Only the node that responds to the client counts, whatever other
// nodes did for the request.
type activations struct {
	bound, again prometheus.Counter
	failed       map[int]prometheus.Counter // by the code in the envelope; never changes
	other        prometheus.Counter         // unexpected errors
}

// newActivations returns the counters, at 0, with one for each refusal.
func newActivations(m *metrics.Metrics, refusals []Refusal) activations {
	a := activations{
		bound:  m.Activations.WithLabelValues("bound"),
		again:  m.Activations.WithLabelValues("again"),
		failed: make(map[int]prometheus.Counter),
		other:  m.Activations.WithLabelValues("other"),
	}
	for _, r := range refusals {
		a.failed[r.Code] = m.Activations.WithLabelValues(string(r.Reason))
	}
	return a
}

// count counts a response by its code, and a success by whether it has bound a new device.
func (a *activations) count(code int, bound bool) {
	counter, known := a.failed[code]
	switch {
	case code == 0 && bound:
		counter = a.bound
	case code == 0:
		counter = a.again
	case !known:
		counter = a.other
	}
	counter.Inc()
}
