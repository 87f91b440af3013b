package service

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"licet/internal/backoff"
	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

const (
	// rolloutPage is how many licenses a step of a rollout changes at most.
	rolloutPage = 64
	// rolloutsAtOnce bounds the rollouts that the node runs, each of another owner.
	rolloutsAtOnce = 16
	// pausedPasses is how many times longer a rollout over its account's budget rests than it takes until another node
	// continues it.
	pausedPasses = 5
)

// Rollouts offers the use cases of rollouts of a product's terms to earlier licenses.
//
// The product's record has the whole state of its rollout. The node that begins a rollout runs it, a page of licenses
// after another, and stores after each page how far it has come. If it has stored nothing for Config.SweepEvery, since
// it was killed or has much else to do, the rollout is due, and a sweep of any node runs it from there. Two nodes that
// run a rollout for a moment do no harm: a license that has the terms does not change, and only one of the nodes stores
// its page. The other one gives up.
type Rollouts struct {
	*core
	running sync.Map // the owners whose rollout the node runs
	places  chan struct{}
}

// BeginRollout begins a rollout of a product, and returns the product with it; see licensing.BeginRollout. With once,
// repeating the request returns the product as it is now, and replayed is true.
func (r *Rollouts) BeginRollout(
	ctx context.Context, owner licensing.Owner, productID string, cmd licensing.BeginRollout, once *node.Once,
) (product licensing.Product, replayed bool, err error) {
	if err := r.budgets.learn(ctx, owner); err != nil {
		return licensing.Product{}, false, err
	}
	cmd.Lapse = r.cfg.SweepEvery
	ref := licensing.ProductRef(owner, productID)
	run := func(place node.Place, claim *node.Claim) (licensing.Product, bool, error) {
		claim.Effect.ProductID = productID
		result, err := place.DoOnce(ctx, ref, cmd, claim)
		switch {
		case err != nil:
			return licensing.Product{}, claim.Replayed(), err
		case claim.Replayed():
			product, err := r.readProduct(ctx, owner, productID)
			return product, err == nil, err
		}
		_ = r.start(ref) // a sweep starts it if this node can't
		return *result.Product, false, nil
	}
	return idempotent(ctx, r.core, owner, once, nil, run)
}

// CancelRollout ends the rollout of a product, and returns the product with it; see licensing.CancelRollout. A node may
// still change the rest of a page.
func (r *Rollouts) CancelRollout(
	ctx context.Context, owner licensing.Owner, productID string,
) (licensing.Product, error) {
	result, err := r.engine.Do(ctx, licensing.ProductRef(owner, productID), licensing.CancelRollout{})
	if err != nil {
		return licensing.Product{}, err
	}
	return *result.Product, nil
}

// ContinueRollouts starts the rollouts that no node runs.
func (s *Sweeps) ContinueRollouts(ctx context.Context) error {
	now, err := s.timeToActBy()
	if err != nil {
		return err
	}
	return s.eachDue(ctx, licensing.DueRollout, store.DueSpan{Until: now},
		func(_ context.Context, ref licensing.Ref) error { return s.rollouts.start(ref) })
}

// start begins to run a rollout, unless the node runs one of the owner. It fails with ErrNoRoom if the node runs as
// many rollouts as it may.
func (r *Rollouts) start(ref licensing.Ref) error {
	if _, busy := r.running.LoadOrStore(ref.Owner, struct{}{}); busy {
		return nil
	}
	select {
	case r.places <- struct{}{}:
	default:
		r.running.Delete(ref.Owner)
		return node.ErrNoRoom
	}
	r.guard.Start("rollout", func() {
		defer func() {
			r.running.Delete(ref.Owner)
			<-r.places
		}()
		r.run(ref)
	})
	return nil
}

// run runs steps of a rollout, until it has ended, or can't go on now, or has had its turn: then a sweep starts the
// rollouts that have waited for longer. Between two steps it rests for as long as the step before took. It measures by
// a clock that can't be set: else a step of the node's clock could make a rest of hours.
func (r *Rollouts) run(ref licensing.Ref) {
	for began := time.Now(); time.Since(began) < passesPerPeriod*r.cfg.SweepEvery; {
		at := time.Now()
		more, err := r.step(ref)
		if err != nil && !putOff(err) && !licensing.NotExecuted(err) {
			r.cfg.Log.Warn().Err(err).Str("account_id", ref.Owner.AccountID).Str("mode", string(ref.Owner.Mode)).
				Str("product_id", ref.ID).Msg("a rollout was interrupted; a sweep continues it")
		}
		if err != nil || !more || !backoff.Sleep(context.Background(), time.Since(at)) {
			return
		}
	}
}

// step changes the next page of licenses of a rollout, and stores how far the rollout has come. It reports whether the
// rollout may go on at once.
func (r *Rollouts) step(ref licensing.Ref) (more bool, err error) {
	if err := r.engine.StartWork(); err != nil {
		return false, err
	}
	defer r.engine.EndWork()
	if r.engine.Space() != store.SpaceFree {
		return false, errNoSpace
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*dueTimeout)
	defer cancel()
	if err := r.budgets.learn(ctx, ref.Owner); err != nil {
		return false, err
	}
	p, err := r.readProduct(ctx, ref.Owner, ref.ID)
	if errors.Is(err, licensing.ErrProductNotFound) || err == nil && !p.Rollout.UnderWay() {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if !p.Rollout.Applies.Valid() {
		return false, nil // newer nodes do it: this node would leave out terms that it does not know
	}
	list, err := admittedToList(ctx, r.core, ref.Owner, func() (store.List[store.LicenseView], error) {
		page := store.Page{Before: store.Position(p.Rollout.Cursor), Limit: rolloutPage, Scan: store.MaxListScan}
		return r.cfg.Queries.ListLicenses(ctx, ref.Owner, licensing.Customer{}, page,
			func(v *store.LicenseView) bool { return p.InRollout(&v.License) })
	})
	if err != nil {
		return false, err
	}
	advance, err := r.roll(ctx, &p, &list)
	if advance.Counts == (licensing.RolloutCounts{}) && err != nil && !advance.OverBudget {
		return false, err
	}
	_, failed := r.engine.Do(ctx, ref, advance)
	if errors.Is(failed, licensing.ErrRolloutNotFound) || errors.Is(failed, licensing.ErrProductNotFound) {
		return false, nil // it was canceled, or another node has done the page
	}
	return err == nil && failed == nil && !advance.Done, worseError(err, failed)
}

// roll changes a page of licenses, some at the same time, and returns how far the rollout has come with that. If it
// fails, the page is to be done again, without the licenses that have changed. It does not fail for licenses that can't
// be changed at any time: they count.
func (r *Rollouts) roll(
	ctx context.Context, p *licensing.Product, list *store.List[store.LicenseView],
) (licensing.AdvanceRollout, error) {
	o := &p.Rollout
	advance := licensing.AdvanceRollout{StartedAt: o.StartedAt, Cursor: o.Cursor, Next: string(list.Next),
		Done: list.Next == "", Lapse: r.cfg.SweepEvery}
	commands := make(map[licensing.Ref]licensing.ApplyTerms)
	var refs []licensing.Ref
	now := r.engine.Now()
	for i := range list.Items {
		l := &list.Items[i].License
		cmd, copied := p.ApplyTerms(l), *l
		after := licensing.Record{License: &copied}
		advance.Counts.Licenses++
		if cmd.KeepsLimit(l) {
			advance.Counts.LimitsKept++
		}
		if _, err := licensing.Apply(&after, cmd, now); err == nil && after.Changed {
			ref := licensing.LicenseRef(l.Key)
			refs, commands[ref] = append(refs, ref), cmd
		}
	}
	if o.DryRun {
		advance.Counts.Updated = len(refs)
		return advance, nil
	}
	var updated, failed atomic.Int64
	var overBudget atomic.Bool
	all, err := r.doEach(ctx, refs, func(ctx context.Context, ref licensing.Ref) error {
		result, err := r.engine.DoInBackground(ctx, ref, commands[ref])
		switch reason := licensing.ReasonOf(err); {
		case err == nil:
			if p.InRollout(&result.License) {
				updated.Add(1)
			}
		case reason == licensing.ReasonAccountBudgetReached:
			overBudget.Store(true)
			return node.ErrOwnerBusy // the other licenses may need no budget
		case putOff(err), licensing.NotExecuted(err), reason == licensing.ReasonOutcomeUnknown,
			reason == licensing.ReasonRateLimited:
			return err
		default:
			failed.Add(1)
			r.cfg.Log.Error().Err(err).Str("account_id", p.Owner.AccountID).Str("mode", string(p.Owner.Mode)).
				Str("product_id", p.ID).Msg("a rollout can't change a license")
		}
		return nil
	})
	if err == nil && !all {
		err = licensing.ErrUnavailable // ctx has ended
	}
	advance.Counts.Updated, advance.Counts.Failed = int(updated.Load()), int(failed.Load())
	if err == nil {
		return advance, nil
	}
	advance.Next, advance.Done, advance.Counts = o.Cursor, false, licensing.RolloutCounts{Updated: int(updated.Load())}
	if advance.OverBudget = overBudget.Load(); advance.OverBudget {
		advance.Lapse *= pausedPasses
	}
	return advance, err
}
