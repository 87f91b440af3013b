package node

import (
	"context"
	"sync/atomic"

	"licet/licensing"
)

const (
	// listsAtOnce bounds the pages of listings that are read at a time. A page is up
	// to some megabytes and 25 requests to the store, many times what a command is.
	listsAtOnce = 16
	// listsWaiting bounds those that wait for that, each with a place that a command
	// could have.
	listsWaiting = 64
)

// listGate lets a bounded number of pages be read at a time.
type listGate struct {
	reading chan struct{}
	waiting atomic.Int64
}

func newListGate() *listGate { return &listGate{reading: make(chan struct{}, listsAtOnce)} }

// enterList lets an owner's reader of a page in, or refuses it with ErrOverloaded.
// A caller that was let in must call leaveList with the share.
func (n *Node) enterList(ctx context.Context, owner licensing.Owner) (share, error) {
	who, err := n.admission.enterFor(ctx, owner)
	if err != nil {
		return who, err
	}
	if err = n.enterPage(ctx); err != nil {
		n.admission.leave(who, err)
	}
	return who, err
}

// leaveList ends what enterList has let in.
func (n *Node) leaveList(who share, err error) {
	n.leavePage()
	n.admission.leave(who, err)
}

// enterPage is enterList for whoever has a place already, such as a redaction, which
// reads a page of orders. Who was let in must call leavePage.
func (n *Node) enterPage(ctx context.Context) error {
	if n.lists.enter(ctx) != nil {
		return refuse(n.admission.shed.lists)
	}
	return nil
}

// leavePage ends what enterPage has let in.
func (n *Node) leavePage() { <-n.lists.reading }

func (g *listGate) enter(ctx context.Context) error {
	select {
	case g.reading <- struct{}{}:
		return nil
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > listsWaiting {
		return licensing.ErrOverloaded
	}
	select {
	case g.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return licensing.ErrOverloaded
	}
}
