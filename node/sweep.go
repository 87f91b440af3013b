package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"licet/licensing"
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

// SweepOnce removes all claims whose time is over.
func (n *Node) SweepOnce(ctx context.Context) error {
	before := n.Now().Add(-licensing.ClaimLifetime)
	for {
		swept, err := n.cfg.Store.SweepClaims(ctx, before, store.MaxSweep)
		if err != nil || swept == 0 {
			return err
		}
	}
}

// SweepEvents removes all events that are not kept any more.
func (n *Node) SweepEvents(ctx context.Context) error {
	if n.cfg.Events == nil {
		return nil
	}
	for {
		swept, err := n.cfg.Events.SweepEvents(ctx, n.Now(), n.cfg.KeepEvents)
		if err != nil || swept == 0 {
			return err
		}
	}
}

// SweepWebhooks removes what is left of endpoints that were deleted.
func (n *Node) SweepWebhooks(ctx context.Context) error {
	if n.cfg.Deliveries == nil {
		return nil
	}
	for {
		swept, err := n.cfg.Deliveries.SweepWebhooks(ctx)
		if err != nil || swept == 0 {
			return err
		}
	}
}

// RecordOrderEnds records of orders that have run out that they have.
func (n *Node) RecordOrderEnds(ctx context.Context) error {
	return n.recordEnds(ctx, licensing.DueOrderEnd, func(licensing.Ref) licensing.Command {
		return licensing.ExpireOrder{Margin: n.cfg.ExpiryMargin}
	})
}

// RecordLicenseEnds records of licenses that have ended that they have.
func (n *Node) RecordLicenseEnds(ctx context.Context) error {
	return n.recordEnds(ctx, licensing.DueLicenseEnd, func(ref licensing.Ref) licensing.Command {
		return licensing.ExpireLicense{Key: licensing.LicenseKey(ref.ID), Margin: n.cfg.ExpiryMargin}
	})
}

func (n *Node) recordEnds(ctx context.Context, kind licensing.DueKind, record func(licensing.Ref) licensing.Command) error {
	return n.eachDue(ctx, kind, n.Now().Add(-n.cfg.ExpiryMargin), func(ctx context.Context, ref licensing.Ref) (err error) {
		who := n.shareOf(ref, nil)
		if err := n.admission.enterBackground(who); err != nil {
			return err
		}
		_, err = n.doPlaced(ctx, who, ref, record(ref))
		return err
	})
}

// errNoRoom ends a pass: others wait for what the node could do for them. That is as it
// should be, and the pass is put off.
var errNoRoom = errors.New("the node has much else to do")

// errOwnerBusy puts off what is to be done for one owner, whose own requests wait for
// the node. The pass goes on with the records of other owners.
var errOwnerBusy = fmt.Errorf("%w for the owner of a record", errNoRoom)

// graver returns the error that a pass ends with, of two: the graver one, or the first of
// two that are equally grave. So a pass that ends with an error that says that nothing was
// executed has no record whose outcome is unknown.
func graver(one, other error) error {
	if gravity(other) > gravity(one) {
		return other
	}
	return one
}

// gravity orders errors by what is known of their records: nil, no room for the pass, not
// executed, anything else.
func gravity(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errNoRoom):
		return 1
	case licensing.NotExecuted(err):
		return 2
	}
	return 3
}

// EachRefundDue calls send for each order whose refund is due by now, with only
// its number and owner. Several calls may be made at a time. Then it counts what is
// left, also of those that are to be tried later.
func (n *Node) EachRefundDue(ctx context.Context, send func(context.Context, licensing.Order) error) error {
	failed := n.eachDue(ctx, licensing.DueRefund, n.Now(), func(ctx context.Context, ref licensing.Ref) error {
		return send(ctx, licensing.Order{OrderNo: ref.ID, Owner: ref.Owner})
	})
	left, err := n.cfg.Store.Due(ctx, licensing.DueRefund, n.Now().Add(refundHorizon), "", store.MaxDue)
	if err == nil {
		n.cfg.Metrics.RefundsDue.Set(float64(len(left.Records)))
	}
	return cmp.Or(failed, err)
}

// eachDue does something about the records for which something is due at a
// moment, some at a time, and a bounded number in all: the next pass goes on behind
// them, since those that are put off must not keep others from their turn, however many
// one owner has. One that fails does not keep the others from their turn, unless many
// do, as when the store can't be reached.
func (n *Node) eachDue(ctx context.Context, kind licensing.DueKind, at time.Time, do func(context.Context, licensing.Ref) error) error {
	from := ""
	if last, _ := n.dueFrom.LoadAndDelete(kind); last != nil {
		from = last.(string)
	}
	var failed error
	do = n.traceDue(do)
	for range duePages {
		page, err := n.cfg.Store.Due(ctx, kind, at, from, store.MaxDue)
		if err != nil {
			return err
		}
		goOn, err := n.doEach(ctx, page.Records, do)
		failed = graver(failed, err)
		if !goOn || page.Next == "" {
			return failed
		}
		from = page.Next
	}
	n.dueFrom.Store(kind, from)
	return failed
}

// doEach does something about records, in any order: nodes that have read the same
// page should not work on the same records at the same time. It answers an error
// of one that has failed, and whether others may fare better.
func (n *Node) doEach(ctx context.Context, records []licensing.Ref, do func(context.Context, licensing.Ref) error) (goOn bool, failed error) {
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
		n.guard.StartIn(&group, "sweep", func() {
			defer func() { <-free }()
			ctx, cancel := context.WithTimeout(ctx, dueTimeout)
			defer cancel()
			err := n.doOne(ctx, ref, do)
			if err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			failed = graver(failed, err)
			switch {
			case errors.Is(err, errOwnerBusy):
			case errors.Is(err, errNoRoom):
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
func (n *Node) doOne(ctx context.Context, ref licensing.Ref, do func(context.Context, licensing.Ref) error) (err error) {
	if !n.guard.Do("sweep", func() { err = do(ctx, ref) }) {
		return licensing.ErrInternal
	}
	return err
}
