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
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// TestLeaseIsLost: the context of a worker ends with its lease.
func TestLeaseIsLost(t *testing.T) {
	t.Parallel()
	s := openDeliveries(t)
	err := s.Work(t.Context(), func(ctx context.Context, w store.DeliveryWorker) error {
		// Not under ctx: that may end before the answer has come.
		if _, err := own.Client.Revoke(t.Context(), w.(*worker).lease); err != nil {
			return err
		}
		owner, endpoint := ownEndpoint(t)
		if _, ok, err := w.Claim(ctx, owner, endpoint); ok || err == nil {
			t.Errorf("without a lease it claims: %v, %v", ok, err)
		}
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, etcd.ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
}

// TestOneOfManyClaims lets workers claim endpoints at the same time, and write: each
// endpoint has one holder at a time, who writes what it says.
func TestOneOfManyClaims(t *testing.T) {
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
					hold, ok, err := w.Claim(t.Context(), owners[i], names[i])
					if err != nil && !errors.Is(err, licensing.ErrUnavailable) &&
						!errors.Is(err, licensing.ErrOutcomeUnknown) {
						t.Error(err)
						return
					}
					if !ok {
						// Claims removes claims that landed although their caller got no answer.
						_, _ = w.Claims(t.Context())
						continue
					}
					if n := held[i].Add(1); n != 1 {
						t.Errorf("%d hold it", n)
					}
					err = hold.Checkpoint(t.Context(),
						store.Checkpoint{Delivered: messages(round, round+1)})
					if err != nil {
						t.Errorf("checkpoint: %v", err)
					} else {
						made[i].Add(1)
					}
					held[i].Add(-1)
					if err := hold.Release(t.Context()); err != nil {
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

// TestLateClaimOfAReleasedEndpoint: a claim that lands late, after its release, does not keep other workers off.
func TestLateClaimOfAReleasedEndpoint(t *testing.T) {
	owner, endpoint := ownEndpoint(t)
	s, next := scripted(t)
	w, other := newWorker(t, s), newWorker(t, openDeliveries(t))
	hold := holdOf(t, w, owner, endpoint)
	if err := hold.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What a late copy of the claim comes to.
	if _, err := own.Client.Put(t.Context(), layout.DeliveryClaimKey(endpoint),
		string(s.incarnation[:]), clientv3.WithLease(w.lease)); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := other.Claim(t.Context(), owner, endpoint); ok || err != nil {
		t.Errorf("another worker claims it: %v, %v", ok, err)
	}
	if claims, err := w.Claims(t.Context()); err != nil ||
		claims[endpoint] != (store.Incarnation{}) {
		t.Errorf("it is claimed by %v, %v", claims[endpoint], err)
	}
	hold = holdOf(t, other, owner, endpoint)
	if err := hold.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The worker itself makes it anew.
	response, err := own.Client.Put(t.Context(), layout.DeliveryClaimKey(endpoint),
		string(s.incarnation[:]), clientv3.WithLease(w.lease))
	if err != nil {
		t.Fatal(err)
	}
	if hold := holdOf(t, w, owner, endpoint); hold.fence <= response.Header.Revision {
		t.Errorf("it takes up the claim of %d, which was made at %d", hold.fence, response.Header.Revision)
	}
	if err := holdRelease(t, w, endpoint); err != nil {
		t.Fatal(err)
	}
	// One that was given up in doubt.
	ended, cancel := context.WithCancel(t.Context())
	lost := func() kvtest.Fault {
		cancel()
		return kvtest.Fault{Apply: kvtest.AppliedNow, Tell: rpctypes.ErrTimeout}
	}
	next.Store(&lost)
	if _, ok, err := w.Claim(ended, owner, endpoint); ok || !errors.Is(err, licensing.ErrOutcomeUnknown) {
		t.Errorf("a claim in doubt: %v, %v", ok, err)
	}
	next.Store(nil)
	if claims, err := w.Claims(t.Context()); err != nil ||
		claims[endpoint] != (store.Incarnation{}) {
		t.Errorf("it is claimed by %v, %v", claims[endpoint], err)
	}
	holdOf(t, other, owner, endpoint)
}

// holdRelease removes the claim of a worker as a release does.
func holdRelease(t *testing.T, w *worker, endpoint string) error {
	t.Helper()
	w.drop(endpoint)
	_, err := own.Client.Delete(t.Context(), layout.DeliveryClaimKey(endpoint))
	return err
}

// TestForsakenClaims: a claim of a worker that no longer exists, or of an earlier lease of this worker, keeps no
// worker off.
func TestForsakenClaims(t *testing.T) {
	owner, endpoint := ownEndpoint(t)
	s := openDeliveries(t)
	put := func(value string, opts ...clientv3.OpOption) {
		t.Helper()
		if _, err := own.Client.Put(t.Context(), layout.DeliveryClaimKey(endpoint), value,
			opts...); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"of a worker that is gone": "12345678", "that can't be read": "x"} {
		put(value)
		asWorker(t, s, func(ctx context.Context, w *worker) {
			if _, ok, err := w.Claim(ctx, owner, endpoint); !ok || err != nil {
				t.Errorf("a claim %s: %v, %v", name, ok, err)
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
			t.Errorf("the claim went with the earlier lease: %v", err)
		}
	})
}
