package node

import (
	"context"
	"slices"

	"licet/licensing"
	"licet/node/store"
)

// WithRecordLock runs a task in a record's mailbox: meanwhile no command runs on the record here, and no
// swap of the record is under way. A task may so change several records in one transaction, if it holds
// the locks of them all. A task that holds an order's lock may take the lock of the order's license or of its product
// too, and a task that holds an alias's lock may take the lock of a product; never the other way round, or two tasks
// could wait for each other.
//
// A task goes before all calls that wait, and has a turn of its own. A task that has begun has ended when
// WithRecordLock returns, so it must stop when its ctx ends.
func (n *Node) WithRecordLock(
	ctx context.Context, ref licensing.Ref, task func(context.Context) (licensing.Result, error),
) (licensing.Result, error) {
	return n.doCall(ctx, ref, &call{kind: kindTask, task: task})
}

// WithRecordLocks runs a task with the locks of several records, which it takes one after the other.
func (n *Node) WithRecordLocks(
	ctx context.Context, refs []licensing.Ref, task func(context.Context) (licensing.Result, error),
) (licensing.Result, error) {
	if len(refs) == 0 {
		return task(ctx)
	}
	return n.WithRecordLock(ctx, refs[0], func(ctx context.Context) (licensing.Result, error) {
		return n.WithRecordLocks(ctx, refs[1:], task)
	})
}

// LockAndSwap is SwapTogether with the locks of all records, which it takes in the order of the steps.
func (n *Node) LockAndSwap(ctx context.Context, steps ...Step) (licensing.Result, error) {
	locks := make([]licensing.Ref, len(steps))
	for i := range steps {
		locks[i] = steps[i].Ref
	}
	return n.WithRecordLocks(ctx, locks, func(ctx context.Context) (licensing.Result, error) {
		return n.SwapTogether(ctx, steps...)
	})
}

// LockAndSwapInBackground is LockAndSwap for a change that no caller waits for, of records of the owner of the first
// one. It is refused as DoInBackground is.
func (n *Node) LockAndSwapInBackground(ctx context.Context, steps ...Step) (result licensing.Result, err error) {
	who := n.shareOf(steps[0].Ref, nil)
	if err := n.admission.enterBackground(who); err != nil {
		return licensing.Result{}, err
	}
	defer func() { n.admission.leave(who, err) }()
	return n.LockAndSwap(ctx, steps...)
}

// queueFirst lets a task wait in a mailbox that is running, before all other calls: tasks are rare, and a
// storm on the record must not keep them out. The shard's lock is held.
func (l *lifecycle) queueFirst(box *mailbox, c *call) error {
	if l.Draining() {
		return errDraining
	}
	box.queue = slices.Insert(box.queue, 0, c)
	box.own++
	return nil
}

// Step is one command of several that one transaction makes together.
type Step struct {
	Ref licensing.Ref
	Cmd licensing.Command
	// Then, in place of Cmd, makes the command from the result of the first step: a value that is copied from one
	// record to another must be current at the moment of the swap.
	Then func(first licensing.Result) licensing.Command
	// After is Then with the result of the step before.
	After func(before licensing.Result) licensing.Command
	// Guarded: if another record changes, this record is written even if the command changes nothing, so that it can't
	// change between its read and the swap.
	Guarded bool

	call *call // of Cmd, which the node's limits may refuse; nil: no limit counts the command
}

func (s Step) command(first, before licensing.Result) licensing.Command {
	switch {
	case s.Then != nil:
		return s.Then(first)
	case s.After != nil:
		return s.After(before)
	}
	return s.Cmd
}

const (
	// togetherTries bounds how often SwapTogether tries: meanwhile the records' mailboxes stand still. On a license
	// under a storm on two nodes, one call in seven takes more than ten tries.
	togetherTries = swapTries * togetherBurst
	// togetherBurst is how many tries of SwapTogether come without a pause between them. If another node writes one
	// of the records all the time, the snapshot that a lost swap returns is soon out of date.
	togetherBurst = 8
)

// SwapTogether runs commands, each on a record of its own, and stores the changed records in one transaction. It
// returns the result of the first command. If a command is refused, SwapTogether stores nothing. The caller must
// hold the locks of all records. After a swap that is lost to another node, SwapTogether tries again on the records
// that the other node wrote. After togetherTries, or when ctx has ended, SwapTogether fails with ErrUnavailable.
func (s *runner) SwapTogether(ctx context.Context, steps ...Step) (licensing.Result, error) {
	return s.SwapTogetherOnce(ctx, &Claim{}, steps...)
}

// SwapTogetherOnce is SwapTogether for the request of a claim, which the same transaction stores. If the request was
// made before, SwapTogetherOnce stores nothing, and the claim is Replayed. A command with an Idempotency-Key runs as
// one step, in a turn of its own.
func (s *runner) SwapTogetherOnce(ctx context.Context, c *Claim, steps ...Step) (licensing.Result, error) {
	wants := make([]store.Want, len(steps))
	for i, step := range steps {
		cmd := step.command(licensing.Result{}, licensing.Result{}) // what it needs does not depend on its values
		wants[i] = wantOf(step.Ref, []*call{{cmd: cmd}})
	}
	wants = c.join(wants)
	var known []store.Snapshot // of all records, and of the claim
	for try := range togetherTries {
		if burst, first := try/togetherBurst, try%togetherBurst == 0; first && !pause(ctx, burst) {
			break
		}
		if len(known) != len(wants) {
			var err error
			if known, err = s.load(ctx, wants...); err != nil {
				return licensing.Result{}, err
			}
		}
		snapshots, err := c.split(known)
		if err != nil || c.Replayed() {
			return licensing.Result{}, err
		}
		answer, writes, err := s.applySteps(steps, snapshots)
		if c.EffectOf != nil && err == nil {
			c.Effect = c.EffectOf(answer)
		}
		change := c.Change(s.Now(), err, writes...)
		if change == nil || len(change.Writes) == 0 {
			return answer, err
		}
		outcome, failed := s.commit(ctx, *change)
		if failed != nil {
			return licensing.Result{}, failed
		}
		if outcome.Landed {
			return answer, err
		}
		known = outcome.Rivals // of all only if all were to be written
	}
	return licensing.Result{}, licensing.ErrUnavailable // every swap was lost for certain
}

// applySteps runs each command on its record, and returns the writes.
func (s *runner) applySteps(
	steps []Step, snapshots []store.Snapshot,
) (answer licensing.Result, writes []store.Write, err error) {
	at, err := s.timeOfTurn()
	if err != nil {
		return licensing.Result{}, nil, err
	}
	before, changed := licensing.Result{}, false
	for i, step := range steps {
		record, asOf := snapshots[i].Record, snapshots[i].AsOf
		var outcome Answer
		var panicked bool
		if c := step.call; c != nil {
			panicked = s.run(step.Ref, &record, c, &at, asOf)
			outcome = c.outcome
		} else {
			panicked = s.apply(&record, step.command(answer, before), &at, asOf, &outcome)
		}
		before = outcome.Result
		switch {
		case panicked:
			return licensing.Result{}, nil, licensing.ErrInternal
		case outcome.Err != nil:
			return licensing.Result{}, nil, outcome.Err
		case i == 0:
			answer = before
		}
		changed = changed || record.Changed
		if record.Changed || step.Guarded {
			writes = append(writes, store.Write{Ref: step.Ref, Token: snapshots[i].Token, Record: record})
		}
	}
	if !changed {
		writes = nil
	}
	return answer, writes, nil
}
