package deliveries

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oklog/ulid/v2"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/deliveries/deliveriestest"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/store"
)

// ownEndpoint creates an endpoint of a new owner.
func ownEndpoint(t *testing.T) (licensing.Owner, string) {
	t.Helper()
	owner := licensing.Owner{AccountID: "acct_" + strings.ToLower(ulid.Make().String()), Mode: licensing.Live}
	endpoint := licensing.NewEndpointID(owner, ulid.Make().String())
	deliveriestest.PutEndpoints(own.Client)(t, owner, []licensing.Endpoint{{ID: endpoint}})
	return owner, endpoint
}

// newWorker returns the worker that a store is until the test ends.
func newWorker(t *testing.T, s *Store) *worker {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	began, ended := make(chan *worker, 1), make(chan error, 1)
	go func() {
		ended <- s.Work(ctx, func(ctx context.Context, w store.DeliveryWorker) error {
			began <- w.(*worker)
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	select {
	case w := <-began:
		return w
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
		return nil
	}
}

func holdOf(t *testing.T, w *worker, owner licensing.Owner, endpoint string) *holder {
	t.Helper()
	lease, ok, err := w.Acquire(t.Context(), owner, endpoint)
	if err != nil || !ok {
		t.Fatalf("acquire: %v, %v", ok, err)
	}
	return lease.(*holder)
}

// scripted opens a store that writes as a script says once it is set.
func scripted(t *testing.T) (*Store, *atomic.Pointer[func() kvtest.Fault]) {
	t.Helper()
	next := &atomic.Pointer[func() kvtest.Fault]{}
	return faultyDeliveries(t, func() kvtest.Fault {
		if f := next.Load(); f != nil {
			return (*f)()
		}
		return kvtest.Fault{}
	}), next
}

func messages(from, to int) (all []store.Delivery) {
	for n := from; n < to; n++ {
		all = append(all, store.Delivery{EventID: fmt.Sprintf("evt_%06d", n), Type: licensing.EventOrderPaid,
			Next: kvtest.Time, Attempts: []store.DeliveryAttempt{{At: kvtest.Time, Status: 500}}})
	}
	return all
}

// keptOf reads what is kept of an endpoint, and demands that it does not contradict
// itself.
func keptOf(t *testing.T, endpoint string) (progress *layout.Progress, kinds map[byte]int) {
	t.Helper()
	response, err := own.Client.Get(t.Context(), keyspace.EndpointPrefix(endpoint),
		clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	kinds = make(map[byte]int)
	for _, kv := range response.Kvs {
		rest, _ := keyspace.CutFamily(string(kv.Key), keyspace.DeliveryFamily)
		if _, kind, _, ok := keyspace.ReadDeliveryKey(rest); ok {
			kinds[kind]++
		}
	}
	return verify.Endpoint(endpoint, response.Kvs, func(v verify.Violation) { t.Error(v) }), kinds
}

// TestCheckpointIsKilled stops a checkpoint of several transactions after each of them:
// the counts are right at any time, the place is the old one until all is there, and
// the next holder goes on from there.
func TestCheckpointIsKilled(t *testing.T) {
	t.Parallel()
	all := messages(0, 900)
	large := store.Checkpoint{
		Progress: store.DeliveryProgress{Place: "evt_9"}, Delivered: all[:200], Dead: all[200:400],
		Pending: all[400:600],
		PutJobs: []store.Replay{{ID: "2", Dead: true}}, EndJobs: []string{"1"},
	}
	for _, first := range []bool{true, false} {
		for kill, made := 0, false; !made; kill++ {
			owner, endpoint := ownEndpoint(t)
			s, faults := scripted(t)
			hold := holdOf(t, newWorker(t, s), owner, endpoint)
			if !first {
				done := store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_1"}, Pending: all[100:500],
					Dead: all[0:50], PutJobs: []store.Replay{{ID: "1", Dead: true}}}
				if err := hold.Checkpoint(t.Context(), done); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			writes := 0
			next := func() kvtest.Fault {
				if writes++; writes > kill {
					cancel()
					return kvtest.Fault{Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTimeout}
				}
				return kvtest.Fault{}
			}
			faults.Store(&next)
			err := hold.Checkpoint(ctx, large)
			if made = err == nil; !made && !errors.Is(err, licensing.ErrOutcomeUnknown) {
				t.Fatalf("killed after %d writes: %v", kill, err)
			}
			cancel()
			progress, kinds := keptOf(t, endpoint)
			switch {
			case made:
				if kill < 4 {
					t.Errorf("it took %d writes", kill)
				}
				if progress.Progress.Place != "evt_9" || progress.Progress.Pending != 200 ||
					progress.Progress.Dead != 200 || kinds[keyspace.KeyOfReplay] != 1 {
					t.Errorf("in the end there is %+v, %v", progress, kinds)
				}
			case first && kill == 0:
				if len(kinds) > 0 {
					t.Errorf("nothing was written, and there is %v", kinds)
				}
			case first && (progress.Begun || progress.Progress.Place != "" || kinds[keyspace.KeyOfReplay] != 0):
				t.Errorf("killed after %d writes of the first one: %+v, %v", kill, progress, kinds)
			case !first && (progress.Progress.Place != "evt_1" || kinds[keyspace.KeyOfReplay] != 1):
				t.Errorf("killed after %d writes: %+v, %v", kill, progress, kinds)
			}
			faults.Store(nil)
			// The next holder, or this one, does the rest.
			if kill%2 == 0 {
				if err := hold.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				hold = holdOf(t, newWorker(t, openDeliveries(t)), owner, endpoint)
				state, err := hold.Resume(t.Context())
				if err != nil || state.Found != (made || !first) || len(state.Pending) != kinds[keyspace.KeyOfPending] {
					t.Errorf("killed after %d writes: it resumes at %+v, %v", kill, state.Progress, err)
				}
			}
			if err := hold.Checkpoint(t.Context(), large); err != nil {
				t.Fatal(err)
			}
			if progress, kinds := keptOf(t, endpoint); progress.Progress.Place != "evt_9" ||
				kinds[keyspace.KeyOfPending] != 200 || kinds[keyspace.KeyOfDead] != 200 {
				t.Errorf("killed after %d writes: then there is %+v, %v", kill, progress, kinds)
			}
		}
	}
}

// TestCheckpointLandsOnce loses answers in every way: each checkpoint lands once, and
// what was long under way never comes after what was written since.
func TestCheckpointLandsOnce(t *testing.T) {
	t.Parallel()
	lost := rpctypes.ErrTimeout
	for name, faults := range map[string][]kvtest.Fault{
		"applied":      {{Apply: kvtest.AppliedNow, Tell: lost}},
		"not applied":  {{Apply: kvtest.AppliedNever, Tell: lost}},
		"applied late": {{Apply: kvtest.AppliedLate, Tell: lost}},
		"applied, and then late": {{Apply: kvtest.AppliedNow, Tell: lost},
			{Apply: kvtest.AppliedLate, Tell: lost}},
		"late, and then applied": {{Apply: kvtest.AppliedLate, Tell: lost},
			{Apply: kvtest.AppliedNow, Tell: lost}},
		"late twice": {{Apply: kvtest.AppliedLate, Tell: lost},
			{Apply: kvtest.AppliedLate, Tell: lost}, {Apply: kvtest.AppliedNow, Tell: lost}},
		"refused, and then in doubt": {{Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTooManyRequests},
			{Apply: kvtest.AppliedNow, Tell: lost}},
		"in doubt, and then refused": {{Apply: kvtest.AppliedNow, Tell: lost},
			{Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTooManyRequests}},
		"in doubt for as long as ten": slices.Repeat([]kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost}}, 10),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner, endpoint := ownEndpoint(t)
			s, next := scripted(t)
			hold := holdOf(t, newWorker(t, s), owner, endpoint)
			for n := range 3 {
				play := kvtest.Script(slices.Clone(faults)...)
				next.Store(&play)
				done := store.Checkpoint{Progress: store.DeliveryProgress{Place: store.FeedPosition(fmt.Sprint("evt_",
					n))}, Pending: messages(n, n+1), Delivered: messages(10+n, 11+n)}
				if err := hold.Checkpoint(t.Context(), done); err != nil {
					t.Fatal(err)
				}
				progress, kinds := keptOf(t, endpoint)
				if progress.Number != uint64(n+1) || progress.Progress.Place != done.Progress.Place ||
					kinds[keyspace.KeyOfPage] != n+1 || kinds[keyspace.KeyOfPending] != n+1 {
					t.Errorf("after %d: %+v, %v", n, progress, kinds)
				}
			}
		})
	}
}

// TestCheckpointGoesOn: the next checkpoint finishes a checkpoint that was given up in doubt, and no late
// transaction of the earlier one lands.
func TestCheckpointGoesOn(t *testing.T) {
	for _, apply := range []kvtest.Applied{kvtest.AppliedNow, kvtest.AppliedNever, kvtest.AppliedLate} {
		owner, endpoint := ownEndpoint(t)
		s, next := scripted(t)
		hold := holdOf(t, newWorker(t, s), owner, endpoint)
		ctx, cancel := context.WithCancel(t.Context())
		once := func() kvtest.Fault { cancel(); return kvtest.Fault{Apply: apply, Tell: rpctypes.ErrTimeout} }
		next.Store(&once)
		if err := hold.Checkpoint(ctx, store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_1"},
			Pending: messages(1, 2), Delivered: messages(5, 6)}); !errors.Is(err, licensing.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		next.Store(nil)
		if err := hold.Checkpoint(t.Context(),
			store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_2"}, Dead: messages(1, 2)}); err != nil {
			t.Fatal(err)
		}
		progress, kinds := keptOf(t, endpoint)
		if progress.Number != 2 || progress.Progress.Place != "evt_2" || kinds[keyspace.KeyOfPending] != 0 ||
			kinds[keyspace.KeyOfDead] != 1 || kinds[keyspace.KeyOfPage] != 1 {
			t.Errorf("%v: %+v, %v", apply, progress, kinds)
		}
	}
}

// TestStaleHolder: a holder whose etcd lease has ended while its checkpoint is under way,
// or who is so slow that his request comes after the next holder's, changes nothing.
func TestStaleHolder(t *testing.T) {
	revoke := func(t *testing.T, w *worker) {
		t.Helper()
		if _, err := own.Client.Revoke(t.Context(), w.etcdLease); err != nil {
			t.Fatal(err)
		}
	}
	for name, apply := range map[string]kvtest.Applied{"under way": kvtest.AppliedNow, "late": kvtest.AppliedLate} {
		t.Run(name, func(t *testing.T) {
			owner, endpoint := ownEndpoint(t)
			s, faults := scripted(t)
			stale := newWorker(t, s)
			hold := holdOf(t, stale, owner, endpoint)
			if err := hold.Checkpoint(t.Context(),
				store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_1"}}); err != nil {
				t.Fatal(err)
			}
			fresh := newWorker(t, openDeliveries(t))
			var once sync.Once
			next := func() (f kvtest.Fault) {
				once.Do(func() {
					if apply == kvtest.AppliedLate {
						f = kvtest.Fault{Apply: kvtest.AppliedLate, Tell: rpctypes.ErrTimeout}
					}
					revoke(t, stale)
					other := holdOf(t, fresh, owner, endpoint)
					if err := other.Checkpoint(t.Context(),
						store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_2"},
							Pending: messages(7, 8)}); err != nil {
						t.Error(err)
					}
				})
				return f
			}
			faults.Store(&next)
			done := store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_stale"}, Pending: messages(0, 3)}
			if err := hold.Checkpoint(t.Context(), done); !errors.Is(err, store.ErrLeaseLost) {
				t.Errorf("the stale holder gets %v", err)
			}
			if err := hold.Checkpoint(t.Context(), done); !errors.Is(err, store.ErrLeaseLost) {
				t.Errorf("the stale holder gets %v", err)
			}
			if err := hold.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if progress, kinds := keptOf(t, endpoint); progress.Progress.Place != "evt_2" ||
				kinds[keyspace.KeyOfPending] != 1 {
				t.Errorf("there is %+v, %v", progress, kinds)
			}
			if leases, err := fresh.Leases(t.Context()); err != nil ||
				leases[endpoint] != fresh.Self() {
				t.Errorf("it is leased by %v, %v", leases[endpoint], err)
			}
		})
	}
}
