package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/metrics/tracing"
	"licet/node"
	"licet/node/store"
)

const (
	// maxDueRecords is about how many due records one pass works on.
	maxDueRecords = 16 * store.MaxDue
	// dueConcurrency bounds how many records a pass works on at the same time.
	dueConcurrency = 16
	// maxDueFailures is the number of failures in a page that ends the pass. Failures that concern one owner only
	// don't count.
	maxDueFailures = 16
	// dueTimeout bounds the work on one record, including a request to a payment provider.
	dueTimeout = 30 * time.Second
)

// Sweeps offers the periodic work of a node.
type Sweeps struct {
	*core
	rollouts *Rollouts
	// dueFrom contains, by duePlace, the position (a string) where the next pass continues; see eachDue.
	dueFrom sync.Map
	// sandboxFrom is when EachSandboxDue looks again, in nanoseconds of Unix time.
	sandboxFrom atomic.Int64
	// revocationsSwept is the day of the last sweep of revocations, a licensing.ReceiptDay.
	revocationsSwept atomic.Uint32
}

// timeToActBy returns the time by which the sweeps remove and record what has ended. It fails with
// clocks.ErrUntrusted unless the clock is known to agree with the other nodes' clocks. Each write of a
// sweep that depends on time needs a call of its own: the clock may be set between two writes.
func (s *Sweeps) timeToActBy() (time.Time, error) {
	now := s.engine.Now() // before the check, which notices a step since the last comparison
	return now, s.cfg.Clocks.Untrusted()
}

// SweepClaims removes all expired claims.
func (s *Sweeps) SweepClaims(ctx context.Context) error {
	for {
		now, err := s.timeToActBy()
		if err != nil {
			return err
		}
		swept, err := s.cfg.Sweeps.SweepClaims(ctx, now.Add(-licensing.ClaimLifetime))
		if err != nil || swept == 0 {
			return err
		}
	}
}

// SweepEvents removes all events that are too old, or over the budget of bytes. It also needs the time for the budget:
// the sweep finds the sizes of events by marks, and a mark with a wrong time would make events too old early.
func (s *Sweeps) SweepEvents(ctx context.Context) error {
	for {
		now, err := s.timeToActBy()
		if err != nil {
			return err
		}
		swept, err := s.cfg.Sweeps.SweepEvents(ctx, now, s.cfg.KeepEvents)
		if err != nil || swept == 0 {
			return err
		}
	}
}

// SweepWebhooks removes the remains of deleted endpoints.
func (s *Sweeps) SweepWebhooks(ctx context.Context) error {
	if s.cfg.Deliveries == nil {
		return nil
	}
	for {
		swept, err := s.cfg.Deliveries.SweepWebhooks(ctx)
		if err != nil || swept == 0 {
			return err
		}
	}
}

// errNoSpace puts off a pass that makes the store grow, while the store is almost full.
var errNoSpace = fmt.Errorf("%w: the store is almost full", node.ErrNoRoom)

// RecordOrderEnds records the end of expired orders.
func (s *Sweeps) RecordOrderEnds(ctx context.Context) error {
	return s.recordEnds(ctx, licensing.DueOrderEnd, func(before time.Time) licensing.Command {
		return licensing.ExpireOrder{Before: before}
	})
}

// RecordLicenseEnds records the end of expired licenses. In the reserve it removes their lapsed leases instead.
func (s *Sweeps) RecordLicenseEnds(ctx context.Context) error {
	if s.engine.Space() == store.SpaceReserve {
		return s.lapseInReserve(ctx, licensing.DueLicenseEnd)
	}
	return s.recordEnds(ctx, licensing.DueLicenseEnd, func(before time.Time) licensing.Command {
		return licensing.ExpireLicense{Before: before}
	})
}

func (s *Sweeps) recordEnds(
	ctx context.Context, kind licensing.DueKind, record func(before time.Time) licensing.Command,
) error {
	if s.engine.Space() != store.SpaceFree {
		return errNoSpace
	}
	now, err := s.timeToActBy()
	if err != nil {
		return err
	}
	before := now.Add(-s.cfg.ExpiryMargin)
	return s.eachDue(ctx, kind, store.DueSpan{Until: before}, func(ctx context.Context, ref licensing.Ref) error {
		_, err := s.engine.DoInBackground(ctx, ref, record(before))
		return err
	})
}

// RemoveLapsedLeases removes the leases that have lapsed, unless activations have taken their device slots before.
func (s *Sweeps) RemoveLapsedLeases(ctx context.Context) error {
	return s.lapseDue(ctx, licensing.DueLeases)
}

// lapseDue removes the lapsed leases of the licenses on which work of a kind is due.
func (s *Sweeps) lapseDue(ctx context.Context, kind licensing.DueKind) error {
	now, err := s.timeToActBy()
	if err != nil {
		return err
	}
	return s.eachDue(ctx, kind, store.DueSpan{Until: now},
		func(ctx context.Context, ref licensing.Ref) error { return s.lapse(ctx, ref, now) })
}

// lapse removes the lapsed leases of a license.
func (s *Sweeps) lapse(ctx context.Context, ref licensing.Ref, now time.Time) error {
	for devices := math.MaxInt; ; { // one swap removes only some of many
		result, err := s.engine.DoInBackground(ctx, ref, licensing.LapseLeases{})
		if l := &result.License; err != nil || l.CurrentDevices >= devices || !l.LeasesLapsed(now) {
			return err
		}
		devices = result.License.CurrentDevices
	}
}

// lapseInReserve removes the lapsed leases of licenses that have other work to do first, for which the store has no
// room. The removal of leases makes room.
func (s *Sweeps) lapseInReserve(ctx context.Context, kind licensing.DueKind) error {
	return worseError(s.lapseDue(ctx, kind), errNoSpace)
}

// worseError returns the worse of two errors, by severity; of two equally bad errors the first. So if
// a pass ends with an error that says that nothing was executed, the outcome of every record is known.
func worseError(one, other error) error {
	if severity(other) > severity(one) {
		return other
	}
	return one
}

// severity ranks errors by what they say about the records: nil, the pass was put off, not executed,
// anything else.
func severity(err error) int {
	switch {
	case err == nil:
		return 0
	case putOff(err):
		return 1
	case licensing.NotExecuted(err):
		return 2
	}
	return 3
}

// EachRefundDue calls send for each order whose refund is due by now, or more than
// licensing.RefundRetryMax ahead. The order has only its number and owner. Calls may run at the
// same time. Then EachRefundDue counts the remaining refunds, including refunds to be tried later.
func (s *Sweeps) EachRefundDue(ctx context.Context, send func(context.Context, licensing.Order) error) error {
	sendRef := func(ctx context.Context, ref licensing.Ref) error {
		return send(ctx, licensing.Order{OrderNo: ref.ID, Owner: ref.Owner})
	}
	now, err := s.timeToActBy()
	if err != nil {
		return err
	}
	failed := s.eachDue(ctx, licensing.DueRefund, store.DueSpan{Until: now}, sendRef)
	unbelieved := store.DueSpan{Since: now.Add(licensing.RefundRetryMax)}
	failed = worseError(failed, s.eachDue(ctx, licensing.DueRefund, unbelieved, sendRef))
	left, err := s.countRefundsDue(ctx)
	if err == nil {
		s.cfg.Metrics.RefundsDue.Set(float64(left))
	}
	return cmp.Or(failed, err)
}

// countRefundsDue counts the orders whose refund is due now or later, up to about store.MaxDue.
func (s *Sweeps) countRefundsDue(ctx context.Context) (count int, err error) {
	slots, err := s.cfg.Queries.DueSlots(ctx, licensing.DueRefund, store.DueSpan{})
	for i := 0; err == nil && i < len(slots) && count < store.MaxDue; i++ {
		var page store.DuePage
		page, err = s.cfg.Queries.Due(ctx, licensing.DueRefund, slots[i], store.DueSpan{}, "", store.MaxDue)
		count += len(page.Records)
	}
	return count, err
}

// duePlace identifies due work by its kind, its slot, and whether its span has a start.
type duePlace struct {
	kind  licensing.DueKind
	since bool
	slot  licensing.Slot
}

// eachDue calls do for the records of this node's slots for which work of a kind is due in a span of time, some at the
// same time: a page of each slot in turn, about maxDueRecords in all. The next pass continues after them. So neither
// records that are put off nor the many records of one owner keep others from their turn. The failure of one record
// does not stop the pass. The pass ends after maxDueFailures failures, as when the store is unreachable.
func (s *Sweeps) eachDue(
	ctx context.Context, kind licensing.DueKind, span store.DueSpan, do func(context.Context, licensing.Ref) error,
) (failed error) {
	slots, err := s.cfg.Queries.DueSlots(ctx, kind, span)
	if err != nil {
		return err
	}
	slots = s.ownSlots(slots, s.engine.Now())
	rand.Shuffle(len(slots), func(i, j int) { slots[i], slots[j] = slots[j], slots[i] })
	do = s.whileTrusted(s.traceDue(do))
	for left := maxDueRecords; left > 0 && len(slots) > 0; {
		slot := slots[0]
		slots = slots[1:]
		place := duePlace{kind, !span.Since.IsZero(), slot}
		from, _ := s.dueFrom.LoadAndDelete(place)
		after, _ := from.(string)
		page, err := s.cfg.Queries.Due(ctx, kind, slot, span, after, store.MaxDue)
		if err != nil {
			return err
		}
		goOn, err := s.doEach(ctx, page.Records, do)
		if failed = worseError(failed, err); !goOn {
			return failed
		}
		if left -= len(page.Records); page.Next != "" {
			s.dueFrom.Store(place, page.Next)
			slots = append(slots, slot)
		}
	}
	return failed
}

// doEach calls do for records in random order: nodes that have read the same page should not work on
// the same records at the same time. It returns the worst error, and whether the caller may continue with
// other records.
func (c *core) doEach(
	ctx context.Context, records []licensing.Ref, do func(context.Context, licensing.Ref) error,
) (goOn bool, failed error) {
	rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	var (
		group    sync.WaitGroup
		mu       sync.Mutex
		failures int
		refused  = make(map[licensing.Owner]bool) // owners of records that an overload has refused
	)
	stopped := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return failures >= maxDueFailures || ctx.Err() != nil
	}
	free := make(chan struct{}, dueConcurrency)
	for _, ref := range records {
		free <- struct{}{}
		if stopped() {
			break
		}
		c.guard.StartIn(&group, "sweep", func() {
			defer func() { <-free }()
			ctx, cancel := context.WithTimeout(ctx, dueTimeout)
			defer cancel()
			err := c.doOne(ctx, ref, do)
			if err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			failed = worseError(failed, err)
			overloaded := licensing.ReasonOf(err) == licensing.ReasonOverloaded
			switch {
			case errors.Is(err, node.ErrOwnerBusy), overloaded && refused[ref.Owner]:
			case putOff(err):
				failures = maxDueFailures
			case overloaded:
				refused[ref.Owner] = true
				failures++
			case licensing.NotExecuted(err), licensing.ReasonOf(err) == licensing.ReasonOutcomeUnknown:
				failures++
			}
		})
	}
	group.Wait()
	return !stopped(), failed
}

// doOne calls do for a record. A panic fails this record only. It must not end the node: the record
// would be due for the next node.
func (c *core) doOne(
	ctx context.Context, ref licensing.Ref, do func(context.Context, licensing.Ref) error,
) (err error) {
	if !c.guard.Do("sweep", func() { err = do(ctx, ref) }) {
		return licensing.ErrInternal
	}
	return err
}

// whileTrusted wraps do in a check of the clock.
func (s *Sweeps) whileTrusted(
	do func(context.Context, licensing.Ref) error,
) func(context.Context, licensing.Ref) error {
	return func(ctx context.Context, ref licensing.Ref) error {
		if _, err := s.timeToActBy(); err != nil {
			return err
		}
		return do(ctx, ref)
	}
}

// traceDue wraps do in a root span for each record, if the span is sampled: no request from outside
// begins this work.
func (s *Sweeps) traceDue(do func(context.Context, licensing.Ref) error) func(context.Context, licensing.Ref) error {
	if s.cfg.Tracer == nil {
		return do
	}
	return func(ctx context.Context, ref licensing.Ref) error {
		ctx, span := s.cfg.Tracer.Root(ctx, tracing.Start{Name: "due"})
		defer span.End()
		err := do(ctx, ref)
		if span != nil {
			span.Set(tracing.String("licet.record", ref.Kind.String()))
			if err != nil {
				span.Fail(string(licensing.ReasonOf(err)))
			}
		}
		return err
	}
}
