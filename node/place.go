package node

import (
	"context"
	"errors"
	"fmt"

	"licet/licensing"
)

// Stranger is a class of what has no known owner until the store was asked. Each class
// gets as many places as an owner gets, so that guesses can't take all places.
type Stranger share

// The classes.
const (
	StrangerOrder  = Stranger(unknownOrder)  // asks for an order by its number alone
	StrangerAPIKey = Stranger(unknownAPIKey) // asks with an API key that the node does not remember
)

// Place is a place among what a node has under way, taken for an owner or for a stranger.
// Whoever has taken a place must call Leave.
type Place struct {
	node *Node
	who  share
}

// Enter takes a place for a command or a read of an owner, or fails with ErrOverloaded.
func (n *Node) Enter(ctx context.Context, owner licensing.Owner) (Place, error) {
	who, err := n.admission.enterFor(ctx, owner)
	return Place{n, who}, err
}

// EnterStranger takes a place for a read that has no known owner yet, or fails with
// ErrOverloaded.
func (n *Node) EnterStranger(ctx context.Context, class Stranger) (Place, error) {
	return Place{n, share(class)}, n.admission.enter(ctx, share(class))
}

// Become counts the place of a stranger for its owner, or fails with ErrOverloaded where the
// owner has no place left. Either way the caller still has the place.
func (p *Place) Become(owner licensing.Owner) (err error) {
	p.who, err = p.node.admission.become(p.who, owner)
	return err
}

// Leave ends what has the place. err is what it came to: only what the store has answered
// counts as served.
func (p Place) Leave(err error) { p.node.admission.leave(p.who, err) }

// Do runs a command that has the place, as [Node.Do] does.
func (p Place) Do(ctx context.Context, ref licensing.Ref, cmd licensing.Command) (licensing.Result, error) {
	return p.node.doCall(ctx, ref, newCommand(p.who, cmd))
}

// DoOnce runs a command that has the place, once for the request of a claim.
func (p Place) DoOnce(ctx context.Context, ref licensing.Ref, cmd licensing.Command, c *Claim) (licensing.Result, error) {
	switch {
	case c.once != nil:
		claimed := newCommand(p.who, cmd)
		claimed.kind, claimed.claim = kindClaimed, c
		return p.node.doCall(ctx, ref, claimed)
	case c.stale != nil:
		return licensing.Result{}, c.stale
	}
	return p.Do(ctx, ref, cmd)
}

// ErrNoRoom ends a pass: others wait for what the node could do for them. That is as it
// should be, and the pass is put off.
var ErrNoRoom = errors.New("the node has much else to do")

// ErrOwnerBusy puts off what is to be done for one owner, whose own requests wait for
// the node. The pass goes on with the records of other owners.
var ErrOwnerBusy = fmt.Errorf("%w for the owner of a record", ErrNoRoom)

// DoInBackground runs a command that no caller waits for. It fails with ErrNoRoom while the
// node, or the owner of the record, has much else under way.
func (n *Node) DoInBackground(ctx context.Context, ref licensing.Ref, cmd licensing.Command) error {
	who := n.shareOf(ref, nil)
	if err := n.admission.enterBackground(who); err != nil {
		return err
	}
	_, err := n.doPlaced(ctx, who, ref, cmd)
	return err
}

// StartWork lets one piece of work in that [Node.Drain] waits for, unless the node is
// draining. The caller must call EndWork.
func (n *Node) StartWork() error { return n.enter() }

// EndWork ends what StartWork has let in.
func (n *Node) EndWork() { n.work.Done() }

// Draining reports whether the node takes no commands any more.
func (n *Node) Draining() bool { return n.isDraining() }

// Leaving reports whether Leave was called.
func (n *Node) Leaving() bool { return n.leaving.Load() }
