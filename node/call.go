package node

import (
	"context"
	"sync/atomic"
	"time"

	"licet/licensing"
)

// The states of a call. It is answered exactly once: either its mailbox wins
// the step to answered, or the waiting caller gives up and wins the step to
// abandoned, and then a mailbox never folds it again.
const (
	callWaiting int32 = iota
	callTaken
	callAnswered
	callAbandoned
)

// call is one command on its way through a mailbox.
type call struct {
	cmd      licensing.Command
	work     func(context.Context) (licensing.Result, error) // instead of cmd: see WithRecordLock, CommitInTurn
	claim    *Claim                                          // the command came with an Idempotency-Key; nil for most
	deadline time.Time
	hopped   bool // another node sent it, and has been told that it ends at its deadline
	away     bool // it is to go to the outbox; its turn's alone
	state    atomic.Int32
	who      atomic.Uint32 // the share that it counts for; see tellOwner
	done     chan struct{} // closed once result and err are set; nil where its caller runs the mailbox
	result   licensing.Result
	err      error

	traced *traced // nil: it is not
}

// newCall makes a call that counts for a share out of what it asks for.
func newCall(who share, c *call) *call {
	c.who.Store(uint32(who))
	return c
}

// gone returns the share that a call counts for, which does not change any more.
func (c *call) gone() share { return share(c.who.Swap(0)) }

// alone reports whether a call gets a turn of its own: one with an
// Idempotency-Key, whose transaction writes a claim too, and work.
func (c *call) alone() bool { return c.claim != nil || c.work != nil }

// deviceID is the device that a call touches, or empty.
func (c *call) deviceID() string {
	if c.cmd == nil {
		return ""
	}
	return c.cmd.DeviceID()
}

func (c *call) answer(result licensing.Result, err error) {
	if c.state.CompareAndSwap(callTaken, callAnswered) {
		c.result, c.err = result, err
		if c.done != nil {
			close(c.done)
		}
	}
}

// isOver reports whether a call that came by a hop must not be run any more: its
// caller, at the other node, is told so by that node's clock.
func (c *call) isOver() bool { return c.hopped && !time.Now().Before(c.deadline) }

// await waits for a call's answer, until ctx ends. A call that has a turn of its own
// has ended once it was begun, and so is waited for: its ctx ends with this one.
func (n *Node) await(ctx context.Context, c *call) (licensing.Result, error) {
	select {
	case <-c.done:
		return c.result, c.err
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
	return c.result, c.err
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

// turnContext lives as long as the most patient of the calls, but no longer than
// any that came by a hop: whoever sent it takes it to be over then, and nothing of
// it may be sent again.
func turnContext(calls []*call) (context.Context, context.CancelFunc) {
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
	return context.WithDeadline(context.Background(), latest)
}
