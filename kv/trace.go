package kv

import (
	"context"
	"time"

	"licet/metrics/tracing"
	"licet/node/store"
)

// A caller's share of a batch has a span of its own, from the moment it begins to wait
// for a request until it is answered: "sent" tells when a request has left with it, and
// with how many others. So what takes long is seen, waiting or etcd. Requests that
// nobody shares have a span each. Neither names a key.

// traceCall begins the span of a share of a batch.
func (s *Store) traceCall(ctx context.Context, operation string) *tracing.Span {
	span := s.tracer.SpanFrom(ctx)
	if span == nil {
		return nil
	}
	return span.Child(etcdCall(operation, time.Time{}))
}

func etcdCall(operation string, at time.Time) tracing.Start {
	return tracing.Start{Kind: tracing.Client, Name: "etcd " + operation, At: at, Attrs: []tracing.Attr{
		tracing.String("db.system.name", "etcd"), tracing.String("db.operation.name", operation),
	}}
}

// endCall ends it.
func endCall(span *tracing.Span, err error) {
	if span == nil {
		return
	}
	outcome := classify(err).String()
	span.Set(tracing.String("licet.outcome", outcome))
	if err != nil {
		span.Fail(outcome)
	}
	span.End()
}

// answered counts a request to etcd that was answered, and tells of it in the trace that
// its ctx is of. That of a batch is of none: its shares have spans of their own.
func (s *Store) answered(ctx context.Context, operation string, started time.Time, err error) {
	s.counts.answered(operation, started, err)
	s.members.learn(err)
	if span := s.tracer.SpanFrom(ctx); span != nil {
		endCall(span.Child(etcdCall(operation, started)), err)
	}
}

// traceSent tells that a request leaves with a batch.
func traceSent(batch []*part) {
	for _, p := range batch {
		if p.span != nil {
			p.span.Set(tracing.Int("licet.store.batch_parts", len(batch)))
			p.span.Event("sent", tracing.Int("licet.store.batch_parts", len(batch)))
		}
	}
}

// traceEvent tells that something has happened to a batch.
func traceEvent(batch []*part, name string) {
	for _, p := range batch {
		p.span.Event(name)
	}
}

// traceRetry tells that a swap is issued again, since its outcome is in doubt.
func traceRetry(span *tracing.Span, attempt int) {
	if span != nil {
		span.Event("retry", tracing.Int("licet.store.attempt", attempt+2))
	}
}

// endSwap ends the span of a swap.
func endSwap(span *tracing.Span, outcome store.Outcome, err error) {
	if span != nil {
		span.Set(tracing.String("licet.store.swap", swapOutcome(outcome, err)))
		endCall(span, err)
	}
}

// swapOutcome is what became of a swap.
func swapOutcome(outcome store.Outcome, err error) string {
	switch {
	case err != nil:
		return "failed"
	case outcome.Landed:
		return "won"
	default:
		return "lost"
	}
}
