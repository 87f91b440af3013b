package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"

	"licet"
)

const (
	// swapTries bounds how often a fold is made again after a lost swap.
	swapTries = 12
	// retryPause is the longest pause before the second retry; it doubles.
	retryPause    = time.Millisecond
	retryPauseMax = 64 * time.Millisecond
)

// settle answers the calls of one turn: load, fold, swap, and again on a loss.
// Whatever happens in it, every call has its answer when it returns.
func (n *Node) settle(ref licet.Ref, calls []*call) {
	defer func() {
		if p := recover(); p != nil {
			n.reportPanic("mailbox", p)
			for _, c := range calls {
				c.answer(licet.Result{}, licet.ErrInternal)
			}
		}
	}()
	ctx, cancel := turnContext(calls)
	defer cancel()
	n.cfg.Metrics.FoldCommands.Observe(float64(len(calls)))

	loaded, err := n.cfg.Store.Load(ctx, Want{Ref: ref, Devices: touched(calls)})
	if err != nil {
		answerAll(calls, err)
		return
	}
	// Whoever was told meanwhile that the outcome is unknown must not be run on
	// this snapshot: it may hold changes that came after that answer.
	if calls = stillWanted(calls); len(calls) == 0 {
		return
	}
	snapshot := loaded[0]
	for try := range swapTries {
		fold := n.fold(snapshot, calls)
		if !fold.record.Changed {
			// Nothing to store: the answers hold at the snapshot's revision,
			// which was read after the calls came.
			fold.answer(calls)
			return
		}
		outcome, err := n.cfg.Store.Commit(ctx, Change{Writes: []Write{
			{Ref: ref, Token: snapshot.Token, Record: fold.record},
		}})
		if err != nil {
			answerAll(calls, err)
			return
		}
		if outcome.Landed {
			fold.answer(calls)
			return
		}
		n.cfg.Metrics.SwapsLost.Inc()
		snapshot = outcome.Rivals[0]
		if calls = stillWanted(calls); len(calls) == 0 {
			return
		}
		if !pause(ctx, try) {
			break
		}
	}
	// Every swap was lost for certain, so nothing has happened.
	answerAll(calls, licet.ErrUnavailable)
}

// foldResult is what a fold of calls makes of a record. The answers stand in
// the order of the calls.
type foldResult struct {
	record  licet.Record
	answers []answer
}

type answer struct {
	result licet.Result
	err    error
}

func (f foldResult) answer(calls []*call) {
	for i, c := range calls {
		c.answer(f.answers[i].result, f.answers[i].err)
	}
}

// fold runs the calls one by one on a copy of the snapshot. A call that
// panics is answered with ErrInternal, and the fold starts over without it,
// since it may have left the copy half changed.
func (n *Node) fold(snapshot Snapshot, calls []*call) foldResult {
	answers := make([]answer, len(calls))
	poisoned := make([]bool, len(calls))
	now := n.Now()
again:
	record := snapshot.Record.Clone()
	for i, c := range calls {
		if poisoned[i] {
			continue
		}
		result, err, panicked := n.apply(&record, c.cmd, now)
		if panicked {
			poisoned[i] = true
			answers[i] = answer{err: licet.ErrInternal}
			goto again
		}
		answers[i] = answer{result: result, err: err}
	}
	return foldResult{record: record, answers: answers}
}

func (n *Node) apply(record *licet.Record, cmd licet.Command, now time.Time) (result licet.Result, err error, panicked bool) {
	defer func() {
		if p := recover(); p != nil {
			n.reportPanic(fmt.Sprintf("%T", cmd), p)
			panicked = true
		}
	}()
	result, err = licet.Apply(record, cmd, now)
	return result, err, false
}

// reportPanic logs where a panic came from. Of its value only the type is
// logged, unless it is the runtime's own: it may hold what a caller sent.
func (n *Node) reportPanic(where string, p any) {
	n.cfg.Metrics.Panics.Inc()
	event := n.cfg.Log.Error().Str("where", where).Str("type", fmt.Sprintf("%T", p))
	if fault, ok := p.(runtime.Error); ok {
		event = event.Str("fault", fault.Error())
	}
	event.Str("stack", string(debug.Stack())).Msg("panic")
}

func answerAll(calls []*call, err error) {
	for _, c := range calls {
		c.answer(licet.Result{}, err)
	}
}

// stillWanted drops the calls whose callers were told that the outcome is
// unknown: a command that has been answered is never run again.
func stillWanted(calls []*call) []*call {
	var wanted []*call
	for _, c := range calls {
		if c.state.Load() == callTaken {
			wanted = append(wanted, c)
		}
	}
	return wanted
}

func touched(calls []*call) []string {
	var ids []string
	seen := make(map[string]struct{}, len(calls))
	for _, c := range calls {
		id := c.cmd.DeviceID()
		if _, known := seen[id]; known || id == "" {
			continue
		}
		seen[id] = struct{}{}
		ids = append(ids, id)
	}
	return ids
}

// pause waits a random while after lost swap number try, none after the first.
// It reports false when ctx has ended.
func pause(ctx context.Context, try int) bool {
	if try == 0 {
		return ctx.Err() == nil
	}
	longest := min(retryPause<<(try-1), retryPauseMax)
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
