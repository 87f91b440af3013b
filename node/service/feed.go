package service

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/licensing"
	"licet/node/store"
)

const (
	// sealAfter is how old an epoch gets before the next begins, if anything was
	// written: events are in the feed about so late.
	sealAfter = time.Second
	// sealBytes is how many bytes of changes with events this node writes into one epoch
	// before it seals the epoch early: a reader of an epoch must hold the list of its events
	// at once.
	sealBytes = 4 << 20
	// sealPause is how old an epoch is at least when it is sealed, whatever anybody writes:
	// every seal makes all nodes send their requests under way again. So there are at most
	// two seals a second, and an epoch has what is written in half a second and sealScan
	// beyond sealBytes.
	sealPause = 500 * time.Millisecond
	// sealScan is how often it is looked whether an epoch is due: another node may
	// have died before it did.
	sealScan = 250 * time.Millisecond

	// maxFeedWaits bounds those who wait for events. One owner's may be as many as
	// there are places left, so that none takes all of them.
	maxFeedWaits = 1024
	// feedReadsAtOnce is how many of them read at a time when there is something new:
	// far less than the pages that may be read, so that others need not wait for all.
	feedReadsAtOnce = 4
)

// Events are the feed and the history of what has happened.
type Events struct {
	*core
	keys       *keyCache
	feed       *feed
	delivering chan struct{}      // bounds the pages of events that are read for deliveries
	waitsShed  prometheus.Counter // as many wait for events as may
}

func newEvents(c *core, keys *keyCache) *Events {
	return &Events{
		core: c, keys: keys, feed: newFeed(), delivering: make(chan struct{}, deliveryPages),
		waitsShed: c.cfg.Metrics.CommandsShed.WithLabelValues("waits"),
	}
}

// feed tells those who wait that there may be more events.
type feed struct {
	mu      sync.Mutex
	news    chan struct{}           // closed when an epoch has begun
	waiting int                     // all of waits
	waits   map[licensing.Owner]int // how many wait for an owner's events
	reading chan struct{}           // bounds who reads after having waited
}

func newFeed() *feed {
	return &feed{
		news: make(chan struct{}), waits: make(map[licensing.Owner]int), reading: make(chan struct{}, feedReadsAtOnce),
	}
}

// next is closed when an epoch has begun after the call.
func (f *feed) next() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.news
}

func (f *feed) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.news)
	f.news = make(chan struct{})
}

// KeepSealing sees to it that what is recorded gets into the feed, and tells those
// who wait for it, until ctx ends. All nodes do it; whoever is first does it for all.
func (e *Events) KeepSealing(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel() // a panic must not wait for the watch
	e.guard.KeepIn(ctx, &watching, "watch of epochs", func() { e.cfg.Events.WatchEpochs(ctx, e.feed.wake) })
	age := epochAge{looked: time.Now()}
	for {
		timer := time.NewTimer(sealScan/2 + rand.N(sealScan))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		now := time.Now() // for an age, and so by the clock that only goes forward
		epoch, err := e.cfg.Events.EventEpoch(ctx)
		if err != nil {
			continue // whoever needs the store is told so
		}
		if age.look(epoch.Number, now, time.Now()) {
			e.feed.wake() // the watch may hang
		}
		var lag time.Duration
		if epoch.Written {
			lag = age.most(now)
		}
		e.cfg.Metrics.EventFeedLag.Set(lag.Seconds())
		if !age.due(epoch, now) {
			continue
		}
		if err := e.cfg.Events.SealEvents(ctx, epoch); err != nil && ctx.Err() == nil {
			e.cfg.Log.Debug().Err(err).Msg("an epoch of events could not be sealed; it is tried again")
		}
	}
}

// epochAge is what a node knows of the age of an epoch. Its times are the node's own.
type epochAge struct {
	number uint64
	looked time.Time // when the last look at the epoch began
	before time.Time // when the last look began that did not find it: the epoch is younger
	seen   time.Time // when the first look had found it: the epoch is older
}

// look notes the epoch that a look has found, and reports whether it has followed another.
func (a *epochAge) look(number uint64, began, ended time.Time) (followed bool) {
	if number != a.number {
		followed = a.number != 0
		a.number, a.before, a.seen = number, a.looked, ended
	}
	a.looked = began
	return followed
}

// most is how old the epoch can be.
func (a *epochAge) most(now time.Time) time.Duration { return now.Sub(a.before) }

// due reports whether the epoch is to be sealed.
func (a *epochAge) due(epoch store.Epoch, now time.Time) bool {
	return epoch.Written && now.Sub(a.seen) >= sealPause && (a.most(now) >= sealAfter || epoch.Bytes >= sealBytes)
}

// enter takes a place among those who wait for an owner's events; leave gives it back.
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
