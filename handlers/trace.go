package handlers

import (
	"bytes"
	"strconv"

	"github.com/valyala/fasthttp"

	"licet/metrics/tracing"
)

// beginTrace begins the span of a request once its route is known. The span holds the pattern of the route, never the
// path, which may hold a license key. Probes have no span: they are frequent and show nothing.
func (s *Server) beginTrace(r *request) {
	if s.cfg.Tracer == nil {
		return
	}
	if r.resource != nil && r.resource.quiet {
		return
	}
	r.span = s.cfg.Tracer.Begin(traceParent(&r.fast.Request.Header), tracing.Start{
		Kind: tracing.Server,
		At:   r.started,
	})
	if r.span == nil {
		return
	}
	r.span.Rename(spanName(r)) // a span that is not sampled needs no name
	scheme := "http"
	if r.fast.IsTLS() {
		scheme = "https"
	}
	r.span.Set(
		tracing.String("http.request.method", spanMethod(r)),
		tracing.String("url.scheme", scheme),
		tracing.String("licet.request_id", r.id),
	)
	if r.resource != nil {
		r.span.Set(tracing.String("http.route", r.resource.pattern), tracing.String("url.path", r.resource.pattern))
	}
}

// endTrace ends the span with the status and the code of the response. By OpenTelemetry's conventions, a status 4xx is
// no failure of a server.
func (r *request) endTrace(answer *document) {
	if r.span == nil {
		return
	}
	r.span.Set(tracing.Int("http.response.status_code", answer.status))
	if answer.code != 0 {
		r.span.Set(tracing.Int("licet.code", answer.code))
	}
	if answer.status >= fasthttp.StatusInternalServerError {
		r.span.Fail(strconv.Itoa(max(answer.code, answer.status)))
	}
	r.span.End()
}

// spanName returns the name of a span. The number of names is bounded.
func spanName(r *request) string {
	method := r.method
	if method == otherMethod {
		method = "HTTP"
	}
	if r.resource == nil {
		return method
	}
	return method + " " + r.resource.pattern
}

// spanMethod returns the method by OpenTelemetry's conventions.
func spanMethod(r *request) string {
	if r.method == otherMethod {
		return "_OTHER"
	}
	return r.method
}

// traceParent reads the headers of W3C Trace Context. It ignores a repeated traceparent, which is ambiguous, and joins
// repeated tracestates to one list.
func traceParent(head *fasthttp.RequestHeader) (parent tracing.Parent) {
	given := head.Peek(tracing.HeaderParent)
	if len(given) == 0 || len(head.PeekAll(tracing.HeaderParent)) > 1 {
		return tracing.Parent{}
	}
	return tracing.Parent{
		Traceparent: string(given),
		Tracestate:  string(bytes.Join(head.PeekAll(tracing.HeaderState), []byte(","))),
	}
}
