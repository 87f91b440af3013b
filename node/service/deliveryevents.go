package service

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
func (e *Events) DeliveryEvents(ctx context.Context, owner licensing.Owner, page store.FeedPage) (EventFeed, error) {
	if err := e.enterDelivery(ctx); err != nil {
		return EventFeed{}, err
	}
	defer e.leaveDelivery()
	return e.viewPage(ctx, owner, page)
}

// DeliveryEvent is Event in the same way; nil where there is none any more.
func (e *Events) DeliveryEvent(ctx context.Context, owner licensing.Owner, id string) (*EventView, error) {
	if err := e.enterDelivery(ctx); err != nil {
		return nil, err
	}
	defer e.leaveDelivery()
	return e.viewEvent(ctx, owner, id)
}

// NewEvents is closed when there may be events that no page had that was read before
// the call.
func (e *Events) NewEvents() <-chan struct{} { return e.feed.next() }

func (e *Events) enterDelivery(ctx context.Context) error {
	select {
	case e.delivering <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Events) leaveDelivery() { <-e.delivering }
