package kv

import (
	"licet/kv/internal/etcd"
	"licet/metrics/tracing"
	"licet/node/store"
)

// A caller's share of a batch has a span of its own, from the beginning of its wait until its answer. The event "sent"
// shows when a request has left with the share, and with how many others. So the trace shows whether the wait or etcd
// took long. Each request without a batch has a span. No span names a key.

// traceSent records that a request leaves with a batch.
func traceSent(batch []*batchItem) {
	for _, p := range batch {
		if p.span != nil {
			p.span.Set(tracing.Int("licet.store.batch_parts", len(batch)))
			p.span.Event("sent", tracing.Int("licet.store.batch_parts", len(batch)))
		}
	}
}

// traceEvent records an event of a batch.
func traceEvent(batch []*batchItem, name string) {
	for _, p := range batch {
		p.span.Event(name)
	}
}

// traceRetry records that a swap is sent again, since its outcome is in doubt.
func traceRetry(span *tracing.Span, attempt int) {
	if span != nil {
		span.Event("retry", tracing.Int("licet.store.attempt", attempt))
	}
}

// endSwap ends the span of a swap.
func endSwap(span *tracing.Span, outcome store.Outcome, err error) {
	if span != nil {
		span.Set(tracing.String("licet.store.swap", swapOutcome(outcome, err)))
		etcd.EndSpan(span, err)
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
