package service

import (
	"context"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"

	"licet/internal/fair"
	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

const (
	// listsAtOnce bounds the pages of lists that the node reads at the same time. A page takes up to some megabytes
	// and 25 requests to the store, many times the cost of a command. With 16 places, the pages of one owner took up to
	// half of the processor time of a machine with two cores.
	listsAtOnce = 8
	// redactionsAtOnce bounds the redactions under way. Each of them changes up to dueConcurrency orders at the same
	// time.
	redactionsAtOnce = 16
	// gateWaiting bounds the requests that wait at a gate. Each holds an admission place that a command could use.
	gateWaiting = 16
)

// gate bounds how much work of one expensive kind the node does at the same time. Owners share the places,
// also the places to wait in: an owner may take every free place.
type gate struct {
	places *fair.Places[licensing.Owner]
	shed   prometheus.Counter // refusals
}

func newGate(atOnce int, shed prometheus.Counter) *gate {
	return &gate{fair.New[licensing.Owner](fair.Config{Places: atOnce, Waiting: gateWaiting}), shed}
}

// enter waits until the owner may begin the work, or fails with ErrOverloaded. It also fails if what the owner has read
// during the wait was too much: see [store.Reads]. After a nil error the caller must call leave.
func (g *gate) enter(ctx context.Context, owner licensing.Owner) error {
	if g.places.TryEnter(owner) {
		return nil
	}
	if g.places.Enter(ctx, owner) != nil {
		g.shed.Inc()
		return licensing.ErrOverloaded
	}
	if err := store.ReadsOf(ctx).Refusal(); err != nil {
		g.places.Leave(owner)
		return err
	}
	return nil
}

// leave ends the work that enter has allowed.
func (g *gate) leave(owner licensing.Owner) { g.places.Leave(owner) }

// admittedToList runs read as admitted does, and also enters the gate of lists.
func admittedToList[T any](ctx context.Context, c *core, owner licensing.Owner, read func() (T, error)) (T, error) {
	return admitted(ctx, c, owner, func(node.Place) (result T, err error) {
		if err := c.lists.enter(ctx, owner); err != nil {
			return result, err
		}
		defer c.lists.leave(owner)
		return read()
	})
}

// admitted runs work while it holds an admission place of an owner. Without a free place it returns
// ErrOverloaded.
func admitted[T any](
	ctx context.Context, c *core, owner licensing.Owner, work func(node.Place) (T, error),
) (T, error) {
	return admittedFor(ctx, c.engine, c.engine.OwnerShare(owner), func(place *node.Place) (T, error) {
		return work(*place)
	})
}

// afterServed runs work as admitted does, for a request of which the node has just served a command: see
// [node.Node.EnterServed].
func afterServed[T any](c *core, owner licensing.Owner, work func(node.Place) (T, error)) (result T, err error) {
	place := c.engine.EnterServed(c.engine.OwnerShare(owner))
	defer func() { place.Leave(err) }()
	return work(place)
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
