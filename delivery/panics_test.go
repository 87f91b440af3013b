package delivery

import (
	"context"
	"crypto/rand"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// panickingStore is a store that panics once, at the step that at names.
type panickingStore struct {
	Store
	store.Events
	at atomic.Pointer[string]
}

func (f *panickingStore) step(name string) {
	if at := f.at.Load(); at != nil && *at == name && f.at.CompareAndSwap(at, nil) {
		panic("a bug in " + name)
	}
}

func (f *panickingStore) ReadEvents(
	ctx context.Context, owner licensing.Owner, page store.FeedPage,
) (store.Feed, error) {
	f.step("a page")
	return f.Events.ReadEvents(ctx, owner, page)
}

func (f *panickingStore) Event(ctx context.Context, owner licensing.Owner, id string) (*store.RecordedEvent, error) {
	f.step("an event")
	return f.Events.Event(ctx, owner, id)
}

func (f *panickingStore) WebhooksMark(ctx context.Context) (int64, error) {
	f.step("the scan")
	return f.Store.WebhooksMark(ctx)
}

func (f *panickingStore) WatchWebhooks(ctx context.Context, wake func()) {
	f.Store.WatchWebhooks(ctx, func() { f.step("the watch"); wake() })
}

func (f *panickingStore) Progresses(ctx context.Context, ids ...string) (map[string]store.DeliveryProgress, error) {
	f.step("the count of dead messages")
	return f.Store.Progresses(ctx, ids...)
}

func (f *panickingStore) Work(ctx context.Context, do func(context.Context, store.DeliveryWorker) error) error {
	return f.Store.Work(ctx, func(ctx context.Context, w store.DeliveryWorker) error {
		return do(ctx, panickingWorker{w, f})
	})
}

type panickingWorker struct {
	store.DeliveryWorker
	f *panickingStore
}

func (w panickingWorker) Acquire(
	ctx context.Context, owner licensing.Owner, endpoint string,
) (store.DeliveryLease, bool, error) {
	w.f.step("a lease")
	lease, ok, err := w.DeliveryWorker.Acquire(ctx, owner, endpoint)
	return panickingLease{lease, w.f}, ok, err
}

type panickingLease struct {
	store.DeliveryLease
	f *panickingStore
}

func (h panickingLease) Resume(ctx context.Context) (store.DeliveryState, error) {
	h.f.step("the state")
	return h.DeliveryLease.Resume(ctx)
}

func (h panickingLease) Checkpoint(ctx context.Context, done store.Checkpoint) error {
	h.f.step("a checkpoint")
	return h.DeliveryLease.Checkpoint(ctx, done)
}

func (h panickingLease) Jobs(ctx context.Context) ([]store.Replay, store.EndpointAt, error) {
	h.f.step("the list of replays")
	return h.DeliveryLease.Jobs(ctx)
}

func (h panickingLease) Dead(ctx context.Context, after string, limit int) ([]store.Delivery, error) {
	h.f.step("the dead messages")
	return h.DeliveryLease.Dead(ctx, after, limit)
}

// TestPanicsEndNothing: after a panic in any goroutine of an engine the process goes on, the panic is counted, and the
// endpoint gets every event.
func TestPanicsEndNothing(t *testing.T) {
	for _, steps := range [][]string{
		{"a page", "a message", "a checkpoint"},
		{"the list of replays", "an event", "the dead messages"},
		{"the count of dead messages", "the state", "a lease"},
		{"the scan", "the watch"},
	} {
		t.Run(strings.Join(steps, ", "), func(t *testing.T) { panicAt(t, steps) })
	}
}

// panicAt has an engine panic at each of some steps.
func panicAt(t *testing.T, steps []string) {
	l := newTestCluster(t)
	s := l.node()
	f := &panickingStore{Store: s.deliveries, Events: s.store}
	s.engineStore = f
	keys, err := s.store.LicenseKeys(l.ctx(), l.ring, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	n := service.New(service.Config{
		Config: node.Config{
			Records:     s.store,
			Queries:     s.store,
			LicenseKeys: keys,
			Clock:       l.now,
			Metrics:     s.metrics,
			Log:         zerolog.Nop(),
		},
		Sweeps:     s.store,
		Entropy:    rand.Reader,
		Events:     f,
		Deliveries: s.deliveries,
		Keys:       s.store,
		Ring:       l.ring,
	})
	r := newReceiver(t)
	endpoint := s.subscribe(r)
	s.newEngine()
	s.engine.cfg.Node = n
	s.engine.cfg.Render = func(v *service.EventView) ([]byte, error) {
		f.step("a message")
		return s.server.RenderEvent(v)
	}
	s.startMade()
	panics := func() float64 { return testutil.ToFloat64(s.metrics.Panics) }
	recorded := 0
	served := func(after string) {
		t.Helper()
		s.grant(1)
		recorded++
		events := s.waitForEvents(recorded)
		l.waitUntil("the endpoint has every event after "+after, func() bool {
			l.advanceClock(time.Second)
			missing, _ := r.missing(events)
			return len(missing) == 0
		})
	}
	served("the start")
	for i, step := range steps {
		f.at.Store(&step)
		switch step {
		case "an event":
			s.replay(endpoint.ID, store.Replay{EventID: s.eventIDs()[0]})
		case "the list of replays", "the dead messages", "the count of dead messages":
			s.replay(endpoint.ID, store.Replay{Dead: true})
		case "the state", "a lease": // the loop starts again
			again := "the list of replays"
			f.at.Store(&again)
			s.replay(endpoint.ID, store.Replay{Dead: true})
			l.waitUntil("the deliveries to the endpoint end", func() bool { return f.at.CompareAndSwap(nil, &step) })
		case "the watch":
			s.subscribe(newReceiver(t))
		default:
			s.grant(1)
			recorded++
		}
		l.waitUntil(step+" panics", func() bool {
			l.advanceClock(time.Second)
			return f.at.Load() == nil
		})
		served(step)
		if got := panics(); got < float64(i+1) {
			t.Errorf("%s: %v panics were counted", step, got)
		}
	}
}

// TestEndsBeforeItStarts: an engine that was never started can be stopped and killed, and does not start after that.
func TestEndsBeforeItStarts(t *testing.T) {
	s := newTestCluster(t).node()
	for name, end := range map[string]func(*Engine) error{
		"Kill": func(e *Engine) error { e.Kill(); return nil },
		"Stop": func(e *Engine) error { return e.Stop(context.Background()) },
		"both": func(e *Engine) error {
			err := e.Stop(context.Background())
			e.Kill()
			return err
		},
	} {
		e := s.newEngine()
		if err := end(e); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		e.Start()
		e.Kill()
		if len(e.leasedIDs()) > 0 {
			t.Errorf("%s: it delivers", name)
		}
	}
}
