package node

import (
	"context"

	"licet/licensing"
	"licet/node/store"
)

// deliveryPages bounds the pages of events that are read for deliveries at a time.
const deliveryPages = 8

// DeliveryEvents reads a page of an owner's events, to be delivered. It is Feed for
// whoever does not wait, and takes no place from callers of the API: there are some of
// its own.
func (n *Node) DeliveryEvents(ctx context.Context, owner licensing.Owner, page store.FeedPage) (EventFeed, error) {
	if err := n.enterDelivery(ctx); err != nil {
		return EventFeed{}, err
	}
	defer n.leaveDelivery()
	return n.viewPage(ctx, owner, page)
}

// DeliveryEvent is Event in the same way; nil where there is none any more.
func (n *Node) DeliveryEvent(ctx context.Context, owner licensing.Owner, id string) (*EventView, error) {
	if err := n.enterDelivery(ctx); err != nil {
		return nil, err
	}
	defer n.leaveDelivery()
	return n.viewEvent(ctx, owner, id)
}

// NewEvents is closed when there may be events that no page had that was read before
// the call.
func (n *Node) NewEvents() <-chan struct{} { return n.feed.next() }

func (n *Node) enterDelivery(ctx context.Context) error {
	select {
	case n.delivering <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *Node) leaveDelivery() { <-n.delivering }
