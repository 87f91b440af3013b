package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Attr is an attribute of a span. Make it with [String] or [Int].
type Attr = attribute.KeyValue

// String returns an attribute with a text.
func String(name, value string) Attr { return attribute.String(name, value) }

// Int returns an attribute with a number.
func Int(name string, value int) Attr { return attribute.Int(name, value) }

// Kind is the role of this process in a span.
type Kind int

// The kinds of spans.
const (
	Internal Kind = iota // the work stays within this process
	Server               // this process handles a request
	Client               // this process sends a request
)

func (k Kind) kind() trace.SpanKind {
	switch k {
	case Server:
		return trace.SpanKindServer
	case Client:
		return trace.SpanKindClient
	default:
		return trace.SpanKindInternal
	}
}

// Start describes a span that begins.
type Start struct {
	Kind  Kind
	Name  string
	At    time.Time // the start; zero: now
	Attrs []Attr
	// Link is a related span that is no ancestor of this span, perhaps in another trace; nil: none.
	Link *Span
}

// Span is a step of a sampled trace. A nil Span belongs to a trace that is not sampled. A Span is safe for
// concurrent use. Methods have no effect after End.
//
// Making attributes costs more than checking for a nil Span. On a hot path, check first.
type Span struct {
	tracer *Tracer
	span   trace.Span
}

func (t *Tracer) start(parent context.Context, start Start) *Span {
	options := make([]trace.SpanStartOption, 0, 4)
	options = append(options, trace.WithSpanKind(start.Kind.kind()), trace.WithAttributes(start.Attrs...))
	if !start.At.IsZero() {
		options = append(options, trace.WithTimestamp(start.At))
	}
	if start.Link != nil {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: start.Link.span.SpanContext()}))
	}
	_, span := t.tracer.Start(parent, start.Name, options...)
	return &Span{tracer: t, span: span}
}

// Child begins a span below this one.
func (s *Span) Child(start Start) *Span {
	if s == nil {
		return nil
	}
	return s.tracer.start(trace.ContextWithSpan(context.Background(), s.span), start)
}

// Set sets attributes.
func (s *Span) Set(attrs ...Attr) {
	if s != nil {
		s.span.SetAttributes(attrs...)
	}
}

// Rename sets the name of a span. It serves callers that build the name only for a sampled trace.
func (s *Span) Rename(name string) {
	if s != nil {
		s.span.SetName(name)
	}
}

// Event adds an event at the current time.
func (s *Span) Event(name string, attrs ...Attr) {
	if s != nil {
		s.span.AddEvent(name, trace.WithAttributes(attrs...))
	}
}

// Fail marks the span as failed, with a kind of error. kind is a fixed word, never the text of an error, which
// may contain anything.
func (s *Span) Fail(kind string) {
	if s != nil {
		s.span.SetAttributes(attribute.String("error.type", kind))
		s.span.SetStatus(codes.Error, "")
	}
}

// End ends the span.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}

// TraceID returns the id of the trace in hexadecimal, or an empty string for a nil Span.
func (s *Span) TraceID() string {
	if s == nil {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

type spanKey struct{}

// NewContext returns a context that carries a span. For a nil Span it returns ctx.
func NewContext(ctx context.Context, span *Span) context.Context {
	if span == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, span)
}

// FromContext returns the span of a context, or nil.
func FromContext(ctx context.Context) *Span {
	span, _ := ctx.Value(spanKey{}).(*Span)
	return span
}
