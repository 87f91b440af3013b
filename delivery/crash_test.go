package delivery

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/depth"
	"licet/licensing"
	"licet/node/store"
)

// dyingStore is a store whose user dies before or after one of its steps.
type dyingStore struct {
	Store
	stepsLeft atomic.Int64 // steps until the death
	die       func()       // returns at once
}

// step counts a step. For a dead user it blocks until ctx ends.
func (m *dyingStore) step(ctx context.Context) {
	switch left := m.stepsLeft.Add(-1); {
	case left == 0:
		m.die()
		<-ctx.Done()
	case left < 0:
		<-ctx.Done()
	}
}

func (m *dyingStore) Work(ctx context.Context, do func(context.Context, store.DeliveryWorker) error) error {
	return m.Store.Work(ctx, func(ctx context.Context, w store.DeliveryWorker) error {
		return do(ctx, dyingWorker{w, m})
	})
}

type dyingWorker struct {
	store.DeliveryWorker
	m *dyingStore
}

func (w dyingWorker) Acquire(
	ctx context.Context, owner licensing.Owner, endpoint string,
) (store.DeliveryLease, bool, error) {
	w.m.step(ctx)
	lease, ok, err := w.DeliveryWorker.Acquire(ctx, owner, endpoint)
	w.m.step(ctx)
	return dyingLease{lease, w.m}, ok, err
}

type dyingLease struct {
	store.DeliveryLease
	m *dyingStore
}

func (h dyingLease) Resume(ctx context.Context) (store.DeliveryState, error) {
	h.m.step(ctx)
	return h.DeliveryLease.Resume(ctx)
}

func (h dyingLease) Pending(ctx context.Context, events ...string) ([]store.Delivery, error) {
	h.m.step(ctx)
	return h.DeliveryLease.Pending(ctx, events...)
}

func (h dyingLease) Checkpoint(ctx context.Context, done store.Checkpoint) error {
	h.m.step(ctx)
	err := h.DeliveryLease.Checkpoint(ctx, done)
	h.m.step(ctx)
	return err
}

func (h dyingLease) Release(ctx context.Context) error {
	h.m.step(ctx)
	err := h.DeliveryLease.Release(ctx)
	h.m.step(ctx)
	return err
}

// TestDiesBetweenAnySteps: every event arrives although engines are killed before and after each kind of step. No
// message of an event that does not exist arrives.
func TestDiesBetweenAnySteps(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	r := newReceiver(t)
	r.respondWith(func(w http.ResponseWriter, _ *http.Request, _ string, _ int) bool {
		if rand.IntN(5) == 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return false
		}
		return true
	})
	endpoint := s.subscribe(r)
	m := &dyingStore{Store: s.deliveries}
	s.engineStore = m
	recorded := 0
	for life := range depth.Of(20, 40) {
		s.grant(25)
		recorded += 25
		died := make(chan struct{})
		m.stepsLeft.Store(int64(1 + life%20))
		m.die = func() { close(died) }
		e := s.startEngine()
		for end := time.After(3 * time.Second); ; {
			l.advanceClock(2 * time.Second)
			select {
			case <-died:
			case <-end:
			case <-time.After(20 * time.Millisecond):
				continue
			}
			break
		}
		e.Kill()
	}
	m.stepsLeft.Store(1 << 40)
	s.startEngine()
	events := s.waitForEvents(recorded)
	l.waitUntil("all have arrived", func() bool {
		l.advanceClock(time.Minute)
		_, taken := r.count()
		return taken >= len(events)
	})
	r.waitForAll(l, events)
	l.waitUntil("the progress has all results", func() bool {
		l.advanceClock(time.Minute)
		p := s.progress(endpoint.ID)
		return p.Pending == 0 && p.Dead == 0 && !p.Behind
	})
	t.Logf("%d events were sent %d times", len(events), r.attempts())
}

// TestWorkersShare: two nodes share the endpoints, and hand them over when a node leaves, is killed, or comes.
func TestWorkersShare(t *testing.T) {
	l := newTestCluster(t)
	a, b := l.node(), l.node()
	var receivers []*receiver
	for range 12 {
		r := newReceiver(t)
		a.subscribe(r)
		receivers = append(receivers, r)
	}
	first := a.startEngine()
	a.grant(20)
	all := func(events []string) {
		t.Helper()
		for _, r := range receivers {
			r.waitForAll(l, events)
		}
	}
	all(a.waitForEvents(20))
	l.waitUntil("the only node has all endpoints", func() bool { return len(first.leasedIDs()) == 12 })
	second := b.startEngine()
	l.waitUntil("both nodes have endpoints", func() bool {
		return len(first.leasedIDs()) < 12 && len(first.leasedIDs())+len(second.leasedIDs()) == 12
	})
	if n := len(second.leasedIDs()); n == 0 || n == 12 {
		t.Errorf("the second node has %d of 12", n)
	}
	a.grant(20)
	all(a.waitForEvents(40))
	goOn := l.stopClock() // so that no endpoint is free for takeoverAfter
	if err := first.Stop(l.ctx()); err != nil {
		t.Fatal(err)
	}
	l.waitUntil("the other node has all endpoints", func() bool { return len(second.leasedIDs()) == 12 })
	goOn()
	a.grant(20)
	all(a.waitForEvents(60))
	second.Kill()
	third := a.startEngine()
	a.grant(20)
	all(a.waitForEvents(80))
	l.waitUntil("the third engine has all endpoints", func() bool { return len(third.leasedIDs()) == 12 })
	for _, r := range receivers {
		if n := r.attempts(); n > 80+2*maxAhead {
			t.Errorf("80 events were sent %d times", n)
		}
	}
}

// TestLostLease: a node that loses its lease stops sending, and another node goes on.
func TestLostLease(t *testing.T) {
	l := newTestCluster(t)
	a, b := l.node(), l.node()
	r := newReceiver(t)
	endpoint := a.subscribe(r)
	gone := &leaseLosingStore{Store: a.deliveries, lost: make(chan struct{})}
	a.engineStore = gone
	a.startEngine()
	a.grant(50)
	r.waitForAll(l, a.waitForEvents(50))
	close(gone.lost)
	l.waitUntil("the first node has no endpoint", func() bool { return len(a.engine.leasedIDs()) == 0 })
	b.startEngine()
	a.grant(50)
	r.waitForAll(l, a.waitForEvents(100))
	l.waitUntil("the other node has the endpoint", func() bool {
		return slices.Equal(b.engine.leasedIDs(), []string{endpoint.ID})
	})
}

// leaseLosingStore is a store that loses its lease when lost is closed, and never gets it back.
type leaseLosingStore struct {
	Store
	lost chan struct{}
}

func (s *leaseLosingStore) Work(ctx context.Context, do func(context.Context, store.DeliveryWorker) error) error {
	select {
	case <-s.lost:
		return licensing.ErrUnavailable
	default:
	}
	return s.Store.Work(ctx, func(ctx context.Context, w store.DeliveryWorker) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-s.lost:
				cancel()
			case <-ctx.Done():
			}
		}()
		return do(ctx, w)
	})
}

// TestStopCutsOff: Stop does not wait for a receiver that never responds, and the next node sends the messages in
// flight again.
func TestStopCutsOff(t *testing.T) {
	l := newTestCluster(t)
	a, b := l.node(), l.node()
	a.sendWithin(10 * waitLimit)
	r := newReceiver(t)
	r.respondWith(func(_ http.ResponseWriter, r *http.Request, _ string, _ int) bool {
		<-r.Context().Done()
		return false
	})
	a.subscribe(r)
	a.startEngine()
	a.grant(10)
	events := a.waitForEvents(10)
	l.waitUntil("the endpoint gets attempts", func() bool { return r.attempts() >= firstWindow })
	if err := a.engine.Stop(l.ctx()); err != nil {
		t.Fatal(err) // Stop took longer than waitLimit
	}
	r.respondWith(nil)
	b.startEngine()
	l.waitUntil("all have arrived", func() bool {
		l.advanceClock(putBackPause)
		_, taken := r.count()
		return taken == len(events)
	})
}
