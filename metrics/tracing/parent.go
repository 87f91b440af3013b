package tracing

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The headers of W3C Trace Context, in the form that HTTP headers are known by here.
const (
	HeaderParent = "Traceparent"
	HeaderState  = "Tracestate"
)

// traceparentSize is that of version 00, the only one there is.
const traceparentSize = len("00-") + 32 + len("-") + 16 + len("-00")

// Parent is what is told from process to process: who has asked, and whether that is
// sampled. It is as it was read from headers: nothing of it has been checked.
type Parent struct {
	Traceparent string
	Tracestate  string
}

// Begin begins the answer to what came from outside, if it is sampled: where there
// is a parent, the parent decides. A traceparent that is malformed counts as none, as
// W3C says, and then its tracestate does not count either.
func (t *Tracer) Begin(parent Parent, start Start) *Span {
	if t == nil {
		return nil
	}
	if parent.Traceparent != "" {
		if above := extract(parent); above.IsValid() {
			return t.below(above, start)
		}
	}
	return t.root(start)
}

// Continue begins what was sampled elsewhere. Without a parent that is, there is
// nothing to be traced.
func (t *Tracer) Continue(parent Parent, start Start) *Span {
	if t == nil || parent.Traceparent == "" {
		return nil
	}
	return t.below(extract(parent), start)
}

func (t *Tracer) below(above trace.SpanContext, start Start) *Span {
	if !above.IsSampled() || !above.IsValid() {
		return nil
	}
	return t.start(trace.ContextWithRemoteSpanContext(context.Background(), above), start)
}

// Parent is what tells another process of this span; zero where there is none.
func (s *Span) Parent() Parent {
	if s == nil {
		return Parent{}
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), s.span), carrier)
	return Parent{Traceparent: carrier["traceparent"], Tracestate: carrier["tracestate"]}
}

// extract reads what a caller has told. The library takes a version 00 that ends with
// a dash, which W3C's own tests hold for malformed.
func extract(parent Parent) trace.SpanContext {
	if strings.HasPrefix(parent.Traceparent, "00-") && len(parent.Traceparent) != traceparentSize {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": parent.Traceparent, "tracestate": parent.Tracestate}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
