package node

import (
	"context"

	"licet"
)

// deliveryPages bounds the pages of events that are read for deliveries at a time.
const deliveryPages = 8

// DeliveryEvents reads a page of an owner's events, to be delivered. It is Feed for
// whoever does not wait, and takes no place from callers of the API: there are some of
// its own.
func (n *Node) DeliveryEvents(ctx context.Context, owner licet.Owner, page FeedPage) (got EventFeed, err error) {
	if err := n.enterDelivery(ctx); err != nil {
		return got, err
	}
	defer n.leaveDelivery()
	read, err := n.cfg.Events.ReadEvents(ctx, owner, page)
	if err != nil {
		return got, err
	}
	got.Next, got.More = read.Next, read.More
	got.Events, err = n.viewEvents(ctx, owner, read.Events)
	return got, err
}

// DeliveryEvent is Event in the same way; nil where there is none any more.
func (n *Node) DeliveryEvent(ctx context.Context, owner licet.Owner, id string) (*EventView, error) {
	if err := n.enterDelivery(ctx); err != nil {
		return nil, err
	}
	defer n.leaveDelivery()
	event, err := n.cfg.Events.Event(ctx, owner, id)
	if err != nil || event == nil {
		return nil, err
	}
	views, err := n.viewEvents(ctx, owner, []RecordedEvent{*event})
	if err != nil {
		return nil, err
	}
	return &views[0], nil
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
