package kv

import (
	"github.com/prometheus/client_golang/prometheus"

	"licet/kv/internal/etcd"
	"licet/licensing"
	"licet/metrics"
	"licet/metrics/tracing"
	"licet/node/store"
)

// counts holds the instruments that every request uses. They are looked up once: finding an instrument by its labels
// costs more than counting.
type counts struct {
	writes, reads                prometheus.Observer // the items of a request
	swapWon, swapLost, swapDoubt prometheus.Counter
	recordHit, recordMiss        prometheus.Counter
	events                       map[licensing.EventType]prometheus.Counter // never changed
	orders                       map[licensing.EventType]prometheus.Counter // never changed
}

func newCounts(m *metrics.Metrics) *counts {
	c := &counts{
		writes:     m.StoreBatch.WithLabelValues("write"),
		reads:      m.StoreBatch.WithLabelValues("read"),
		swapWon:    m.Swaps.WithLabelValues("won"),
		swapLost:   m.Swaps.WithLabelValues("lost"),
		swapDoubt:  m.Swaps.WithLabelValues("unknown"),
		recordHit:  m.RecordLookups.WithLabelValues("hit"),
		recordMiss: m.RecordLookups.WithLabelValues("miss"),
		events:     make(map[licensing.EventType]prometheus.Counter),
		orders:     make(map[licensing.EventType]prometheus.Counter),
	}
	for _, event := range licensing.EventTypes() {
		c.events[event] = m.EventsRecorded.WithLabelValues(string(event))
	}
	for event, state := range orderStates() {
		c.orders[event] = m.Orders.WithLabelValues(state)
	}
	return c
}

// orderStates maps the event of an order to the state that the order enters with it.
func orderStates() map[licensing.EventType]string {
	return map[licensing.EventType]string{
		licensing.EventOrderCreated:  "created",
		licensing.EventOrderPaid:     "paid",
		licensing.EventOrderCanceled: "canceled",
		licensing.EventOrderExpired:  "expired",
		licensing.EventOrderRefunded: "refunded",
	}
}

// swap counts a change once, by its outcome, and the events of a change that landed. A change that was not sent, or
// was refused before execution, is no swap.
func (c *counts) swap(change store.Change, outcome store.Outcome, err error) {
	switch {
	case err == nil && outcome.Landed:
		c.swapWon.Inc()
		for i := range change.Writes {
			c.countEvents(change.Writes[i].Record.Events)
		}
	case err == nil:
		c.swapLost.Inc()
	case licensing.ReasonOf(err) == licensing.ReasonOutcomeUnknown:
		c.swapDoubt.Inc()
	}
}

// countEvents counts events that were stored.
func (c *counts) countEvents(events []licensing.Event) {
	for i := range events {
		event := events[i].Type
		if counter, is := c.events[event]; is {
			counter.Inc()
		}
		if order, is := c.orders[event]; is {
			order.Inc()
		}
	}
}

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

// swapOutcome returns the outcome of a swap, as spans label it.
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
