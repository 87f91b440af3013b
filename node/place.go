package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"licet/licensing"
)

// Unknown is a class of requests whose owner only the store can tell. Each class gets as many places as an owner
// gets, so that guesses can't take all places.
type Unknown share

// The classes.
const (
	UnknownOrder  = Unknown(unknownOrder)  // asks for an order by its number alone
	UnknownAPIKey = Unknown(unknownAPIKey) // comes with an API key that the node does not remember
)

// Place is a place among the commands and reads that a node has under way, taken for an owner or for an unknown
// owner. The caller that has taken a place must call Leave.
type Place struct {
	node *Node
	who  share
}

// Enter takes a place for a command or a read of an owner, or fails with ErrOverloaded.
func (n *Node) Enter(ctx context.Context, owner licensing.Owner) (Place, error) {
	who, err := n.admission.enterFor(ctx, owner)
	return Place{n, who}, err
}

// EnterUnknown takes a place for a read whose owner is not known yet, or fails with ErrOverloaded.
func (n *Node) EnterUnknown(ctx context.Context, class Unknown) (Place, error) {
	return Place{n, share(class)}, n.admission.enter(ctx, share(class))
}

// EnterFrom takes a place for a read for an end user, from a network, of a license that is not known yet; or it fails
// with ErrOverloaded. The places are those of commands on unknown licenses.
func (n *Node) EnterFrom(ctx context.Context, network netip.Addr) (Place, error) {
	who := n.admission.shares.ofEndUser(network)
	return Place{n, who}, n.admission.enter(ctx, who)
}

// Become counts the place of an unknown owner for the owner that was found, or fails with ErrOverloaded if that
// owner has no place left. Either way the caller still has the place.
func (p *Place) Become(owner licensing.Owner) (err error) {
	p.who, err = p.node.admission.become(p.who, owner)
	return err
}

// Leave gives the place back. err is the outcome: only what the store has answered counts as served.
func (p Place) Leave(err error) { p.node.admission.leave(p.who, err) }

// Do runs a command in the place, as [Node.Do] does.
func (p Place) Do(ctx context.Context, ref licensing.Ref, cmd licensing.Command) (licensing.Result, error) {
	return p.node.doCall(ctx, ref, newCommand(p.who, cmd))
}

// DoOnce runs a command in the place, once for the request of a claim.
func (p Place) DoOnce(
	ctx context.Context, ref licensing.Ref, cmd licensing.Command, c *Claim,
) (licensing.Result, error) {
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

// ErrNoRoom refuses background work while requests need the node. A pass over many records ends with this error,
// and continues later.
var ErrNoRoom = errors.New("the node is busy with other work")

// ErrOwnerBusy refuses background work for one owner, whose own requests need the node. A pass continues with the
// records of other owners.
var ErrOwnerBusy = fmt.Errorf("%w for the owner of a record", ErrNoRoom)

// DoInBackground runs a command that no caller waits for. It fails with ErrNoRoom while many requests are under way on
// the node, and with ErrOwnerBusy while many requests of the record's owner are.
func (n *Node) DoInBackground(
	ctx context.Context, ref licensing.Ref, cmd licensing.Command,
) (licensing.Result, error) {
	who := n.shareOf(ref, cmd)
	if err := n.admission.enterBackground(who); err != nil {
		return licensing.Result{}, err
	}
	return n.doPlaced(ctx, who, ref, cmd)
}
