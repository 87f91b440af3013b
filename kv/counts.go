package kv

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/metrics"
	"licet/metrics/tracing"
	"licet/node/store"
)

// counts contains the instruments that every request uses. They are looked up once: finding an instrument by its labels
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

// newSampledLog logs sampledBurst lines in sampledPeriod, so that a damaged license that clients ask for all the time
// does not fill the log. Metrics count each case.
const (
	sampledBurst  = 10
	sampledPeriod = time.Minute
)

func newSampledLog(log zerolog.Logger) zerolog.Logger {
	return log.Sample(&zerolog.BurstSampler{Burst: sampledBurst, Period: sampledPeriod})
}

// checkRules counts a license that breaks a rule. The log shows no license key: licet store verify finds the license.
func (s *core) checkRules(license *layout.License, where string) {
	if rule := license.BrokenRule(); rule != "" {
		s.countBrokenRule(rule, where)
	}
}

func (s *core) countBrokenRule(rule, where string) {
	s.metrics.InvariantViolations.Inc()
	s.sampledLog.Error().Str("rule", rule).Str("where", where).
		Msg("a license violates an invariant: run licet store verify to find the license")
}

// checkSnapshots counts the licenses in snapshots that break a rule.
func (s *Store) checkSnapshots(snapshots []store.Snapshot) {
	for i := range snapshots {
		license := snapshots[i].Record.License
		token, exists := snapshots[i].Token.(*stored)
		if exists && license != nil {
			s.checkRules(&layout.License{License: *license, Devices: token.inline, Spilled: token.spilled}, "read")
		}
	}
}

// A value that can't be read must not affect other values: see etcd.Client.Unreadable. Readers of events get a
// placeholder in its place: see layout.DecodeEvents and layout.DecodeRuns.

// noteUnreadable notes that a key of events, or a part of it, can't be read. err is nil if it can be read.
func (s *core) noteUnreadable(owner licensing.Owner, e *keyspace.EventsKey, err error) {
	s.etcd.Unreadable(e.Key(owner), keyspace.NameOfEvents(owner, e), err)
}

// noteUnreadableRun notes that events of one record in a key can't be read.
func (s *core) noteUnreadableRun(owner licensing.Owner, e *keyspace.EventsKey, run *layout.Run, err error) {
	at := keyspace.Location{Epoch: e.Epoch, Block: e.Block}
	s.etcd.Unreadable(e.Key(owner)+run.Record, "e/"+keyspace.EventID(owner, at, run.Record, run.Last), err)
}

// readTrimmedEpoch returns the epoch in keyspace.TrimmedKey; 0 if there is no such key, or its value can't be read. In
// the latter case readers among removed events get no error until the next sweep by age writes the key again.
func (s *core) readTrimmedEpoch(kv *mvccpb.KeyValue) keyspace.Epoch {
	if kv == nil {
		return 0
	}
	epoch, err := layout.DecodeEpoch(kv.Value)
	s.etcd.Unreadable(keyspace.TrimmedKey, "cell/swept", err)
	return epoch
}

// unreadableLedger reports whether an owner's ledger can't be read; err is the reason, and nil if the ledger can be
// read. An owner with an unreadable ledger counts as having given up no events, until the next measurement rebuilds
// the ledger.
func (s *core) unreadableLedger(owner licensing.Owner, err error) bool {
	return s.etcd.Unreadable(keyspace.LedgerKey(owner), "r/"+keyspace.OwnerPath(owner), err)
}

// unreadableUsage reports whether an owner's usage record can't be read; err is the reason, and nil if the record can
// be read. An owner with an unreadable usage record counts as storing nothing; the next change writes a new record.
// So a recount of all owners does not end at this owner, and corrects the record.
func (s *core) unreadableUsage(owner licensing.Owner, err error) bool {
	return s.etcd.Unreadable(keyspace.UsageKey(owner), "s/"+keyspace.OwnerPath(owner), err)
}

// unreadableView notes that a license can't be shown, under the key of the value that can't be read.
func (s *views) unreadableView(license, metadata string, found *mvccpb.KeyValue, err error) {
	if _, _, bad := metadataOf(found); bad != nil {
		s.etcd.Unreadable(metadata, "the metadata of a license", err)
		return
	}
	s.etcd.Unreadable(license, "a license", err)
}
