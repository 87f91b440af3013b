package handlers

import (
	"bytes"
	"strconv"

	"github.com/valyala/fasthttp"

	"licet/metrics/tracing"
)

// beginTrace begins the span of a request, once its route is known. It tells of the
// route's pattern and never of the path, which may hold a license key. Probes come
// all the time and tell nothing, so they have none.
func (s *Server) beginTrace(e *exchange) {
	if s.cfg.Tracer == nil {
		return
	}
	if e.resource != nil && e.resource.quiet {
		return
	}
	e.span = s.cfg.Tracer.Begin(traceParent(&e.ctx.Request.Header), tracing.Start{
		Kind: tracing.Server,
		At:   e.started,
	})
	if e.span == nil {
		return
	}
	e.span.Rename(spanName(e)) // which is made only for what is sampled
	scheme := "http"
	if e.ctx.IsTLS() {
		scheme = "https"
	}
	e.span.Set(
		tracing.String("http.request.method", spanMethod(e)),
		tracing.String("url.scheme", scheme),
		tracing.String("licet.request_id", e.id),
	)
	if e.resource != nil {
		e.span.Set(tracing.String("http.route", e.resource.pattern), tracing.String("url.path", e.resource.pattern))
	}
}

// endTrace ends it with what was answered. As OpenTelemetry has it, an answer with a
// status of 4xx is no failure of a server.
func (e *exchange) endTrace(answer *document) {
	if e.span == nil {
		return
	}
	e.span.Set(tracing.Int("http.response.status_code", answer.status))
	if answer.code != 0 {
		e.span.Set(tracing.Int("licet.code", answer.code))
	}
	if answer.status >= fasthttp.StatusInternalServerError {
		e.span.Fail(strconv.Itoa(max(answer.code, answer.status)))
	}
	e.span.End()
}

// spanName is bounded, as labels are.
func spanName(e *exchange) string {
	method := e.method
	if method == otherMethod {
		method = "HTTP"
	}
	if e.resource == nil {
		return method
	}
	return method + " " + e.resource.pattern
}

// spanMethod is a method as OpenTelemetry writes it.
func spanMethod(e *exchange) string {
	if e.method == otherMethod {
		return "_OTHER"
	}
	return e.method
}

// traceParent reads W3C Trace Context. More than one traceparent is none, since
// nobody knows which of them is meant; more than one tracestate is one list.
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
