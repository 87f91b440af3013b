package tracing

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The headers of W3C Trace Context, in canonical form.
const (
	HeaderParent = "Traceparent"
	HeaderState  = "Tracestate"
)

// traceparentSize is the size of a traceparent of version 00, the only version so far.
const traceparentSize = len("00-") + 32 + len("-") + 16 + len("-00")

// Parent identifies the parent span of a request from another process, and says whether its trace is sampled.
// A Parent contains the headers as received, unchecked.
type Parent struct {
	Traceparent string
	Tracestate  string
}

// Begin begins the span of a request from outside, or returns nil if the trace is not sampled. If there is a
// parent, the parent decides. As W3C Trace Context demands, Begin ignores a malformed traceparent, together with
// its tracestate.
func (t *Tracer) Begin(parent Parent, start Start) *Span {
	if t == nil {
		return nil
	}
	if parent.Traceparent != "" {
		if remote := extract(parent); remote.IsValid() {
			return t.startBelow(remote, start)
		}
	}
	return t.root(start)
}

// Continue begins a span of a trace that another process has sampled. Without a sampled parent, Continue
// returns nil.
func (t *Tracer) Continue(parent Parent, start Start) *Span {
	if t == nil || parent.Traceparent == "" {
		return nil
	}
	return t.startBelow(extract(parent), start)
}

// startBelow begins a span below a remote one, or returns nil if the remote one is not sampled.
func (t *Tracer) startBelow(remote trace.SpanContext, start Start) *Span {
	if !remote.IsSampled() || !remote.IsValid() {
		return nil
	}
	return t.start(trace.ContextWithRemoteSpanContext(context.Background(), remote), start)
}

// Parent returns this span as the parent of spans in another process. For a nil Span it returns zero.
func (s *Span) Parent() Parent {
	if s == nil {
		return Parent{}
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), s.span), carrier)
	return Parent{Traceparent: carrier["traceparent"], Tracestate: carrier["tracestate"]}
}

// extract parses a parent. The check of the size is ours: OpenTelemetry's library accepts a version 00 that
// ends with a dash, which W3C's own tests call malformed.
func extract(parent Parent) trace.SpanContext {
	if strings.HasPrefix(parent.Traceparent, "00-") && len(parent.Traceparent) != traceparentSize {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": parent.Traceparent, "tracestate": parent.Tracestate}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
