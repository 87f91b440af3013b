package node

import (
	"time"

	"licet/licensing"
	"licet/node/store"
)

// While the store is almost full, a node refuses growth beyond licensing.UrgentGrowth, and does not store when devices
// were seen, except once an hour for licenses that lose inactive devices. Removals, suspensions, revocations, payments,
// refunds, renewals, and the day of the receipts that requests ask for, which a license stores at most once a day, work
// until the store is full: then the store refuses each change that puts a key.

// RefuseGrowth fails with ErrReserve or ErrFull, and counts a refusal, if the store has no room for growth now.
// Callers ask before they authenticate or decode a request: a refusal costs no request to the store.
func (s *runner) RefuseGrowth() error {
	space := s.Space()
	if space == store.SpaceFree {
		return nil
	}
	s.cfg.Metrics.GrowthRefused.WithLabelValues(space.String()).Inc()
	if space == store.SpaceFull {
		return store.ErrFull
	}
	return store.ErrReserve
}

// Space returns which changes the store has room for.
func (s *runner) Space() store.Space { return s.cfg.Queries.Space() }

// runInReserve runs a call on a record while the store is almost full: it refuses growth, and an activation of a bound
// device stores nothing but its lease, the day of its receipt, and what licensing.StoresSeen says. It bounds the other
// changes of each owner, since each of them is a write too.
func (s *runner) runInReserve(
	ref licensing.Ref, record *licensing.Record, c *call, at *turnTime, asOf time.Time,
) (panicked bool) {
	growth := licensing.GrowthOf(c.cmd, record, at.now)
	if growth > licensing.UrgentGrowth {
		if err := s.RefuseGrowth(); err != nil {
			return c.refused(err)
		}
	}
	if err := s.overBudget(ref, record, c, growth); err != nil {
		return c.refused(err)
	}
	who, limited := changerOf(ref, record, c.cmd, at.now)
	limited = limited && !c.counted && s.Space() == store.SpaceReserve // a full store refuses the changes itself
	if limited {
		if err := s.changes.refuse(who); err != nil {
			return c.refused(err)
		}
	}
	changed := record.Changed
	record.Changed = false
	panicked = s.apply(record, licensing.WithoutRefresh(c.cmd), at, asOf, &c.outcome)
	if limited && (record.Changed || c.kind == kindClaimed) {
		s.changes.count(who)
		c.counted = true
	}
	record.Changed = record.Changed || changed
	return panicked
}

// TakeChange counts a change of an owner that no command makes, or fails if the owner has made too many changes while
// the store keeps its reserve.
func (s *runner) TakeChange(owner licensing.Owner) error {
	if s.Space() != store.SpaceReserve {
		return nil
	}
	return s.changes.take(changer{owner: owner})
}

// TakeClaim counts a request with an Idempotency-Key of an owner beyond its budget, or fails if the owner has made too
// many. No budget refuses changes such as suspensions and refunds, but each new Idempotency-Key stores a claim.
func (s *runner) TakeClaim(owner licensing.Owner) error { return s.claims.take(changer{owner: owner}) }
