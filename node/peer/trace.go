package peer

import (
	"net/http"

	"github.com/valyala/fasthttp"

	"licet/metrics/tracing"
)

// The headers of W3C Trace Context carry the trace of a hop, beside its message. A node of an older version
// ignores them, and hops without them are not traced. The signature does not cover them: a change could only make a
// node trace more or less, and TLS lets only the sender change them.

// setTrace adds the trace headers if the hop is traced.
func setTrace(head http.Header, trace tracing.Parent) {
	if trace.Traceparent == "" {
		return
	}
	head.Set(tracing.HeaderParent, trace.Traceparent)
	if trace.Tracestate != "" {
		head.Set(tracing.HeaderState, trace.Tracestate)
	}
}

// traceOf returns the trace of the headers.
func traceOf(head *fasthttp.RequestHeader) (trace tracing.Parent) {
	if given := head.Peek(tracing.HeaderParent); len(given) > 0 {
		trace = tracing.Parent{Traceparent: string(given), Tracestate: string(head.Peek(tracing.HeaderState))}
	}
	return trace
}
