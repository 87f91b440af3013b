package delivery

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// churningStore is a store whose endpoints change all the time, and whose reads take time.
type churningStore struct {
	Store
	mark      int64
	listTime  time.Duration // duration of a read of all endpoints
	scanTime  time.Duration // duration of a read of the leases
	spent     time.Duration // total duration of both kinds of reads
	lists     int
	listError error // the error of each read of all endpoints; nil: none
}

func (c *churningStore) WebhooksMark(context.Context) (int64, error) {
	c.mark++
	return c.mark, nil
}

func (c *churningStore) AllWebhooks(context.Context) iter.Seq2[store.OwnerWebhooks, error] {
	return func(yield func(store.OwnerWebhooks, error) bool) {
		c.lists++
		c.spend(c.listTime)
		if c.listError != nil {
			yield(store.OwnerWebhooks{}, c.listError)
		}
	}
}

func (c *churningStore) spend(d time.Duration) {
	time.Sleep(d)
	c.spent += d
}

func (c *churningStore) Self() store.Incarnation                              { return store.Incarnation{1} }
func (c *churningStore) Workers(context.Context) ([]store.Incarnation, error) { return nil, nil }

func (c *churningStore) Leases(context.Context) (map[string]store.Incarnation, error) {
	c.spend(c.scanTime)
	return nil, nil
}

func (c *churningStore) Acquire(context.Context, licensing.Owner, string) (store.DeliveryLease, bool, error) {
	return nil, false, nil
}

// TestChangesTakeAShare: although one owner changes endpoints all the time, a worker spends a twentieth of its time at
// most on reading the endpoints of all owners, and reads them once a minute at least. Failing reads take no larger
// share, except reads that take seconds.
func TestChangesTakeAShare(t *testing.T) {
	const span = 10 * time.Minute
	for _, c := range []struct {
		list  time.Duration
		fails error
	}{
		{time.Millisecond, nil},
		{50 * time.Millisecond, nil},
		{2 * time.Second, nil},
		{50 * time.Millisecond, licensing.ErrUnavailable},
	} {
		t.Run(fmt.Sprint(c.list, ", ", c.fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), span)
				defer cancel()
				store := &churningStore{listTime: c.list, scanTime: c.list / 10, listError: c.fails}
				instruments := metrics.New(prometheus.NewRegistry(), "", "", "")
				node := service.New(service.Config{
					Config: node.Config{Clock: time.Now, Metrics: instruments, Log: zerolog.Nop()},
				})
				e := &Engine{
					cfg: Config{
						Store: store, Node: node, Clock: time.Now, Metrics: instruments, Log: zerolog.Nop(),
					},
					scanRequests: make(chan struct{}, 1), stopping: make(chan struct{}),
					listInterval: listEvery, loops: make(map[string]*endpointLoop),
				}
				var churning sync.WaitGroup
				defer churning.Wait()
				churning.Go(func() {
					for ctx.Err() == nil {
						e.requestScan()
						time.Sleep(10 * time.Millisecond)
					}
				})
				_ = newWorker(e, store).run(ctx)
				if share := store.spent.Seconds() / span.Seconds(); share > 0.1 {
					t.Errorf("reads take %.0f %% of the time", 100*share)
				}
				if least := int(span / (listEvery + takeoverAfter + 2*c.list)); store.lists < least {
					t.Errorf("all endpoints were read %d times, want %d at least", store.lists, least)
				}
			})
		})
	}
}
