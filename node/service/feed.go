package service

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/internal/backoff"
	"licet/licensing"
	"licet/node/store"
)

const (
	// sealAfter is the age at which a node seals an epoch with events. It is about the delay of events in the
	// feed.
	sealAfter = time.Second
	// sealBytes is how many bytes of changes with events this node writes into one epoch
	// before it seals the epoch early: a reader of an epoch must hold the list of its events
	// at once.
	sealBytes = 4 << 20
	// sealPause is the least age at which a node seals an epoch: every seal makes all nodes send their pending
	// requests again. So there are at most two seals a second, and an epoch exceeds sealBytes by at most the
	// writes of sealPause and sealScan.
	sealPause = 500 * time.Millisecond
	// sealScan is the pause between checks whether an epoch is due: the node that would have sealed the epoch may
	// have died.
	sealScan = 250 * time.Millisecond

	// maxFeedWaits bounds the callers that wait for events. An owner may have as many as are still free, so no
	// owner takes all of them.
	maxFeedWaits = 1024
	// feedReadsAtOnce bounds how many of these callers read at the same time after a wait. It is far below
	// listsAtOnce, so that other lists don't wait for all of them.
	feedReadsAtOnce = 4
)

// Events offers the feed of events and the history of records.
type Events struct {
	*core
	keys       *keyCache
	feed       *feed
	delivering chan struct{}      // bounds the pages read for deliveries
	waitsShed  prometheus.Counter // refusals because maxFeedWaits callers wait
}

func newEvents(c *core, keys *keyCache) *Events {
	return &Events{
		core: c, keys: keys, feed: newFeed(), delivering: make(chan struct{}, deliveryPages),
		waitsShed: c.cfg.Metrics.CommandsShed.WithLabelValues("waits"),
	}
}

// feed wakes the callers that wait for events, and bounds their number.
type feed struct {
	mu      sync.Mutex
	epoch   chan struct{}           // closed when the next epoch has begun
	waiting int                     // the sum of waits
	waits   map[licensing.Owner]int // the waiting callers of each owner
	reading chan struct{}           // bounds the callers that read after a wait
}

func newFeed() *feed {
	return &feed{
		epoch: make(chan struct{}), waits: make(map[licensing.Owner]int), reading: make(chan struct{}, feedReadsAtOnce),
	}
}

// next returns a channel that is closed when the next epoch has begun.
func (f *feed) next() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.epoch
}

func (f *feed) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.epoch)
	f.epoch = make(chan struct{})
}

// KeepSealing seals epochs, so that recorded events enter the feed, and wakes the callers that wait
// for events, until ctx ends. All nodes run KeepSealing; the first one to seal an epoch seals it for
// all.
func (e *Events) KeepSealing(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel() // a panic must not wait for the watch
	e.guard.KeepIn(ctx, &watching, "watch of epochs", func() { e.cfg.Events.WatchEpochs(ctx, e.feed.wake) })
	age := epochAge{readAt: time.Now()}
	for {
		if !backoff.Sleep(ctx, backoff.Around(sealScan, 2)) {
			return
		}
		now := time.Now() // not cfg.Clock: an age needs the monotonic clock
		epoch, err := e.cfg.Events.EventEpoch(ctx)
		if err != nil {
			continue // callers that need the store get the error
		}
		if age.observe(epoch.Number, now, time.Now()) {
			e.feed.wake() // in case the watch hangs
		}
		var lag time.Duration
		if epoch.Written {
			lag = age.atMost(now)
		}
		e.cfg.Metrics.EventFeedLag.Set(lag.Seconds())
		if !age.due(epoch, now) {
			continue
		}
		if err := e.cfg.Events.SealEvents(ctx, epoch); err != nil && ctx.Err() == nil {
			e.cfg.Log.Debug().Err(err).Msg("can't seal the epoch of events; the node tries again")
		}
	}
}

// epochAge holds bounds of the age of an epoch, by the node's own clock.
type epochAge struct {
	number uint64
	readAt time.Time // the start of the last read of the epoch
	after  time.Time // the epoch began after this time: the start of the last read that did not return it
	before time.Time // the epoch began before this time: the end of the first read that returned it
}

// observe notes the epoch that a read has returned, and reports whether it is newer than the previous
// one.
func (a *epochAge) observe(number uint64, began, ended time.Time) (newer bool) {
	if number != a.number {
		newer = a.number != 0
		a.number, a.after, a.before = number, a.readAt, ended
	}
	a.readAt = began
	return newer
}

// atMost returns the greatest possible age of the epoch.
func (a *epochAge) atMost(now time.Time) time.Duration { return now.Sub(a.after) }

// due reports whether the node should seal the epoch.
func (a *epochAge) due(epoch store.Epoch, now time.Time) bool {
	return epoch.Written && now.Sub(a.before) >= sealPause && (a.atMost(now) >= sealAfter || epoch.Bytes >= sealBytes)
}

// enter counts a caller that waits for an owner's events, and reports whether there was a place for
// it. A caller that entered must call leave.
func (f *feed) enter(owner licensing.Owner) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waits[owner] >= maxFeedWaits-f.waiting {
		return false
	}
	f.waits[owner]++
	f.waiting++
	return true
}

func (f *feed) leave(owner licensing.Owner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting--
	if f.waits[owner]--; f.waits[owner] == 0 {
		delete(f.waits, owner)
	}
}
