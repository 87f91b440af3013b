package service

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"licet/licensing"
	"licet/metrics/tracing"
	"licet/node"
	"licet/node/store"
)

const (
	// duePages bounds the pages of what is due that one pass works on.
	duePages = 16
	// dueAtOnce bounds how many records are worked on at a time.
	dueAtOnce = 16
	// dueTroubles is how many records of a page may fail for reasons that may be
	// everybody's until the pass ends: one that is stormed is no such reason.
	dueTroubles = 16
	// dueTimeout bounds the work on one record; asking a provider is part of it.
	dueTimeout = 30 * time.Second
	// refundHorizon is longer than any pause between two tries of a refund, and by
	// more than clocks are wrong.
	refundHorizon = 24 * time.Hour
)

// Sweeps are what a node does now and then without being asked.
type Sweeps struct {
	*core
	// dueFrom is the place, a string, where the next pass goes on, by licensing.DueKind; see eachDue.
	dueFrom sync.Map
}

// SweepClaims removes all claims whose time is over.
func (s *Sweeps) SweepClaims(ctx context.Context) error {
	before := s.engine.Now().Add(-licensing.ClaimLifetime)
	for {
		swept, err := s.cfg.Sweeps.SweepClaims(ctx, before)
		if err != nil || swept == 0 {
			return err
		}
	}
}

// SweepEvents removes all events that are not kept any more.
func (s *Sweeps) SweepEvents(ctx context.Context) error {
	for {
		swept, err := s.cfg.Sweeps.SweepEvents(ctx, s.engine.Now(), s.cfg.KeepEvents)
		if err != nil || swept == 0 {
			return err
		}
	}
}

// SweepWebhooks removes what is left of endpoints that were deleted.
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

// RecordOrderEnds records of orders that have run out that they have.
func (s *Sweeps) RecordOrderEnds(ctx context.Context) error {
	return s.recordEnds(ctx, licensing.DueOrderEnd, func(licensing.Ref) licensing.Command {
		return licensing.ExpireOrder{Margin: s.cfg.ExpiryMargin}
	})
}

// RecordLicenseEnds records of licenses that have ended that they have.
func (s *Sweeps) RecordLicenseEnds(ctx context.Context) error {
	return s.recordEnds(ctx, licensing.DueLicenseEnd, func(ref licensing.Ref) licensing.Command {
		return licensing.ExpireLicense{Key: licensing.LicenseKey(ref.ID), Margin: s.cfg.ExpiryMargin}
	})
}

func (s *Sweeps) recordEnds(ctx context.Context, kind licensing.DueKind, record func(licensing.Ref) licensing.Command) error {
	return s.eachDue(ctx, kind, s.engine.Now().Add(-s.cfg.ExpiryMargin), func(ctx context.Context, ref licensing.Ref) error {
		return s.engine.DoInBackground(ctx, ref, record(ref))
	})
}

// worseError returns the error that a pass ends with, of two: the worse one, or the first of
// two that are equally bad. So a pass that ends with an error that says that nothing was
// executed has no record whose outcome is unknown.
func worseError(one, other error) error {
	if severity(other) > severity(one) {
		return other
	}
	return one
}

// severity orders errors by what is known of their records: nil, no room for the pass, not
// executed, anything else.
func severity(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, node.ErrNoRoom):
		return 1
	case licensing.NotExecuted(err):
		return 2
	}
	return 3
}

// EachRefundDue calls send for each order whose refund is due by now, with only
// its number and owner. Several calls may be made at a time. Then it counts what is
// left, also of those that are to be tried later.
func (s *Sweeps) EachRefundDue(ctx context.Context, send func(context.Context, licensing.Order) error) error {
	failed := s.eachDue(ctx, licensing.DueRefund, s.engine.Now(), func(ctx context.Context, ref licensing.Ref) error {
		return send(ctx, licensing.Order{OrderNo: ref.ID, Owner: ref.Owner})
	})
	left, err := s.cfg.Queries.Due(ctx, licensing.DueRefund, s.engine.Now().Add(refundHorizon), "", store.MaxDue)
	if err == nil {
		s.cfg.Metrics.RefundsDue.Set(float64(len(left.Records)))
	}
	return cmp.Or(failed, err)
}

// eachDue does something about the records for which something is due at a
// moment, some at a time, and a bounded number in all: the next pass goes on behind
// them, since those that are put off must not keep others from their turn, however many
// one owner has. One that fails does not keep the others from their turn, unless many
// do, as when the store can't be reached.
func (s *Sweeps) eachDue(ctx context.Context, kind licensing.DueKind, at time.Time, do func(context.Context, licensing.Ref) error) error {
	from := ""
	if last, _ := s.dueFrom.LoadAndDelete(kind); last != nil {
		from = last.(string)
	}
	var failed error
	do = s.traceDue(do)
	for range duePages {
		page, err := s.cfg.Queries.Due(ctx, kind, at, from, store.MaxDue)
		if err != nil {
			return err
		}
		goOn, err := s.doEach(ctx, page.Records, do)
		failed = worseError(failed, err)
		if !goOn || page.Next == "" {
			return failed
		}
		from = page.Next
	}
	s.dueFrom.Store(kind, from)
	return failed
}

// doEach does something about records, in any order: nodes that have read the same
// page should not work on the same records at the same time. It answers an error
// of one that has failed, and whether others may fare better.
func (c *core) doEach(ctx context.Context, records []licensing.Ref, do func(context.Context, licensing.Ref) error) (goOn bool, failed error) {
	rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	var (
		group    sync.WaitGroup
		mu       sync.Mutex
		troubles int
	)
	over := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return troubles >= dueTroubles || ctx.Err() != nil
	}
	free := make(chan struct{}, dueAtOnce)
	for _, ref := range records {
		free <- struct{}{}
		if over() {
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
			switch {
			case errors.Is(err, node.ErrOwnerBusy):
			case errors.Is(err, node.ErrNoRoom):
				troubles = dueTroubles
			case licensing.NotExecuted(err), licensing.ReasonOf(err) == licensing.ReasonOutcomeUnknown:
				troubles++
			}
		})
	}
	group.Wait()
	return !over(), failed
}

// doOne does something about a record. A panic must not end the node: the record
// would be there for the next one.
func (c *core) doOne(ctx context.Context, ref licensing.Ref, do func(context.Context, licensing.Ref) error) (err error) {
	if !c.guard.Do("sweep", func() { err = do(ctx, ref) }) {
		return licensing.ErrInternal
	}
	return err
}

// traceDue has what is done about each record for which something is due traced, as
// far as that is sampled: nobody asks for it from outside.
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
