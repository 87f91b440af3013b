package service

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"licet/licensing"
)

const (
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

// feed bounds the callers that wait for events.
type feed struct {
	mu      sync.Mutex
	waiting int                     // the sum of waits
	waits   map[licensing.Owner]int // the waiting callers of each owner
	reading chan struct{}           // bounds the callers that read after a wait
	ended   chan struct{}           // closed when no caller may wait any more
	end     func()                  // closes ended
}

func newFeed() *feed {
	ended := make(chan struct{})
	return &feed{
		waits: make(map[licensing.Owner]int), reading: make(chan struct{}, feedReadsAtOnce),
		ended: ended, end: sync.OnceFunc(func() { close(ended) }),
	}
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
