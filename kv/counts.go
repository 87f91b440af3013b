package kv

import (
	"github.com/prometheus/client_golang/prometheus"

	"licet/licensing"
	"licet/metrics"
	"licet/node/store"
)

// counts are the instruments that every request meets, found once: to find one by
// its labels costs more than to count.
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

// orderStates names the states that an order gets into, by the event that is recorded
// along with that.
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
			c.told(change.Writes[i].Record.Events)
		}
	case err == nil:
		c.swapLost.Inc()
	case licensing.ReasonOf(err) == licensing.ReasonOutcomeUnknown:
		c.swapDoubt.Inc()
	}
}

// told counts events that were stored.
func (c *counts) told(events []licensing.Event) {
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
