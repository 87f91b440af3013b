package service

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

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

// ErrKeyEnded reports that the API key of a waiting caller was revoked or has expired.
var ErrKeyEnded = errors.New("the API key was revoked or has expired")

// keyCheckPause is the least time between two checks of the key of one wait. A change of a key of any
// account makes all waits check their keys, and the waits whose keys share a part with the changed key
// read the store. Without a pause, one account could make these waits read the store as often as it
// changes a key. A cache drops a revoked key within about a second. Both together stay within the two
// seconds that a revoked key may work.
const keyCheckPause = 500 * time.Millisecond

// keyMonitor checks the API key of a waiting caller: when the key ends, the wait ends and returns no
// events. A check is due when the key expires, and when the node's cache has dropped keys because a
// key has changed. Between checks a monitor costs nothing.
type keyMonitor struct {
	events  *Events
	key     *licensing.APIKey // nil: the wait does not depend on a key
	dropped <-chan struct{}   // closed when the cache has dropped keys; nil: the timer is set to the next check
	checked time.Time
	timer   *time.Timer
}

// monitorKey starts to monitor a key that was valid a moment ago. The caller must call stop.
func (e *Events) monitorKey(ctx context.Context, key *licensing.APIKey) (*keyMonitor, error) {
	w := &keyMonitor{events: e, key: key, timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	// The cache may have dropped the key since then.
	if err := w.recheck(ctx); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

func (w *keyMonitor) stop() { w.timer.Stop() }

// checkSoon sets the timer to the end of the pause after the last check.
func (w *keyMonitor) checkSoon() {
	w.dropped = nil
	w.timer.Reset(max(keyCheckPause-time.Since(w.checked), 0))
}

// recheck checks the key while the caller waits. If the store does not answer, recheck schedules
// another check soon and returns nil: the caller has not received any events.
func (w *keyMonitor) recheck(ctx context.Context) error {
	err := w.check(ctx)
	if err == nil || errors.Is(err, ErrKeyEnded) {
		return err
	}
	w.checkSoon()
	return nil
}

// check returns ErrKeyEnded if the key is no longer valid.
func (w *keyMonitor) check(ctx context.Context) error {
	if w.key == nil {
		return nil
	}
	w.checked = time.Now()
	w.dropped = w.events.keys.dropped() // before the check, or a change in between would be missed
	known, found, _ := w.events.keys.lookup(w.key.Hash)
	if !found {
		// Few at a time: once one caller has read the key, the others find it in the cache.
		reading := w.events.feed.reading
		if reading.Enter(ctx, w.key.Owner) != nil {
			return licensing.ErrUnavailable
		}
		var err error
		known, err = w.events.keys.find(ctx, w.key.Hash)
		reading.Leave(w.key.Owner)
		if err != nil {
			return err
		}
	}
	now := w.events.engine.Now()
	if known == nil || !known.key.Usable(now) {
		return ErrKeyEnded
	}
	if expires := known.key.ExpiresAt; !expires.IsZero() {
		w.timer.Reset(expires.Sub(now))
	} else {
		w.timer.Stop()
	}
	return nil
}

// goOn waits until there may be events to read. It reports false when the wait is over. If more is
// true, there is more to read already, and goOn does not wait: a page of few event types may take many
// reads, and returns how far the search got when the time is up.
func (w FeedWait) goOn(
	ctx context.Context, more bool, news, gone, ended <-chan struct{}, timeout <-chan time.Time, key *keyMonitor,
) (bool, error) {
	if more {
		ready := make(chan struct{})
		close(ready)
		news = ready
	}
	for {
		select {
		case <-news:
			return true, nil
		case <-timeout:
			return false, nil
		case <-w.Stop:
			return false, nil
		case <-gone:
			return false, nil
		case <-ended:
			return false, nil
		case <-ctx.Done():
			return false, nil
		case <-key.dropped:
			key.checkSoon()
		case <-key.timer.C:
			if err := key.recheck(ctx); err != nil {
				return false, err
			}
		}
	}
}
