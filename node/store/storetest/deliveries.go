package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"licet/licensing"
	"licet/node/store"
)

// PutEndpoints stores endpoints of an owner, and marks others as deleted, as changes of endpoints do in the database.
type PutEndpoints func(t *testing.T, owner licensing.Owner, endpoints []licensing.Endpoint, deleted ...string)

// DeliveryStore is what RunDeliveries tests: what the API asks of the deliveries, and what the workers
// ask (delivery.Store).
type DeliveryStore interface {
	store.DeliveryLog
	WebhooksMark(ctx context.Context) (int64, error)
	WatchWebhooks(ctx context.Context, wake func())
	AllWebhooks(ctx context.Context) iter.Seq2[store.OwnerWebhooks, error]
	Work(ctx context.Context, do func(ctx context.Context, w store.DeliveryWorker) error) error
}

// RunDeliveries checks what a store must do for the delivery of webhooks. open returns a store that is a worker of its
// own.
func RunDeliveries(t *testing.T, open func(t *testing.T) DeliveryStore, put PutEndpoints) {
	for _, c := range []struct {
		name string
		test func(deliveries)
	}{
		{"a worker is known while it works", testWorkers},
		{"an endpoint has one holder", testHolders},
		{"a checkpoint is what the next holder resumes", testCheckpoint},
		{"any checkpoints leave what they say", testCheckpoints},
		{"a large checkpoint is whole", testLargeCheckpoint},
		{"what became of messages is listed", testDeliveryList},
		{"the log keeps the latest", testDeliveryLog},
		{"replays wait, and are bounded", testReplays},
		{"a holder reads the endpoint as it is", testHeldEndpoint},
		{"a replay is stored with its claim", testReplayClaims},
		{"a deleted endpoint leaves nothing", testSweepEndpoint},
		{"endpoints are read, and their changes noticed", testAllWebhooks},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := deliveries{fixture: fixture{t: t}, open: open, put: put}
			d.owner = d.fixture.owner()
			d.endpoint = d.newEndpoint()
			put(t, d.owner, []licensing.Endpoint{{ID: d.endpoint, URL: "https://shop.example/hook"}})
			c.test(d)
		})
	}
}

// deliveries is a fixture with an endpoint.
type deliveries struct {
	fixture
	open     func(t *testing.T) DeliveryStore
	put      PutEndpoints
	owner    licensing.Owner
	endpoint string
}

func (d deliveries) newEndpoint() string {
	return licensing.NewEndpointID(d.owner, ulid.Make().String())
}

// again repeats do, which may run twice, until it succeeds: a store may fail.
func (d deliveries) again(do func() error) {
	d.t.Helper()
	for until := time.Now().Add(20 * time.Second); ; {
		err := do()
		if err == nil {
			return
		}
		if !errors.Is(err, licensing.ErrUnavailable) && !errors.Is(err, licensing.ErrOutcomeUnknown) ||
			time.Now().After(until) {
			d.t.Fatal(err)
		}
	}
}

// work works until the test ends, or stop is called.
func (d deliveries) work(s DeliveryStore) (w store.DeliveryWorker, stop func()) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	began, ended := make(chan store.DeliveryWorker, 1), make(chan error, 1)
	go func() {
		ended <- s.Work(ctx, func(ctx context.Context, w store.DeliveryWorker) error {
			began <- w
			<-ctx.Done()
			return nil
		})
	}()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			d.t.Error(err)
		}
	}
	d.t.Cleanup(stop)
	select {
	case w = <-began:
	case err := <-ended:
		d.t.Fatal(err)
	}
	return w, stop
}

func (d deliveries) acquire(w store.DeliveryWorker) (lease store.DeliveryLease) {
	d.t.Helper()
	d.again(func() error {
		h, ok, err := w.Acquire(d.context(), d.owner, d.endpoint)
		if err == nil && !ok {
			d.t.Fatal("the endpoint is not free")
		}
		lease = h
		return err
	})
	return lease
}

func (d deliveries) resume(lease store.DeliveryLease) (state store.DeliveryState) {
	d.t.Helper()
	d.again(func() (err error) { state, err = lease.Resume(d.context()); return err })
	return state
}

func (d deliveries) checkpoint(lease store.DeliveryLease, done store.Checkpoint) {
	d.t.Helper()
	if err := lease.Checkpoint(d.context(), done); err != nil {
		d.t.Fatal(err)
	}
}

func (d deliveries) release(lease store.DeliveryLease) {
	d.t.Helper()
	d.again(func() error { return lease.Release(d.context()) })
}

// all reads a listing of deliveries to its end.
func (d deliveries) all(s DeliveryStore, status store.DeliveryStatus, limit int) (all []store.Delivery) {
	d.t.Helper()
	page := store.DeliveryPage{Status: status, Limit: limit}
	for {
		var got store.Deliveries
		d.again(func() (err error) { got, err = s.Deliveries(d.context(), d.endpoint, page); return err })
		if len(got.Items) > limit {
			d.t.Fatalf("a page of %d has %d", limit, len(got.Items))
		}
		all = append(all, got.Items...)
		if page.After = got.Next; page.After == "" {
			return all
		}
	}
}

func message(n int, attempts int) store.Delivery {
	m := store.Delivery{EventID: fmt.Sprintf("evt_0%06d", n), Type: licensing.EventOrderPaid,
		Answer: fmt.Sprintf("answer %d", n%3), Next: created.Add(time.Duration(n) * time.Second)}
	for i := range attempts {
		m.Attempts = append(m.Attempts, store.DeliveryAttempt{At: created.Add(time.Duration(n+i) * time.Minute),
			Duration: time.Duration(i) * time.Millisecond, Status: 500 + i, Failure: "status"})
	}
	return m
}

func asDelivered(m store.Delivery) store.Delivery {
	m.Status, m.Next = store.DeliveryDelivered, time.Time{}
	return m
}

func as(status store.DeliveryStatus, m store.Delivery) store.Delivery {
	m.Status = status
	return m
}

func byEvent(a, b store.Delivery) int { return cmp.Compare(a.EventID, b.EventID) }
