package service

import (
	"context"
	"net/netip"

	"licet/licensing"
	"licet/node"
)

// admitted runs work while it holds an admission place of an owner. Without a free place it returns
// ErrOverloaded.
func admitted[T any](
	ctx context.Context, c *core, owner licensing.Owner, work func(node.Place) (T, error),
) (T, error) {
	return admittedFor(ctx, c.engine, c.engine.OwnerShare(owner), func(place *node.Place) (T, error) {
		return work(*place)
	})
}

// admittedFor is admitted with the share that the place counts for. work may call [node.Place.Become].
func admittedFor[T any](
	ctx context.Context, engine *node.Node, who node.Share, work func(*node.Place) (T, error),
) (result T, err error) {
	place, err := engine.Enter(ctx, who)
	if err != nil {
		return result, err
	}
	defer func() { place.Leave(err) }()
	return work(&place)
}

// callerShare returns the share of a caller: of an owner, or, if owner is zero, of an end user from a network.
func (c *core) callerShare(owner licensing.Owner, network netip.Addr) node.Share {
	if owner == (licensing.Owner{}) {
		return c.engine.EndUserShare(network)
	}
	return c.engine.OwnerShare(owner)
}
