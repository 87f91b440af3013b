package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"licet/licensing"
)

// Share names what a place counts for: an owner, the network of an end user, or a class of requests whose owner only
// the store knows. Each class gets as many places as an owner gets, so that guesses can't take all places.
type Share share

// The classes.
const (
	UnknownOrder  = Share(unknownOrder)  // asks for an order by its number alone
	UnknownAPIKey = Share(unknownAPIKey) // comes with an API key that the node does not remember
)

// OwnerShare returns the share of an owner.
func (n *Node) OwnerShare(owner licensing.Owner) Share { return Share(n.admission.shares.of(owner)) }

// EndUserShare returns the share of an end user, from a network, who asks for a license that is not known yet. The
// share takes part in the places of commands on unknown licenses.
func (n *Node) EndUserShare(network netip.Addr) Share {
	return Share(n.admission.shares.ofEndUser(network))
}

// Place is a place among the commands and reads that a node has under way. The caller that has taken a place must call
// Leave.
type Place struct {
	node *Node
	who  share
}

// Enter takes a place for a command or a read that counts for a share, or fails with ErrOverloaded.
func (n *Node) Enter(ctx context.Context, who Share) (Place, error) {
	return Place{n, share(who)}, n.admission.enter(ctx, share(who))
}

// EnterServed takes a place for work that follows a command which the node has served for the same request. It never
// refuses: the command has just given its own place back, and a refusal would hide that the command has changed
// something.
func (n *Node) EnterServed(who Share) Place {
	n.admission.enterServed(share(who))
	return Place{n, share(who)}
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
