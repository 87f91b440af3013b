package service

import (
	"context"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// EventReading is a node's right to read the events of an account at a payment provider: no other node reads the events
// meanwhile.
type EventReading struct {
	Owner licensing.Owner      // of the account; without an account id: of the account that other owners share
	Read  store.ProviderEvents // how far they are read; for the caller to change
	Now   time.Time            // the node's
	// Rest is how long no node reads the events after End; for the caller to change.
	Rest time.Duration

	sweeps   *Sweeps
	revision int64
}

// EachProviderEvents calls read for the accounts at payment providers whose events are due to be read, some at the same
// time. One node at a time reads the events of an account. read has less than dueTimeout; then another node may go on.
func (s *Sweeps) EachProviderEvents(
	ctx context.Context, accounts []licensing.Owner, read func(context.Context, *EventReading) error,
) error {
	if _, err := s.timeToActBy(); err != nil {
		return err
	}
	var slots []licensing.Slot
	bySlot := map[licensing.Slot][]licensing.Ref{}
	for _, owner := range accounts {
		slot := licensing.SlotOf(owner)
		if bySlot[slot] == nil {
			slots = append(slots, slot)
		}
		bySlot[slot] = append(bySlot[slot], licensing.Ref{Owner: owner})
	}
	var mine []licensing.Ref
	for _, slot := range s.ownSlots(slots, s.engine.Now()) {
		mine = append(mine, bySlot[slot]...)
	}
	_, failed := s.doEach(ctx, mine, s.whileTrusted(func(ctx context.Context, ref licensing.Ref) error {
		reading, err := s.beginReading(ctx, ref.Owner)
		if err != nil || reading == nil {
			return err
		}
		return read(ctx, reading)
	}))
	return failed
}

// beginReading takes the right to read the events of an account; nil: the events are not due, or another node reads
// them. beginReading stores when the next node may read, before the first request to the provider: nodes bound their
// requests by that time.
func (s *Sweeps) beginReading(ctx context.Context, owner licensing.Owner) (*EventReading, error) {
	now := s.engine.Now()
	read, revision, err := s.cfg.Sweeps.ReadProviderEvents(ctx, owner)
	// A clock that was days ahead may have set Next.
	if err != nil || read.Next.After(now) && read.Next.Before(now.Add(2*maxEventRest)) {
		return nil, err
	}
	read.Next = now.Add(dueTimeout)
	revision, err = s.cfg.Sweeps.PutProviderEvents(ctx, owner, read, revision)
	if err != nil || revision == 0 {
		return nil, err
	}
	return &EventReading{owner, read, now, s.cfg.SweepEvery / 2, s, revision}, nil
}

// maxEventRest is the longest EventReading.Rest.
const maxEventRest = time.Hour

// Keep stores how far the events are read, and keeps the right to read. It reports whether the node still has the
// right.
func (r *EventReading) Keep(ctx context.Context) (mine bool, err error) {
	r.revision, err = r.sweeps.cfg.Sweeps.PutProviderEvents(ctx, r.Owner, r.Read, r.revision)
	return r.revision != 0, err
}

// End stores how far the events are read, and gives up the right to read.
func (r *EventReading) End(ctx context.Context) error {
	r.Read.Next = r.sweeps.engine.Now().Add(min(r.Rest, maxEventRest))
	_, err := r.Keep(ctx)
	return err
}

// ReportEvents logs why the events of an account at a payment provider can't be read, or which object that an event has
// named is given up.
func (s *Sweeps) ReportEvents(account licensing.Owner, object, problem string, err error) {
	line := s.cfg.Log.Error().Err(err).Str("account_id", account.AccountID).Str("mode", string(account.Mode))
	if object != "" {
		line = line.Str("object", object)
	}
	line.Msg(problem)
}
