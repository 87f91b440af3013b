package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/store"
)

// ownEndpoint gives a new owner an endpoint.
func ownEndpoint(t *testing.T) (licensing.Owner, string) {
	t.Helper()
	owner := licensing.Owner{AccountID: "acct_" + strings.ToLower(ulid.Make().String()), Mode: licensing.Live}
	endpoint := "we_0" + strings.ToLower(ulid.Make().String())
	putEndpoints(own.client)(t, owner, []licensing.Endpoint{{ID: endpoint}})
	return owner, endpoint
}

// worker gives the worker that a store is until the test ends.
func worker(t *testing.T, s *deliveryStore) *deliveryWorker {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	began, ended := make(chan *deliveryWorker, 1), make(chan error, 1)
	go func() {
		ended <- s.Work(ctx, func(ctx context.Context, w store.DeliveryWorker) error {
			began <- w.(*deliveryWorker)
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

func holdOf(t *testing.T, w *deliveryWorker, owner licensing.Owner, endpoint string) *deliveryHold {
	t.Helper()
	hold, ok, err := w.Claim(kvtest.Context(t, 10*time.Second), owner, endpoint)
	if err != nil || !ok {
		t.Fatalf("claim: %v, %v", ok, err)
	}
	return hold.(*deliveryHold)
}

// scripted opens a store that writes as a script says once it is set.
func scripted(t *testing.T) (*deliveryStore, *atomic.Pointer[func() fault]) {
	t.Helper()
	next := &atomic.Pointer[func() fault]{}
	return faultyDeliveries(t, func() fault {
		if f := next.Load(); f != nil {
			return (*f)()
		}
		return fault{}
	}), next
}

func messages(from, to int) (all []store.Delivery) {
	for n := from; n < to; n++ {
		all = append(all, store.Delivery{EventID: fmt.Sprintf("evt_%06d", n), Type: licensing.EventOrderPaid, Next: kvtest.Time, Attempts: []store.DeliveryAttempt{{At: kvtest.Time, Status: 500}}})
	}
	return all
}

// keptOf reads what is kept of an endpoint, and demands that it does not contradict
// itself.
func keptOf(t *testing.T, endpoint string) (progress *layout.Progress, kinds map[byte]int) {
	t.Helper()
	response, err := own.client.Get(kvtest.Context(t, 10*time.Second), layout.EndpointPrefix(endpoint), clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	kinds = make(map[byte]int)
	for _, kv := range response.Kvs {
		if _, kind, _, ok := layout.ReadDeliveryKey(string(kv.Key[len(layout.DeliveryPrefix):])); ok {
			kinds[kind]++
		}
	}
	return verify.Endpoint(endpoint, response.Kvs, func(v verify.Violation) { t.Error(v) }), kinds
}

// TestCheckpointIsKilled stops a checkpoint of several transactions after each of them:
// the counts are right at any time, the place is the old one until all is there, and
// the next holder goes on from there.
func TestCheckpointIsKilled(t *testing.T) {
	all := messages(0, 900)
	large := store.Checkpoint{
		Progress: store.DeliveryProgress{Place: "evt_9"}, Delivered: all[:200], Dead: all[200:400], Pending: all[400:600],
		PutJobs: []store.Replay{{ID: "2", Dead: true}}, EndJobs: []string{"1"},
	}
	for _, first := range []bool{true, false} {
		for kill, made := 0, false; !made; kill++ {
			owner, endpoint := ownEndpoint(t)
			s, faults := scripted(t)
			hold := holdOf(t, worker(t, s), owner, endpoint)
			if !first {
				done := store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_1"}, Pending: all[100:500], Dead: all[0:50], PutJobs: []store.Replay{{ID: "1", Dead: true}}}
				if err := hold.Checkpoint(kvtest.Context(t, 10*time.Second), done); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(kvtest.Context(t, 10*time.Second))
			writes := 0
			next := func() fault {
				if writes++; writes > kill {
					cancel()
					return fault{appliedNever, rpctypes.ErrTimeout}
				}
				return fault{}
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
				if progress.Progress.Place != "evt_9" || progress.Progress.Pending != 200 || progress.Progress.Dead != 200 || kinds[layout.KeyOfReplay] != 1 {
					t.Errorf("in the end there is %+v, %v", progress, kinds)
				}
			case first && kill == 0:
				if len(kinds) > 0 {
					t.Errorf("nothing was written, and there is %v", kinds)
				}
			case first && (progress.Begun || progress.Progress.Place != "" || kinds[layout.KeyOfReplay] != 0):
				t.Errorf("killed after %d writes of the first one: %+v, %v", kill, progress, kinds)
			case !first && (progress.Progress.Place != "evt_1" || kinds[layout.KeyOfReplay] != 1):
				t.Errorf("killed after %d writes: %+v, %v", kill, progress, kinds)
			}
			faults.Store(nil)
			// The next holder, or this one, does the rest.
			if kill%2 == 0 {
				if err := hold.Release(kvtest.Context(t, 10*time.Second)); err != nil {
					t.Fatal(err)
				}
				hold = holdOf(t, worker(t, openDeliveries(t)), owner, endpoint)
				state, err := hold.Resume(kvtest.Context(t, 10*time.Second))
				if err != nil || state.Found != (made || !first) || len(state.Pending) != kinds[layout.KeyOfPending] {
					t.Errorf("killed after %d writes: it resumes at %+v, %v", kill, state.Progress, err)
				}
			}
			if err := hold.Checkpoint(kvtest.Context(t, 10*time.Second), large); err != nil {
				t.Fatal(err)
			}
			if progress, kinds := keptOf(t, endpoint); progress.Progress.Place != "evt_9" || kinds[layout.KeyOfPending] != 200 || kinds[layout.KeyOfDead] != 200 {
				t.Errorf("killed after %d writes: then there is %+v, %v", kill, progress, kinds)
			}
		}
	}
}

// TestCheckpointLandsOnce loses answers in every way: each checkpoint lands once, and
// what was long under way never comes after what was written since.
func TestCheckpointLandsOnce(t *testing.T) {
	lost := rpctypes.ErrTimeout
	for name, faults := range map[string][]fault{
		"applied":                     {{appliedNow, lost}},
		"not applied":                 {{appliedNever, lost}},
		"applied late":                {{appliedLate, lost}},
		"applied, and then late":      {{appliedNow, lost}, {appliedLate, lost}},
		"late, and then applied":      {{appliedLate, lost}, {appliedNow, lost}},
		"late twice":                  {{appliedLate, lost}, {appliedLate, lost}, {appliedNow, lost}},
		"refused, and then in doubt":  {{appliedNever, rpctypes.ErrTooManyRequests}, {appliedNow, lost}},
		"in doubt, and then refused":  {{appliedNow, lost}, {appliedNever, rpctypes.ErrTooManyRequests}},
		"in doubt for as long as ten": slices.Repeat([]fault{{appliedNow, lost}}, 10),
	} {
		t.Run(name, func(t *testing.T) {
			owner, endpoint := ownEndpoint(t)
			s, next := scripted(t)
			hold := holdOf(t, worker(t, s), owner, endpoint)
			for n := range 3 {
				play := script(slices.Clone(faults)...)
				next.Store(&play)
				done := store.Checkpoint{Progress: store.DeliveryProgress{Place: store.FeedPosition(fmt.Sprint("evt_", n))}, Pending: messages(n, n+1), Delivered: messages(10+n, 11+n)}
				if err := hold.Checkpoint(kvtest.Context(t, 10*time.Second), done); err != nil {
					t.Fatal(err)
				}
				progress, kinds := keptOf(t, endpoint)
				if progress.Number != uint64(n+1) || progress.Progress.Place != done.Progress.Place || kinds[layout.KeyOfPage] != n+1 || kinds[layout.KeyOfPending] != n+1 {
					t.Errorf("after %d: %+v, %v", n, progress, kinds)
				}
			}
		})
	}
}

// TestCheckpointGoesOn: one that was given up in doubt is finished by the next, and
// nothing of it comes later.
func TestCheckpointGoesOn(t *testing.T) {
	for _, apply := range []applied{appliedNow, appliedNever, appliedLate} {
		owner, endpoint := ownEndpoint(t)
		s, next := scripted(t)
		hold := holdOf(t, worker(t, s), owner, endpoint)
		ctx, cancel := context.WithCancel(kvtest.Context(t, 10*time.Second))
		once := func() fault { cancel(); return fault{apply, rpctypes.ErrTimeout} }
		next.Store(&once)
		if err := hold.Checkpoint(ctx, store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_1"}, Pending: messages(1, 2), Delivered: messages(5, 6)}); !errors.Is(err, licensing.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		next.Store(nil)
		if err := hold.Checkpoint(kvtest.Context(t, 10*time.Second), store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_2"}, Dead: messages(1, 2)}); err != nil {
			t.Fatal(err)
		}
		progress, kinds := keptOf(t, endpoint)
		if progress.Number != 2 || progress.Progress.Place != "evt_2" || kinds[layout.KeyOfPending] != 0 || kinds[layout.KeyOfDead] != 1 || kinds[layout.KeyOfPage] != 1 {
			t.Errorf("%v: %+v, %v", apply, progress, kinds)
		}
	}
}

// TestStaleHolder: a holder whose lease has ended while its checkpoint is under way,
// or who is so slow that his request comes after the next holder's, changes nothing.
func TestStaleHolder(t *testing.T) {
	lease := func(t *testing.T, w *deliveryWorker) {
		t.Helper()
		if _, err := own.client.Revoke(kvtest.Context(t, 10*time.Second), w.lease); err != nil {
			t.Fatal(err)
		}
	}
	for name, apply := range map[string]applied{"under way": appliedNow, "late": appliedLate} {
		t.Run(name, func(t *testing.T) {
			owner, endpoint := ownEndpoint(t)
			s, faults := scripted(t)
			stale := worker(t, s)
			hold := holdOf(t, stale, owner, endpoint)
			if err := hold.Checkpoint(kvtest.Context(t, 10*time.Second), store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_1"}}); err != nil {
				t.Fatal(err)
			}
			fresh := worker(t, openDeliveries(t))
			var once sync.Once
			next := func() (f fault) {
				once.Do(func() {
					if apply == appliedLate {
						f = fault{appliedLate, rpctypes.ErrTimeout}
					}
					lease(t, stale)
					other := holdOf(t, fresh, owner, endpoint)
					if err := other.Checkpoint(kvtest.Context(t, 10*time.Second), store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_2"}, Pending: messages(7, 8)}); err != nil {
						t.Error(err)
					}
				})
				return f
			}
			faults.Store(&next)
			done := store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_stale"}, Pending: messages(0, 3)}
			if err := hold.Checkpoint(kvtest.Context(t, 10*time.Second), done); !errors.Is(err, store.ErrClaimLost) {
				t.Errorf("the stale holder is told %v", err)
			}
			if err := hold.Checkpoint(kvtest.Context(t, 10*time.Second), done); !errors.Is(err, store.ErrClaimLost) {
				t.Errorf("the stale holder is told %v", err)
			}
			if err := hold.Release(kvtest.Context(t, 10*time.Second)); err != nil {
				t.Error(err)
			}
			if progress, kinds := keptOf(t, endpoint); progress.Progress.Place != "evt_2" || kinds[layout.KeyOfPending] != 1 {
				t.Errorf("there is %+v, %v", progress, kinds)
			}
			if claims, err := fresh.Claims(kvtest.Context(t, 10*time.Second)); err != nil || claims[endpoint] != fresh.Self() {
				t.Errorf("it is claimed by %v, %v", claims[endpoint], err)
			}
		})
	}
}
