package node

import (
	"time"

	"licet/licensing"
	"licet/node/store"
)

// While the store is almost full, a node refuses growth beyond licensing.RequiredGrowth, and does not store when
// devices were seen. Removals, suspensions, revocations, payments, refunds and renewals go on until the store is full:
// then the store refuses each change that puts a key.

// RefuseGrowth fails with ErrReserve or ErrFull, and counts a refusal, if the store has no room for growth now.
// Callers ask before they authenticate or decode a request: a refusal costs no request to the store.
func (s *settler) RefuseGrowth() error {
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
func (s *settler) Space() store.Space { return s.cfg.Queries.Space() }

// permitted returns the command that a call runs on a record, or the error of a limit that refuses the call. The
// command is the call's own, unless the store is almost full: then growth is refused, and an activation of a bound
// device stores nothing.
func (s *settler) permitted(record *licensing.Record, c *call, now time.Time) (licensing.Command, error) {
	if s.Space() == store.SpaceFree {
		return c.cmd, s.limits.refuse(record, c, now)
	}
	if licensing.GrowthOf(c.cmd, record, now) > licensing.RequiredGrowth {
		if err := s.RefuseGrowth(); err != nil {
			return nil, err
		}
	}
	return licensing.WithoutRefresh(c.cmd), nil
}
