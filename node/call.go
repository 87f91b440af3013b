package node

import (
	"context"
	"sync/atomic"
	"time"

	"licet/licensing"
)

// The states of a call. A call is answered exactly once: either its turn wins the step to answered,
// or the waiting caller gives up and wins the step to abandoned. A turn never folds an abandoned call
// again.
const (
	callWaiting int32 = iota
	callTaken
	callAnswered
	callAbandoned
)

// callKind says how a turn runs a call.
type callKind uint8

const (
	// kindCommand is a command. A turn folds it together with other commands on the record.
	kindCommand callKind = iota
	// kindClaimed is a command with an Idempotency-Key. It has a turn of its own, because its
	// transaction also writes the claim.
	kindClaimed
	// kindTask is work on a record while no command runs on the record. It has a turn of its own. See
	// WithRecordLock.
	kindTask
)

// turn is what a mailbox runs at once: the commands of a fold, or one claimed command, or one task.
type turn struct {
	kind  callKind // of all calls
	calls []*call
}

// call is one command or task on its way through a mailbox.
type call struct {
	kind  callKind
	cmd   licensing.Command                               // nil of a task
	claim *Claim                                          // of kindClaimed
	task  func(context.Context) (licensing.Result, error) // of kindTask

	deadline time.Time
	hopped   bool // another node sent the call, and knows that the call ends at its deadline
	leaving  bool // the call goes to the outbox after the turn; only the turn uses this
	waited   bool // the call has waited for a turn that another goroutine runs
	counted  bool // the write limits, or the limit of changes, have counted the call; only the turn uses this
	state    atomic.Int32
	who      atomic.Uint32 // the share that the call counts for; see countForOwner
	// done is closed once the outcome is set. done is nil while only the caller's own goroutine can answer the
	// call, in a turn that the caller runs: so the usual call, to a record without other calls, allocates no channel.
	// Otherwise a turn is the same for every caller. state can't replace done: answer sets state before the outcome.
	done chan struct{}
	// outcome is that of the latest fold, until the call is answered. Before that, only the turn uses it. A fold
	// leaves it here, since a slice of outcomes would cost each activation an allocation of more than a KiB.
	outcome Answer

	traced *traced // nil: the call is not traced
}

// newCommand returns a call of a command that counts for a share.
func newCommand(who share, cmd licensing.Command) *call {
	c := &call{cmd: cmd}
	c.who.Store(uint32(who))
	return c
}

// takeShare returns the share that a call counts for. Afterwards the call counts for no share.
func (c *call) takeShare() share { return share(c.who.Swap(0)) }

// alone reports whether a call has a turn of its own.
func (c *call) alone() bool { return c.kind != kindCommand }

// deviceID returns the id of the device that a call touches, or the empty string.
func (c *call) deviceID() string {
	if c.cmd == nil {
		return ""
	}
	return c.cmd.DeviceID()
}

// answer answers a call with a result.
func (c *call) answer(result licensing.Result, err error) {
	if c.state.CompareAndSwap(callTaken, callAnswered) {
		c.outcome = Answer{result, err}
		c.finish()
	}
}

// fail answers a call with an error.
func (c *call) fail(err error) { c.answer(licensing.Result{}, err) }

// refused notes the error with which a fold refuses to run a call. It returns false: the call has not panicked.
func (c *call) refused(err error) (panicked bool) {
	c.outcome = Answer{Err: err}
	return false
}

// answerFolded answers a call with the outcome of the latest fold.
func (c *call) answerFolded() {
	if c.state.CompareAndSwap(callTaken, callAnswered) {
		c.finish()
	}
}

func (c *call) finish() {
	if c.done != nil {
		close(c.done)
	}
}

// mustWait prepares a call to be answered by another goroutine.
func (c *call) mustWait() {
	if c.done == nil {
		c.done, c.waited = make(chan struct{}), true
	}
}

// isOver reports whether a call that came by a hop must not be run any more: the node that sent the
// call counts the call as ended, by its own clock.
func (c *call) isOver() bool { return c.hopped && !time.Now().Before(c.deadline) }

// await waits for a call's answer, until ctx ends. A call that has a turn of its own ends once its
// turn has begun, so await waits for that turn: the turn's ctx ends with this one.
func (n *Node) await(ctx context.Context, c *call) (licensing.Result, error) {
	select {
	case <-c.done:
		return c.outcome.Result, c.outcome.Err
	case <-ctx.Done():
	}
	if c.state.CompareAndSwap(callWaiting, callAbandoned) {
		n.traceWait(waitAbandoned, c)
		return licensing.Result{}, licensing.ErrUnavailable
	}
	if !c.alone() && c.state.CompareAndSwap(callTaken, callAbandoned) {
		return licensing.Result{}, licensing.ErrOutcomeUnknown
	}
	<-c.done
	return c.outcome.Result, c.outcome.Err
}

// countOwn counts the calls that did not come by a hop.
func countOwn(calls []*call) (own int) {
	for _, c := range calls {
		if !c.hopped {
			own++
		}
	}
	return own
}

// turnContext returns the context of a turn, below ctx. The turn lives as long as its most patient call, but no longer
// than any call that came by a hop: the node that sent the call counts the call as ended then, and nothing of the call
// may be sent again.
func turnContext(ctx context.Context, calls []*call) (context.Context, context.CancelFunc) {
	latest := calls[0].deadline
	for _, c := range calls[1:] {
		if c.deadline.After(latest) {
			latest = c.deadline
		}
	}
	for _, c := range calls {
		if c.hopped && c.deadline.Before(latest) {
			latest = c.deadline
		}
	}
	return context.WithDeadline(ctx, latest)
}
