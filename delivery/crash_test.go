package delivery

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// mortal is a store whose user dies before or after one of its steps.
type mortal struct {
	Store
	left atomic.Int64 // steps until then
	die  func()       // returns at once
}

// step ends for the dead when they are buried.
func (m *mortal) step(ctx context.Context) {
	switch left := m.left.Add(-1); {
	case left == 0:
		m.die()
		<-ctx.Done()
	case left < 0:
		<-ctx.Done()
	}
}

func (m *mortal) Work(ctx context.Context, do func(context.Context, store.DeliveryWorker) error) error {
	return m.Store.Work(ctx, func(ctx context.Context, w store.DeliveryWorker) error {
		return do(ctx, mortalWorker{w, m})
	})
}

type mortalWorker struct {
	store.DeliveryWorker
	m *mortal
}

func (w mortalWorker) Claim(ctx context.Context, owner licensing.Owner, endpoint string) (store.DeliveryHold, bool, error) {
	w.m.step(ctx)
	hold, ok, err := w.DeliveryWorker.Claim(ctx, owner, endpoint)
	w.m.step(ctx)
	return mortalHold{hold, w.m}, ok, err
}

type mortalHold struct {
	store.DeliveryHold
	m *mortal
}

func (h mortalHold) Resume(ctx context.Context) (store.DeliveryState, error) {
	h.m.step(ctx)
	return h.DeliveryHold.Resume(ctx)
}

func (h mortalHold) Pending(ctx context.Context, events ...string) ([]store.Delivery, error) {
	h.m.step(ctx)
	return h.DeliveryHold.Pending(ctx, events...)
}

func (h mortalHold) Checkpoint(ctx context.Context, done store.Checkpoint) error {
	h.m.step(ctx)
	err := h.DeliveryHold.Checkpoint(ctx, done)
	h.m.step(ctx)
	return err
}

func (h mortalHold) Release(ctx context.Context) error {
	h.m.step(ctx)
	err := h.DeliveryHold.Release(ctx)
	h.m.step(ctx)
	return err
}

// TestDiesBetweenAnySteps: an engine is killed again and again, before and after each
// kind of step. Every event arrives, and none that does not exist.
func TestDiesBetweenAnySteps(t *testing.T) {
	l := newLab(t)
	s := l.site()
	r := newReceiver(t)
	r.decide(func(w http.ResponseWriter, _ *http.Request, _ string, _ int) bool {
		if rand.IntN(5) == 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return false
		}
		return true
	})
	endpoint := s.subscribe(r)
	m := &mortal{Store: s.deliveries}
	s.through = m
	recorded := 0
	for life := range 40 {
		s.record(25)
		recorded += 25
		died := make(chan struct{})
		m.left.Store(int64(1 + life%20))
		m.die = func() { close(died) }
		e := s.deliver()
		for end := time.After(3 * time.Second); ; {
			l.pass(2 * time.Second)
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
	m.left.Store(1 << 40)
	s.deliver()
	events := s.recorded(recorded)
	l.until("all have arrived", func() bool {
		l.pass(time.Minute)
		_, taken := r.count()
		return taken >= len(events)
	})
	r.mustHaveAll(l, events)
	l.until("all of it is stored", func() bool {
		l.pass(time.Minute)
		p := s.progress(endpoint.ID)
		return p.Pending == 0 && p.Dead == 0 && !p.Behind
	})
	t.Logf("%d events were sent %d times", len(events), r.attempts())
}

// TestWorkersShare: endpoints are spread over two nodes, which hand over when one
// leaves, or is killed, and another comes.
func TestWorkersShare(t *testing.T) {
	l := newLab(t)
	a, b := l.site(), l.site()
	var receivers []*receiver
	for range 12 {
		r := newReceiver(t)
		a.subscribe(r)
		receivers = append(receivers, r)
	}
	first := a.deliver()
	a.record(20)
	all := func(events []string) {
		t.Helper()
		for _, r := range receivers {
			r.mustHaveAll(l, events)
		}
	}
	all(a.recorded(20))
	l.until("the one node has all", func() bool { return len(first.claimed()) == 12 })
	second := b.deliver()
	l.until("both have some", func() bool {
		return len(first.claimed()) < 12 && len(first.claimed())+len(second.claimed()) == 12
	})
	if n := len(second.claimed()); n == 0 || n == 12 {
		t.Errorf("the second node has %d of 12", n)
	}
	a.record(20)
	all(a.recorded(40))
	goOn := l.stopClock() // so that they are never free for freeAfter
	if err := first.Stop(l.ctx()); err != nil {
		t.Fatal(err)
	}
	l.until("the other has all", func() bool { return len(second.claimed()) == 12 })
	goOn()
	a.record(20)
	all(a.recorded(60))
	second.Kill()
	third := a.deliver()
	a.record(20)
	all(a.recorded(80))
	l.until("the third has all", func() bool { return len(third.claimed()) == 12 })
	for _, r := range receivers {
		if n := r.attempts(); n > 80+2*maxOpen {
			t.Errorf("80 events were sent %d times", n)
		}
	}
}

// TestLostLease: who loses its lease sends nothing more, and another goes on.
func TestLostLease(t *testing.T) {
	l := newLab(t)
	a, b := l.site(), l.site()
	r := newReceiver(t)
	endpoint := a.subscribe(r)
	gone := &leaseless{Store: a.deliveries, lost: make(chan struct{})}
	a.through = gone
	a.deliver()
	a.record(50)
	r.mustHaveAll(l, a.recorded(50))
	close(gone.lost)
	l.until("the first has none", func() bool { return len(a.engine.claimed()) == 0 })
	b.deliver()
	a.record(50)
	r.mustHaveAll(l, a.recorded(100))
	l.until("the other has it", func() bool { return len(b.engine.claimed()) == 1 && b.engine.claimed()[0] == endpoint.ID })
}

// leaseless is a store whose lease is lost at a moment, and never comes back.
type leaseless struct {
	Store
	lost chan struct{}
}

func (s *leaseless) Work(ctx context.Context, do func(context.Context, store.DeliveryWorker) error) error {
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

// TestStopCutsOff: a stop does not wait for a receiver that hangs, and gives up what
// is under way to the next one.
func TestStopCutsOff(t *testing.T) {
	l := newLab(t)
	a, b := l.site(), l.site()
	a.sendWithin(10 * patience)
	r := newReceiver(t)
	r.decide(func(_ http.ResponseWriter, r *http.Request, _ string, _ int) bool {
		<-r.Context().Done()
		return false
	})
	a.subscribe(r)
	a.deliver()
	a.record(10)
	events := a.recorded(10)
	l.until("it is tried", func() bool { return r.attempts() >= firstWindow })
	if err := a.engine.Stop(l.ctx()); err != nil {
		t.Fatal(err) // it took as long as we wait for anything
	}
	r.decide(nil)
	b.deliver()
	l.until("all have arrived", func() bool {
		l.pass(putBackPause)
		_, taken := r.count()
		return taken == len(events)
	})
}
