package delivery

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// unreadableStore is a store some of whose reads fail.
type unreadableStore struct {
	Store
	broken string       // the endpoint whose lease fails
	leased atomic.Int64 // the number of tries to lease it
	mark   atomic.Int64
	armed  atomic.Bool // the next change of endpoints makes one read of the workers fail
	fails  atomic.Bool
}

func (s *unreadableStore) AllWebhooks(ctx context.Context) iter.Seq2[store.OwnerWebhooks, error] {
	return func(yield func(store.OwnerWebhooks, error) bool) {
		if s.broken != "" && !yield(store.OwnerWebhooks{}, licensing.ErrInternal) {
			return
		}
		s.Store.AllWebhooks(ctx)(yield)
	}
}

func (s *unreadableStore) WebhooksMark(ctx context.Context) (int64, error) {
	mark, err := s.Store.WebhooksMark(ctx)
	if err == nil && s.mark.Swap(mark) != mark && s.armed.CompareAndSwap(true, false) {
		s.fails.Store(true)
	}
	return mark, err
}

func (s *unreadableStore) Work(ctx context.Context, do func(context.Context, store.DeliveryWorker) error) error {
	return s.Store.Work(ctx, func(ctx context.Context, w store.DeliveryWorker) error {
		return do(ctx, unreadableWorker{w, s})
	})
}

type unreadableWorker struct {
	store.DeliveryWorker
	s *unreadableStore
}

func (w unreadableWorker) Workers(ctx context.Context) ([]store.Incarnation, error) {
	if w.s.fails.CompareAndSwap(true, false) {
		return nil, licensing.ErrUnavailable
	}
	return w.DeliveryWorker.Workers(ctx)
}

func (w unreadableWorker) Acquire(
	ctx context.Context, owner licensing.Owner, endpoint string,
) (store.DeliveryLease, bool, error) {
	if endpoint == w.s.broken {
		w.s.leased.Add(1)
		return nil, false, licensing.ErrInternal
	}
	return w.DeliveryWorker.Acquire(ctx, owner, endpoint)
}

// TestUnreadableEndpointDelaysNoOther: all other endpoints get their events although one owner's record and one
// endpoint's lease can't be read.
func TestUnreadableEndpointDelaysNoOther(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	r := newReceiver(t)
	store := &unreadableStore{Store: s.deliveries, broken: s.subscribe(r).ID}
	s.engineStore = store
	s.subscribe(r)
	s.startEngine()
	s.grant(10)
	r.waitForAll(l, s.waitForEvents(10))
	l.waitUntil("the worker tries the lease again", func() bool {
		l.advanceClock(firstFailurePause)
		s.engine.requestScan()
		return store.leased.Load() > 1
	})
}

// TestChangeIsSeenAfterAFailedScan: a scan that fails after it read a change does not lose the change.
func TestChangeIsSeenAfterAFailedScan(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	store := &unreadableStore{Store: s.deliveries}
	s.engineStore = store
	s.listInterval = 2 * waitLimit
	r, moved := newReceiver(t), newReceiver(t)
	endpoint := s.subscribe(r)
	s.startEngine()
	s.grant(1)
	r.waitForAll(l, s.waitForEvents(1))
	store.armed.Store(true)
	s.update(licensing.UpdateEndpoint{ID: endpoint.ID, URL: &moved.server.URL})
	l.waitUntil("events arrive at the new URL", func() bool {
		s.grant(1)
		n, _ := moved.count()
		return n > 0
	})
}

// TestFailedLoopsBackOff: the pause of an endpoint doubles with each failure of its loop, until the loop succeeds.
func TestFailedLoopsBackOff(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	e := &Engine{cfg: Config{Clock: func() time.Time { return now }}, loops: make(map[string]*endpointLoop)}
	w := &worker{engine: e, loops: e.loops, backoffs: make(map[string]failureBackoff)}
	begun := 0
	for end := now.Add(time.Hour); now.Before(end); now = now.Add(100 * time.Millisecond) {
		if now.Before(w.backoffs["we_1"].until) {
			continue
		}
		begun++
		w.loopEnded(&endpointLoop{id: "we_1", failed: true})
	}
	if begun < 60 || begun > 70 {
		t.Errorf("the loop ran %d times in an hour, want 60 to 70", begun)
	}
	w.loopEnded(&endpointLoop{id: "we_1"})
	if len(w.backoffs) > 0 {
		t.Error("the endpoint is still paused after its loop succeeded")
	}
}
