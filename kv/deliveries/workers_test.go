package deliveries

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

// TestEtcdLeaseIsLost: the context of a worker ends with its etcd lease.
func TestEtcdLeaseIsLost(t *testing.T) {
	t.Parallel()
	s := openDeliveries(t)
	err := s.Work(t.Context(), func(ctx context.Context, w store.DeliveryWorker) error {
		// Not under ctx: that may end before the answer has come.
		if _, err := own.Client.Revoke(t.Context(), w.(*worker).etcdLease); err != nil {
			return err
		}
		owner, endpoint := ownEndpoint(t)
		if _, ok, err := w.Acquire(ctx, owner, endpoint); ok || err == nil {
			t.Errorf("without an etcd lease it leases: %v, %v", ok, err)
		}
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, etcd.ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
}

// TestOneOfManyLeases lets workers lease endpoints at the same time, and write: each
// endpoint has one holder at a time, who writes what it says.
func TestOneOfManyLeases(t *testing.T) {
	t.Parallel()
	const endpoints, rounds = 4, 10
	owners, names := make([]licensing.Owner, endpoints), make([]string, endpoints)
	held := make([]atomic.Int32, endpoints)
	made := make([]atomic.Int64, endpoints)
	for i := range endpoints {
		owners[i], names[i] = ownEndpoint(t)
	}
	var group sync.WaitGroup
	for seed := range uint64(3) {
		w := newWorker(t, faultyDeliveries(t, kvtest.Storm(seed)))
		for i := range endpoints {
			group.Go(func() {
				for round := 0; round < rounds; {
					lease, ok, err := w.Acquire(t.Context(), owners[i], names[i])
					if err != nil && !errors.Is(err, licensing.ErrUnavailable) &&
						!errors.Is(err, licensing.ErrOutcomeUnknown) {
						t.Error(err)
						return
					}
					if !ok {
						// Leases removes leases that landed although their caller got no answer.
						_, _ = w.Leases(t.Context())
						continue
					}
					if n := held[i].Add(1); n != 1 {
						t.Errorf("%d hold it", n)
					}
					err = lease.Checkpoint(t.Context(),
						store.Checkpoint{Delivered: messages(round, round+1)})
					if err != nil {
						t.Errorf("checkpoint: %v", err)
					} else {
						made[i].Add(1)
					}
					held[i].Add(-1)
					if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
					}
					round++
				}
			})
		}
	}
	group.Wait()
	for i := range endpoints {
		if progress, _ := keptOf(t, names[i]); int64(progress.Number) != made[i].Load() {
			t.Errorf("%d checkpoints are counted of %d", progress.Number, made[i].Load())
		}
	}
}

// TestLateLeaseOfAReleasedEndpoint: a lease that lands late, after its release, does not keep other workers off.
func TestLateLeaseOfAReleasedEndpoint(t *testing.T) {
	owner, endpoint := ownEndpoint(t)
	s, next := scripted(t)
	w, other := newWorker(t, s), newWorker(t, openDeliveries(t))
	hold := holdOf(t, w, owner, endpoint)
	if err := hold.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What a late copy of the lease comes to.
	if _, err := own.Client.Put(t.Context(), keyspace.DeliveryLeaseKey(endpoint),
		string(s.incarnation[:]), clientv3.WithLease(w.etcdLease)); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := other.Acquire(t.Context(), owner, endpoint); ok || err != nil {
		t.Errorf("another worker leases it: %v, %v", ok, err)
	}
	if leases, err := w.Leases(t.Context()); err != nil ||
		leases[endpoint] != (store.Incarnation{}) {
		t.Errorf("it is leased by %v, %v", leases[endpoint], err)
	}
	hold = holdOf(t, other, owner, endpoint)
	if err := hold.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The worker itself makes it anew.
	response, err := own.Client.Put(t.Context(), keyspace.DeliveryLeaseKey(endpoint),
		string(s.incarnation[:]), clientv3.WithLease(w.etcdLease))
	if err != nil {
		t.Fatal(err)
	}
	if hold := holdOf(t, w, owner, endpoint); hold.fence <= response.Header.Revision {
		t.Errorf("it takes up the lease of %d, which was made at %d", hold.fence, response.Header.Revision)
	}
	if err := holdRelease(t, w, endpoint); err != nil {
		t.Fatal(err)
	}
	// A registration that was given up in doubt.
	ended, cancel := context.WithCancel(t.Context())
	lost := func() kvtest.Fault {
		cancel()
		return kvtest.Fault{Apply: kvtest.AppliedNow, Tell: rpctypes.ErrTimeout}
	}
	next.Store(&lost)
	if _, ok, err := w.Acquire(ended, owner, endpoint); ok || !errors.Is(err, licensing.ErrOutcomeUnknown) {
		t.Errorf("a lease in doubt: %v, %v", ok, err)
	}
	next.Store(nil)
	if leases, err := w.Leases(t.Context()); err != nil ||
		leases[endpoint] != (store.Incarnation{}) {
		t.Errorf("it is leased by %v, %v", leases[endpoint], err)
	}
	holdOf(t, other, owner, endpoint)
}

// holdRelease removes the lease of a worker as a release does.
func holdRelease(t *testing.T, w *worker, endpoint string) error {
	t.Helper()
	w.drop(endpoint)
	_, err := own.Client.Delete(t.Context(), keyspace.DeliveryLeaseKey(endpoint))
	return err
}

// TestForsakenLeases: a lease of a worker that no longer exists, or of an earlier etcd lease of this worker, keeps no
// worker off.
func TestForsakenLeases(t *testing.T) {
	owner, endpoint := ownEndpoint(t)
	s := openDeliveries(t)
	put := func(value string, opts ...clientv3.OpOption) {
		t.Helper()
		if _, err := own.Client.Put(t.Context(), keyspace.DeliveryLeaseKey(endpoint), value,
			opts...); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"of a worker that is gone": "12345678", "that can't be read": "x"} {
		put(value)
		asWorker(t, s, func(ctx context.Context, w *worker) {
			if _, ok, err := w.Acquire(ctx, owner, endpoint); !ok || err != nil {
				t.Errorf("a lease %s: %v, %v", name, ok, err)
			}
		})
	}
	earlier, err := own.Client.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	put(string(s.incarnation[:]), clientv3.WithLease(earlier.ID))
	asWorker(t, s, func(ctx context.Context, w *worker) {
		hold := holdOf(t, w, owner, endpoint)
		if _, err := own.Client.Revoke(ctx, earlier.ID); err != nil {
			t.Error(err)
		}
		if err := hold.Checkpoint(ctx, store.Checkpoint{Pending: messages(0, 1)}); err != nil {
			t.Errorf("the lease went with the earlier etcd lease: %v", err)
		}
	})
}
