package node

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"licet/licensing"
	"licet/node/store"
)

const (
	// swapTries bounds how often a fold is made again after a lost swap.
	swapTries = 12
	// retryPause is the longest pause before the second retry; it doubles.
	retryPause    = time.Millisecond
	retryPauseMax = 64 * time.Millisecond
)

// swap stores what a fold made of a snapshot, and answers its calls. Calls that the fold
// had no room for are settled after it, on what it has made of the record.
func (n *Node) swap(ctx context.Context, ref licensing.Ref, calls []*call, snapshot store.Snapshot, fold foldResult) {
	if rest := stillWanted(n.swapFold(ctx, ref, calls, snapshot, fold)); len(rest) > 0 {
		n.readAndSwap(ctx, ref, rest)
	}
}

// swapFold stores what a fold made of a snapshot, and answers its calls. After a loss they
// are folded again on what they lost to. It returns the calls that a fold had no room for.
func (n *Node) swapFold(ctx context.Context, ref licensing.Ref, calls []*call, snapshot store.Snapshot, fold foldResult) (rest []*call) {
	for try := range swapTries {
		if len(fold.answers) < len(calls) {
			var left []*call
			calls, left = fold.split(calls)
			rest = append(slices.Clone(left), rest...)
		}
		if !fold.worthSwap {
			// Nothing to store: the answers hold at the snapshot's revision,
			// which was read in the swap that was lost.
			n.answerFold(fold, calls)
			return rest
		}
		outcome, err := n.cfg.Records.Commit(ctx, store.Change{Writes: []store.Write{
			{Ref: ref, Token: snapshot.Token, Record: fold.record},
		}})
		if err != nil {
			answerAll(calls, err)
			return rest
		}
		if outcome.Landed {
			fold.answer(calls)
			return rest
		}
		if calls = stillWanted(calls); len(calls) == 0 {
			return rest
		}
		if n.placement.lost(ref, writerOf(outcome.Rivals)) {
			if calls = n.sendAway(calls); len(calls) == 0 {
				return rest
			}
		}
		if !pause(ctx, try) {
			break
		}
		if len(outcome.Rivals) > 0 {
			snapshot = outcome.Rivals[0]
		} else if len(fold.record.Devices) > store.MaxTouchedDevices {
			n.readAndSwap(ctx, ref, calls) // in parts, of which none comes here again
			return rest
		} else if snapshot, calls = n.read(ctx, ref, calls); len(calls) == 0 {
			return rest
		}
		fold = n.fold(snapshot, calls)
	}
	// Every swap was lost for certain, so nothing has happened.
	answerAll(calls, licensing.ErrUnavailable)
	answerAll(rest, licensing.ErrUnavailable)
	return nil
}

// writerOf is who wrote the record that a swap was lost to; zero where the swap
// did not bring that back.
func writerOf(rivals []store.Snapshot) store.Incarnation {
	if len(rivals) == 0 {
		return store.Incarnation{}
	}
	return rivals[0].Writer
}

// stillWanted drops the calls whose callers were told that the outcome is
// unknown: a command that has been answered is never run again.
func stillWanted(calls []*call) []*call {
	var wanted []*call
	for _, c := range calls {
		if c.state.Load() == callTaken && !c.isOver() {
			wanted = append(wanted, c)
		}
	}
	return wanted
}

// pause waits a random while after lost swap number try, none after the first.
// It reports false when ctx has ended.
func pause(ctx context.Context, try int) bool {
	if try == 0 {
		return ctx.Err() == nil
	}
	longest := min(retryPause<<min(try-1, 10), retryPauseMax) // a shift that is bounded can't overflow
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
