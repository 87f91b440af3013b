package delivery

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"licet/node/service"
)

// TestBusyNodesGiveFewSlots: a busy node hands out the slots of its rate limit, and an idle node all slots.
func TestBusyNodesGiveFewSlots(t *testing.T) {
	var now time.Time
	busy := true
	e := New(Config{Node: &service.Service{}, Clock: func() time.Time { return now }})
	e.busyLimit.busy = func() bool { return busy }
	e.busyLimit.limit = rate.NewLimiter(10, 2)
	given := func() (n int) {
		for n < 10 && e.takeExtraSlot(false) {
			n++
		}
		return n
	}
	if n := given(); n != 2 {
		t.Errorf("%d slots of a burst of 2", n)
	}
	now = now.Add(100 * time.Millisecond)
	if n := given(); n != 1 {
		t.Errorf("%d slots after a tenth of a second at 10 a second", n)
	}
	if busy = false; given() != 10 {
		t.Error("an idle node hands out too few slots")
	}
}

// TestBusyNodesSendLess: on a busy node an endpoint has one attempt at a time, and rarely another one. All events
// arrive, and once the node is idle the endpoint has more concurrent attempts.
func TestBusyNodesSendLess(t *testing.T) {
	const burst, enough = 2, 8
	l := newTestCluster(t)
	s := l.node()
	r := newReceiver(t)
	s.subscribe(r)
	s.grant(300)
	events := s.waitForEvents(300)

	var under, most atomic.Int64
	r.respondWith(func(http.ResponseWriter, *http.Request, string, int) bool {
		now := under.Add(1)
		for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
		}
		under.Add(-1)
		return true
	})
	var rested atomic.Bool
	e := s.newEngine()
	e.busyLimit.busy = func() bool { return !rested.Load() }
	e.busyLimit.limit = rate.NewLimiter(0, burst) // no attempt beyond the burst
	s.startMade()
	r.waitForAll(l, events)
	if n := most.Load(); n > 1+burst {
		t.Errorf("%d attempts at a time, want %d at most", n, 1+burst)
	}

	rested.Store(true)
	var waiting atomic.Int64
	together := make(chan struct{})
	r.respondWith(func(_ http.ResponseWriter, request *http.Request, _ string, _ int) bool {
		if waiting.Add(1) == enough {
			close(together)
		}
		select {
		case <-together:
		case <-request.Context().Done():
		}
		return true
	})
	s.grant(300)
	r.waitForAll(l, s.waitForEvents(600))
}
