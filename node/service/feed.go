package service

import (
	"context"
	"math"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"licet/internal/fair"
	"licet/licensing"
	"licet/node/store"
)

const (
	// maxFeedWaits bounds the callers that wait for events. An owner may have as many as are still free, so no
	// owner takes all of them.
	maxFeedWaits = 1024
	// feedReadsAtOnce bounds how many of these callers read at the same time after a wait. It is half of
	// listsAtOnce, so that other lists don't wait for all of them.
	feedReadsAtOnce = 4
)

// Events offers the feed of events and the history of records.
type Events struct {
	*core
	keys       *keyCache
	feed       *feed
	delivering *fair.Places[licensing.Owner] // to read pages for deliveries
	waitsShed  prometheus.Counter            // refusals for want of a place to wait
}

func newEvents(c *core, keys *keyCache) *Events {
	return &Events{
		core: c, keys: keys, feed: newFeed(),
		// The number of endpoints bounds the deliveries that wait.
		delivering: fair.New[licensing.Owner](fair.Config{Places: deliveryPages, Waiting: math.MaxInt}),
		waitsShed:  c.cfg.Metrics.CommandsShed.WithLabelValues("waits"),
	}
}

// feed bounds the callers that wait for events.
type feed struct {
	waits   *fair.Places[licensing.Owner] // of the callers that wait
	reading *fair.Places[licensing.Owner] // places for reads after a wait
	ended   chan struct{}                 // closed when no caller may wait any more
	end     func()                        // closes ended
}

func newFeed() *feed {
	ended := make(chan struct{})
	return &feed{
		waits: fair.New[licensing.Owner](fair.Config{Places: maxFeedWaits}),
		// All callers that wait may want to read at the same time.
		reading: fair.New[licensing.Owner](fair.Config{Places: feedReadsAtOnce, Waiting: 2 * maxFeedWaits}),
		ended:   ended, end: sync.OnceFunc(func() { close(ended) }),
	}
}

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
