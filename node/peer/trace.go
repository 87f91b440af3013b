package peer

import (
	"net/http"

	"github.com/valyala/fasthttp"

	"licet/metrics/tracing"
)

// The trace that a hop belongs to goes beside its message, in the headers of W3C
// Trace Context: a node of an older version does not look for them, and of one that
// does not send them nothing is traced here. They are not sealed. Whoever could
// change them without being noticed, which nobody can but the sender, could make
// a node trace more or less, and nothing else.

// setTrace adds them, where the hop is traced.
func setTrace(head http.Header, trace tracing.Parent) {
	if trace.Traceparent == "" {
		return
	}
	head.Set(tracing.HeaderParent, trace.Traceparent)
	if trace.Tracestate != "" {
		head.Set(tracing.HeaderState, trace.Tracestate)
	}
}

// traceOf reads them.
func traceOf(head *fasthttp.RequestHeader) (trace tracing.Parent) {
	if given := head.Peek(tracing.HeaderParent); len(given) > 0 {
		trace = tracing.Parent{Traceparent: string(given), Tracestate: string(head.Peek(tracing.HeaderState))}
	}
	return trace
}
