package service

import (
	"context"

	"licet/licensing"
	"licet/node/store"
)

// deliveryPages bounds how many pages of events are read for deliveries at the same time. An owner may have as many as
// are still free.
const deliveryPages = 8

// DeliveryEvents reads a page of an owner's events for delivery. It does not wait for events. It takes
// no admission place: deliveries have a limit of their own, so they take no places from API callers.
func (e *Events) DeliveryEvents(ctx context.Context, owner licensing.Owner, page store.FeedPage) (EventFeed, error) {
	if err := e.delivering.Enter(ctx, owner); err != nil {
		return EventFeed{}, err
	}
	defer e.delivering.Leave(owner)
	return e.viewPage(ctx, owner, page)
}

// DeliveryEvent reads an event for delivery; nil if the event is no longer kept.
func (e *Events) DeliveryEvent(ctx context.Context, owner licensing.Owner, id string) (*EventView, error) {
	if err := e.delivering.Enter(ctx, owner); err != nil {
		return nil, err
	}
	defer e.delivering.Leave(owner)
	return e.viewEvent(ctx, owner, id)
}

// NewEvents returns a channel that closes once there may be more events than a page had that was read before the call.
func (e *Events) NewEvents() <-chan struct{} { return e.cfg.Events.NewEvents() }
