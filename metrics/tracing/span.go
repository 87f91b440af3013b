package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Attr is something that a span tells. Make it with [String] or [Int].
type Attr = attribute.KeyValue

// String tells a text.
func String(name, value string) Attr { return attribute.String(name, value) }

// Int tells a number.
func Int(name string, value int) Attr { return attribute.Int(name, value) }

// Kind says between whom a span lies.
type Kind int

// The kinds of spans.
const (
	Internal Kind = iota // within this process
	Server               // somebody is answered
	Client               // somebody is asked
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

// Start says what begins.
type Start struct {
	Kind  Kind
	Name  string
	At    time.Time // when it began; zero: now
	Attrs []Attr
	// Link is a span that tells more of the same, of another trace or of none that is
	// above this one; nil: there is none.
	Link *Span
}

// Span is a step of something that is sampled. Nil stands for one of something
// that is not. It is safe for concurrent use; what is told after End is lost.
//
// To make attributes costs more than to find that there is no span to hold them. So
// where requests are many, look first whether there is one.
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

// Child begins a step of this one.
func (s *Span) Child(start Start) *Span {
	if s == nil {
		return nil
	}
	return s.tracer.start(trace.ContextWithSpan(context.Background(), s.span), start)
}

// Set tells something.
func (s *Span) Set(attrs ...Attr) {
	if s != nil {
		s.span.SetAttributes(attrs...)
	}
}

// Rename gives a span its name, where that is made only once it is there.
func (s *Span) Rename(name string) {
	if s != nil {
		s.span.SetName(name)
	}
}

// Event tells what has happened now.
func (s *Span) Event(name string, attrs ...Attr) {
	if s != nil {
		s.span.AddEvent(name, trace.WithAttributes(attrs...))
	}
}

// Fail tells that the step went wrong, and by what kind of error: a word, never an
// error's text, which may hold anything.
func (s *Span) Fail(kind string) {
	if s != nil {
		s.span.SetAttributes(attribute.String("error.type", kind))
		s.span.SetStatus(codes.Error, "")
	}
}

// End ends the step.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}

// TraceID is the id of the trace in hexadecimal; empty where there is none.
func (s *Span) TraceID() string {
	if s == nil {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

type spanKey struct{}

// NewContext gives a context that carries a span; ctx itself where that is nil.
func NewContext(ctx context.Context, span *Span) context.Context {
	if span == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, span)
}

// FromContext gives the span that a context carries, or nil.
func FromContext(ctx context.Context) *Span {
	span, _ := ctx.Value(spanKey{}).(*Span)
	return span
}
