package kv

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/node/store"
)

// awaitNode waits until a node is registered as it should be, or not at all.
func awaitNode(t *testing.T, s *Store, want store.Registration, there bool) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		nodes, err := s.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(nodes, want) == there {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the nodes are %+v", nodes)
		}
	}
}

func registration(s *Store) store.Registration {
	return store.Registration{Incarnation: s.Incarnation(), Address: "127.0.0.1:7070", PublicKey: [32]byte{1, 2, 3}}
}

// stamper is a clock that keeps the stamps of the last comparison.
type stamper struct {
	ahead    time.Duration
	mu       sync.Mutex
	last     []store.Stamp
	compared int    // how often stamps were read
	set      bool   // the clock was set since the last stamp
	leave    func() // nil: nothing
}

func (s *stamper) Stamp() (now time.Time, registerAgain bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	registerAgain, s.set = s.set, false
	return time.Now().Add(s.ahead), registerAgain
}

func (s *stamper) Compare(stamps []store.Stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = stamps
	s.compared++
}

func (s *stamper) Leave() {
	if s.leave != nil {
		s.leave()
	}
}

// count returns how often stamps were read.
func (s *stamper) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compared
}

// of returns the stamp of a node as of the last read.
func (s *stamper) of(node store.Incarnation) (stamp store.Stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, each := range s.last {
		if each.Node == node {
			return each
		}
	}
	return stamp
}

// registered keeps a node registered until the test ends, or until leave is called.
func registered(t *testing.T, s *Store, r store.Registration, clock store.Stamper) (leave func()) {
	t.Helper()
	return registeredAs(t, s, func() store.Registration { return r }, clock)
}

// registeredAs is registered with a registration that may change.
func registeredAs(t *testing.T, s *Store, current func() store.Registration, clock store.Stamper) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Register(ctx, current, clock)
	}()
	leave = func() {
		cancel()
		<-ended
	}
	t.Cleanup(leave)
	return leave
}

// TestStamps: each node stores its time again and again, and reads the times of all nodes. A node without a listener
// for other nodes does so too, and is not among the nodes that take commands.
func TestStamps(t *testing.T) {
	t.Parallel()
	s, other := openStore(t), openStore(t)
	clock, ahead := &stamper{}, &stamper{ahead: time.Hour}
	registered(t, s, registration(s), clock)
	leave := registered(t, other, store.Registration{Incarnation: other.Incarnation()}, ahead)
	awaitNode(t, s, registration(s), true)
	var first, second store.Stamp
	kvtest.Await(t, func() bool { first = clock.of(other.Incarnation()); return !first.At.IsZero() })
	if off := time.Until(first.At); off < 50*time.Minute || off > time.Hour {
		t.Errorf("the stamp of a clock that is an hour ahead is %v ahead", off)
	}
	kvtest.Await(t, func() bool { second = clock.of(other.Incarnation()); return second.At.After(first.At) })
	if second.Created != first.Created || second.Version <= first.Version {
		t.Errorf("%+v after %+v", second, first)
	}
	kvtest.Await(t, func() bool { return !ahead.of(s.Incarnation()).At.IsZero() })
	nodes, err := s.Nodes(t.Context())
	if err != nil || slices.ContainsFunc(nodes,
		func(r store.Registration) bool { return r.Incarnation == other.Incarnation() }) {
		t.Errorf("nodes that take commands: %+v, %v", nodes, err)
	}
	leave()
	kvtest.Await(t, func() bool { return clock.of(other.Incarnation()).At.IsZero() })
}

// TestLateStamp: a stamp that was on its way while another one was stored is not stored.
func TestLateStamp(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	clock := &stamper{}
	r := registration(s)
	r.Incarnation = store.Incarnation{'l', 'a', 't', 'e'}
	ctx := t.Context()
	_, err := s.etcd.UnderLease(ctx, "lease", registrationTTL, keyspace.NodeKey(r.Incarnation),
		string(layout.EncodeNode(r, time.Time{})), func(ctx context.Context, lease clientv3.LeaseID) error {
			first, stored, err := s.stamp(ctx, r, clock, lease, 0)
			if err != nil || stored {
				t.Errorf("a stamp at an unknown revision: stored %v, %v", stored, err)
			}
			second, stored, err := s.stamp(ctx, r, clock, lease, first)
			if err != nil || !stored || second <= first {
				t.Errorf("a stamp: stored %v, %v", stored, err)
			}
			newest := clock.of(r.Incarnation)
			now, stored, err := s.stamp(ctx, r, &stamper{ahead: -time.Minute}, lease, first)
			if err != nil || stored || now != second {
				t.Errorf("a stamp that is late: stored %v at revision %d, %v", stored, now, err)
			}
			if _, _, err = s.stamp(ctx, r, clock, lease, second); err != nil ||
				clock.of(r.Incarnation).Version != newest.Version+1 {
				t.Errorf("%+v after %+v, %v", clock.of(r.Incarnation), newest, err)
			}
			if _, err = server.Client.Delete(ctx, keyspace.NodeKey(r.Incarnation)); err != nil {
				return err
			}
			if _, _, err = s.stamp(ctx, r, clock, lease, second); !errors.Is(err, errUnregistered) {
				t.Errorf("a registration that is gone: %v", err)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStampsWhileFull: under etcd's alarm NOSPACE a node stays registered, and goes on reading the other nodes' times.
// So does a node that starts then and can't register.
func TestStampsWhileFull(t *testing.T) {
	t.Parallel()
	l := newSpaceLab(t)
	clock, late := &stamper{}, &stamper{}
	registered(t, l.store, registration(l.store), clock)
	self := l.store.Incarnation()
	kvtest.Await(t, func() bool { return !clock.of(self).At.IsZero() })
	l.fill()
	before, registration := clock.count(), clock.of(self).Created
	kvtest.Await(t, func() bool { return clock.count() > before+3 })
	registered(t, l.store, store.Registration{Incarnation: store.Incarnation{'l'}}, late)
	kvtest.Await(t, func() bool { return late.count() > 1 })
	for _, at := range []store.Stamp{clock.of(self), late.of(self)} {
		if at.At.IsZero() || at.Created != registration {
			t.Errorf("the stamp of the registered node is %+v, want one of registration %d", at, registration)
		}
	}
	version := clock.of(self).Version
	l.makeRoom()
	kvtest.Await(t, func() bool { return clock.of(self).Version > version })
	kvtest.Await(t, func() bool { return !clock.of(store.Incarnation{'l'}).At.IsZero() })
}

// TestRegister: a node is registered while it lives, registers again after the loss of its lease, and is not registered
// once it leaves.
func TestRegister(t *testing.T) {
	t.Parallel()
	s, other := openStore(t), openStore(t)
	want := registration(s)
	leave := registered(t, s, want, &stamper{})
	awaitNode(t, other, want, true)

	kv, err := server.Client.Get(t.Context(), keyspace.NodeKey(s.Incarnation()))
	if err != nil || len(kv.Kvs) != 1 || kv.Kvs[0].Lease == 0 {
		t.Fatalf("%+v, %v", kv, err)
	}
	lost := clientv3.LeaseID(kv.Kvs[0].Lease)
	if _, err := server.Client.Revoke(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	awaitNode(t, other, want, true)

	leave()
	awaitNode(t, other, want, false)
}

// TestRegisterAfterClockWasSet: a node whose clock was set ends its registration and begins another one.
func TestRegisterAfterClockWasSet(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	clock := &stamper{}
	registered(t, s, registration(s), clock)
	created := func() int64 { return clock.of(s.Incarnation()).Created }
	kvtest.Await(t, func() bool { return created() > 0 })
	before := created()
	clock.mu.Lock()
	clock.set = true
	clock.mu.Unlock()
	kvtest.Await(t, func() bool { return created() > before })
}

// TestLeavingNode: a node that withdraws its address stays registered and goes on storing its time. It stops acting by
// time before its registration ends.
func TestLeavingNode(t *testing.T) {
	t.Parallel()
	s, other := openStore(t), openStore(t)
	self := s.Incarnation()
	var withdrawn atomic.Bool
	var left []int // how many registrations the node had at each call of Leave
	clock, watching := &stamper{}, &stamper{}
	clock.leave = func() {
		kv, err := server.Client.Get(context.WithoutCancel(t.Context()), keyspace.NodeKey(self))
		if err != nil {
			t.Error(err)
			return
		}
		left = append(left, len(kv.Kvs))
	}
	leave := registeredAs(t, s, func() store.Registration {
		if withdrawn.Load() {
			return store.Registration{Incarnation: self}
		}
		return registration(s)
	}, clock)
	registered(t, other, store.Registration{Incarnation: other.Incarnation()}, watching)
	awaitNode(t, other, registration(s), true)
	kvtest.Await(t, func() bool { return watching.of(self).Version > 0 })
	withdrawn.Store(true)
	awaitNode(t, other, registration(s), false)
	version := watching.of(self).Version
	kvtest.Await(t, func() bool { return watching.of(self).Version > version+1 })
	leave()
	kvtest.Await(t, func() bool { return watching.of(self).Version == 0 })
	if !slices.Equal(left, []int{1}) {
		t.Errorf("at each departure the node had %d registrations, want one departure with 1", left)
	}
}

// TestBadRegistrations: the list of nodes leaves out damaged registrations, and verify names them.
func TestBadRegistrations(t *testing.T) {
	for name, x := range map[string]struct{ rest, value string }{
		"no value": {"12345678", ""},
		"short name": {"1234567", string(layout.EncodeNode(store.Registration{Address: "a:1", PublicKey: [32]byte{1}},
			time.Now()))},
		"no address": {"12345678", string(layout.EncodeNode(store.Registration{PublicKey: [32]byte{1}}, time.Now()))},
		"no key":     {"12345678", string(layout.EncodeNode(store.Registration{Address: "a:1"}, time.Now()))},
		"newer form": {"12345678", "\x02"},
	} {
		if got, _, err := layout.DecodeNode(x.rest, []byte(x.value)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
