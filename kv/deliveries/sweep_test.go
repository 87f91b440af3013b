package deliveries

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/deliveries/deliveriestest"
	"licet/kv/internal/keyspace"
	"licet/licensing"
	"licet/node/store"
)

// TestReplaysAreBounded lets two nodes ask for more replays than may wait.
func TestReplaysAreBounded(t *testing.T) {
	owner, endpoint := ownEndpoint(t)
	stores := []*Store{openDeliveries(t), openDeliveries(t)}
	var taken, refused atomic.Int32
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			for {
				err := stores[i%2].AddReplay(t.Context(), owner, endpoint,
					store.Replay{ID: fmt.Sprintf("%02d", i), Dead: true})
				switch {
				case err == nil:
					taken.Add(1)
				case errors.Is(err, store.ErrTooManyReplays):
					refused.Add(1)
				case errors.Is(err, licensing.ErrUnavailable):
					continue
				default:
					t.Error(err)
				}
				return
			}
		})
	}
	group.Wait()
	if _, kinds := keptOf(t, endpoint); taken.Load() != store.MaxReplays || refused.Load() != 40-store.MaxReplays ||
		kinds[keyspace.KeyOfReplay] != store.MaxReplays {
		t.Errorf("%d are taken, %d refused, and %d wait", taken.Load(), refused.Load(), kinds[keyspace.KeyOfReplay])
	}
}

// TestReplaysAtOnce asks for replays for all endpoints of an owner at once. Each of them writes
// the owner's record, and all are stored.
func TestReplaysAtOnce(t *testing.T) {
	owner, endpoint := ownEndpoint(t)
	endpoints := make([]licensing.Endpoint, 16)
	for i := range endpoints {
		endpoints[i].ID = fmt.Sprintf("%s%02d", endpoint[:len(endpoint)-2], i)
	}
	deliveriestest.PutEndpoints(own.Client)(t, owner, endpoints)
	s := openDeliveries(t)
	var group sync.WaitGroup
	for i := range endpoints {
		group.Go(func() {
			if err := s.AddReplay(t.Context(), owner, endpoints[i].ID,
				store.Replay{ID: "1", Dead: true}); err != nil {
				t.Errorf("the endpoint %d: %v", i, err)
			}
		})
	}
	group.Wait()
}

// TestSweepAgainstHolder deletes endpoints whose holders go on writing, and sweeps them
// by two nodes: nothing is left, and nothing comes after.
func TestSweepAgainstHolder(t *testing.T) {
	sweepers := []*Store{openDeliveries(t), openDeliveries(t)}
	w := newWorker(t, openDeliveries(t))
	for range 5 {
		owner, endpoint := ownEndpoint(t)
		hold := holdOf(t, w, owner, endpoint)
		wrote, asked, lost := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			defer close(lost)
			for n := 0; ; n++ {
				err := hold.Checkpoint(t.Context(),
					store.Checkpoint{Pending: messages(10*n, 10*n+10), Delivered: messages(0, 3)})
				if errors.Is(err, store.ErrLeaseLost) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n == 20 {
					close(wrote)
				}
			}
		})
		group.Go(func() {
			for taken := false; ; {
				err := sweepers[0].AddReplay(t.Context(), owner, endpoint,
					store.Replay{ID: "1", Dead: true})
				if errors.Is(err, licensing.ErrWebhookNotFound) {
					return
				}
				if err == nil && !taken {
					taken = true
					close(asked)
				}
			}
		})
		<-wrote
		<-asked
		deliveriestest.PutEndpoints(own.Client)(t, owner, nil, endpoint)
		for _, s := range sweepers {
			group.Go(func() {
				for {
					mark, err := own.Client.Get(t.Context(), keyspace.DeletedWebhookKey(endpoint))
					if err != nil || len(mark.Kvs) == 0 {
						return
					}
					if _, err := s.SweepWebhooks(t.Context()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		<-lost
		group.Wait()
		for _, prefix := range []string{keyspace.EndpointPrefix(endpoint), keyspace.DeliveryLeaseKey(endpoint),
			keyspace.DeletedWebhookKey(endpoint)} {
			if left, err := own.Client.Get(t.Context(), prefix,
				clientv3.WithPrefix()); err != nil || len(left.Kvs) > 0 {
				t.Errorf("there is %v, %v", left.Kvs, err)
			}
		}
	}
}
