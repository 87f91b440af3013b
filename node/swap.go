package node

import (
	"context"
	"slices"
	"time"

	"licet/internal/backoff"
	"licet/licensing"
	"licet/node/store"
)

const (
	// swapTries bounds how often a fold is made again after a lost swap.
	swapTries = 12
	// retryPause is the longest pause before the second retry; it doubles with each further retry.
	retryPause    = time.Millisecond
	retryPauseMax = 64 * time.Millisecond
)

// certainty says how much a snapshot proves.
type certainty uint8

const (
	unknown certainty = iota // there is no snapshot: the record must be read
	guessed                  // the store remembers the snapshot; a Commit or a Confirm must prove it
	proven                   // the snapshot was read after the calls came
)

// swap folds calls on a snapshot of their record, stores what the fold makes of the record, and answers
// the calls. After a lost swap, the calls are folded again on the record that the swap lost to. Calls that
// a fold had no room for are folded after it, and so are calls that need more lapsed leases than one swap removes.
func (s *runner) swap(ctx context.Context, ref licensing.Ref, calls []*call, snapshot *store.Snapshot, is certainty) {
	var later []*call      // the calls that had no room, in their order
	var lapsedBy time.Time // if the snapshot has the leases that ended by then
	for losses := 0; ; {
		if len(calls) == 0 {
			if calls, later = stillWanted(later), nil; len(calls) == 0 {
				return
			}
			is, losses, lapsedBy = unknown, 0, time.Time{}
		}
		if is == unknown {
			most := store.MaxTouchedDevices
			if !lapsedBy.IsZero() {
				most = store.MaxWithLapsed
			}
			part, rest := splitAfter(calls, most)
			if !lapsedBy.IsZero() && len(part) > store.MaxLapsed { // each may need one of the devices that are found
				part, rest = calls[:store.MaxLapsed:store.MaxLapsed], calls[store.MaxLapsed:]
			}
			later = slices.Concat(rest, later)
			reading := ctx
			if !lapsedBy.IsZero() {
				reading = s.limits.countSearch(ctx, snapshot.Record.License)
			}
			if snapshot, calls = s.read(reading, ref, part, lapsedBy, true); len(calls) == 0 {
				continue
			}
			is = proven
		}
		at, err := s.timeOfTurn()
		if err != nil {
			answerAll(calls, err)
			calls = nil
			continue
		}
		if lapsedBy.IsZero() {
			calls, lapsedBy, is = s.maySearch(&snapshot.Record, calls, &at, is)
			if len(calls) == 0 || is == unknown {
				continue
			}
		}
		fold := s.fold(ref, snapshot, calls, &at)
		if fold.run < len(calls) {
			later = slices.Concat(calls[fold.run:], later)
			calls = calls[:fold.run:fold.run]
		}
		switch {
		case fold.worthSwap:
			outcome, err := s.commit(ctx, store.Change{Writes: []store.Write{
				{Ref: ref, Token: snapshot.Token, Record: *fold.record},
			}})
			switch {
			case err != nil:
				answerAll(calls, err)
				calls = nil
			case outcome.Landed:
				calls = stillWanted(answerStored(calls))
				is, losses, lapsedBy = unknown, 0, time.Time{}
			default:
				if calls = s.afterLoss(ref, calls, outcome); len(calls) == 0 {
					continue
				}
				if losses++; losses == swapTries || !pause(ctx, losses-1) {
					// Every swap was lost for certain, so nothing has happened.
					answerAll(calls, licensing.ErrUnavailable)
					answerAll(later, licensing.ErrUnavailable)
					return
				}
				lapsedBy = time.Time{}
				if is = unknown; len(outcome.Rivals) > 0 {
					snapshot, is = &outcome.Rivals[0], proven
				}
			}
		case is == guessed:
			switch still, err := s.cfg.Records.Confirm(ctx, ref, snapshot.Token); {
			case err != nil:
				answerAll(calls, err)
				calls = nil
			case still:
				s.answerFold(fold, calls)
				calls = nil
			default:
				calls, is, lapsedBy = stillWanted(calls), unknown, time.Time{}
			}
		default: // the answers hold at the snapshot's revision
			s.answerFold(fold, calls)
			calls = nil
		}
	}
}

// maySearch refuses calls that need lapsed leases or inactive devices that a snapshot does not have, if their license
// or owner has used up its limit. It returns the other calls, up to which time they need such devices, zero if they
// need none, and what is certain then: unknown if the record must be read. A guess refuses no call: the device may hold
// a lease of which this node does not know.
func (s *runner) maySearch(
	record *licensing.Record, calls []*call, at *turnTime, is certainty,
) (rest []*call, lapsedBy time.Time, then certainty) {
	if !needsSearch(record, calls, at) {
		return calls, time.Time{}, is
	}
	for _, c := range calls {
		if record.SearchesDevices(c.cmd, len(calls), at.now) {
			switch err := s.limits.refuseSearch(record.License, c); {
			case err != nil && is == guessed:
				return calls, time.Time{}, unknown
			case err != nil:
				c.fail(err)
				continue
			}
			lapsedBy, then = record.LapsedBy(at.now), unknown
		}
		rest = append(rest, c)
	}
	if lapsedBy.IsZero() {
		then = is
	}
	return rest, lapsedBy, then
}

// needsSearch reports whether a call needs lapsed leases or inactive devices that a snapshot does not have.
func needsSearch(record *licensing.Record, calls []*call, at *turnTime) bool {
	if record.License == nil || !record.License.ActsByTime() {
		return false
	}
	at.note(record)
	return slices.ContainsFunc(calls, func(c *call) bool {
		return record.SearchesDevices(c.cmd, len(calls), at.now)
	})
}

// commit stores a change, and counts what it wrote. Rivals hold as of the time before the commit. All changes of the
// engine go this way.
func (s *runner) commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	asOf := s.Now()
	outcome, err := s.cfg.Records.Commit(ctx, change)
	setAsOf(outcome.Rivals, asOf)
	s.limits.wrote(&change, outcome.Bytes)
	return outcome, err
}

// afterLoss returns the calls of a lost swap that this node folds again. Calls that hop to the node that
// owns the record are marked for the outbox.
func (s *runner) afterLoss(ref licensing.Ref, calls []*call, lost store.Outcome) []*call {
	calls = stillWanted(calls)
	if len(calls) > 0 && s.placement.lost(ref, writerOf(lost.Rivals)) {
		calls = s.sendAway(calls)
	}
	return calls
}

// writerOf returns the incarnation that wrote the record that a swap was lost to; zero if the swap did not
// bring the record back.
func writerOf(rivals []store.Snapshot) store.Incarnation {
	if len(rivals) == 0 {
		return store.Incarnation{}
	}
	return rivals[0].Writer
}

// stillWanted drops the calls that were answered with "outcome unknown": an answered command is never run again.
func stillWanted(calls []*call) []*call {
	unwanted := func(c *call) bool { return c.state.Load() != callTaken || c.isOver() }
	if !slices.ContainsFunc(calls, unwanted) { // true in most turns
		return calls
	}
	return slices.DeleteFunc(slices.Clone(calls), unwanted)
}

// pause waits a random time after lost swap number try, from 0, and not at all after the first. pause
// reports false if ctx has ended.
func pause(ctx context.Context, try int) bool {
	if try == 0 {
		return ctx.Err() == nil
	}
	return backoff.Exponential{First: retryPause, Longest: retryPauseMax}.Wait(ctx, try-1)
}
