package kv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// TestMovesHurtNoOtherOwner: one owner begins and ceases to listen as fast as the store allows, while another store
// binds and removes a device of another owner. The moves make none of these changes lose.
func TestMovesHurtNoOtherOwner(t *testing.T) {
	l := newHooksLab(t)
	noisy, quiet := acct("noisy"), acct("quiet")
	ref := l.license(l.store, quiet)
	flips, done := l.open(nil), make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			l.hook(flips, noisy, subscribe(noisy))
			l.hook(flips, noisy, unsubscribe(noisy))
		}
	}()
	defer func() { <-done }()
	for bound := false; ; bound = !bound {
		change := l.bound(l.store, ref, "a")
		if bound {
			change = l.removed(l.store, ref, "a")
		}
		if outcome, err := l.store.Commit(t.Context(), change); err != nil || !outcome.Landed {
			t.Fatalf("a change of an owner that does nothing to its endpoints: %+v, %v", outcome, err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// TestMovesArePaced has three owners begin and cease to listen on three stores, in a loop:
// keyspace.ListenKey moves once in each pause, whatever they do.
func TestMovesArePaced(t *testing.T) {
	l := newHooksLab(t)
	const pause = 100 * time.Millisecond
	began := time.Now()
	var owners sync.WaitGroup
	for i := range 3 {
		owner, s := acct(fmt.Sprint("paced", i)), l.open(nil)
		s.moveEvery = pause
		owners.Go(func() {
			for range 4 {
				l.hook(s, owner, subscribe(owner))
				l.hook(s, owner, unsubscribe(owner))
			}
		})
	}
	owners.Wait()
	pauses := time.Since(began)/pause + 1
	fence := kvtest.Must(l.store.etcd.Native.Get(t.Context(), keyspace.ListenKey))(t).Kvs[0]
	if moves := fence.Version; moves < 8 || moves > int64(pauses) {
		t.Errorf("%d moves within %d pauses; each owner waited for 8", moves, pauses)
	}
	l.wantListeners()
	l.wantNoRequests()
}

// TestOwnersSubscribeAtOnce has 90 owners make their first endpoint at the same time on
// three stores, at the usual pace.
func TestOwnersSubscribeAtOnce(t *testing.T) {
	l := newHooksLab(t)
	var stores []*Store
	for range 3 {
		s := l.open(nil)
		s.moveEvery = moveEvery
		stores = append(stores, s)
	}
	var all sync.WaitGroup
	var owners []licensing.Owner
	for i := range 90 {
		owner, s := acct(fmt.Sprint("once", i)), stores[i%len(stores)]
		owners = append(owners, owner)
		change := l.hooked(s, owner, subscribe(owner))
		all.Go(func() {
			if outcome, err := s.Commit(t.Context(), change); err != nil || !outcome.Landed {
				t.Errorf("%v: %+v, %v", owner, outcome, err)
			}
		})
	}
	all.Wait()
	l.wantListeners(owners...)
	for _, s := range stores {
		kvtest.Must(s.readOpenEpoch(t.Context()))(t)
		for _, owner := range owners {
			if !s.fences.listens(owner) {
				t.Errorf("a store does not know that %v listens", owner)
			}
		}
	}
	l.wantNoRequests()
	l.clean()
}

// TestMoverDies stores an endpoint on a node that dies before keyspace.ListenKey moves: no store acknowledges the
// change before the move, and another node makes the move.
func TestMoverDies(t *testing.T) {
	for name, look := range map[string]func(*eventsLab, *Store, licensing.Owner){
		"another node looks by itself": func(l *eventsLab, s *Store, _ licensing.Owner) {
			kvtest.Must(s.readOpenEpoch(l.t.Context()))(l.t)
		},
		"the endpoint is looked up": func(l *eventsLab, s *Store, owner licensing.Owner) {
			loadOne(l.t, s, licensing.WebhooksRef(owner))
		},
		"the change is made again": func(l *eventsLab, s *Store, owner licensing.Owner) {
			change := l.hooked(s, owner, subscribe(owner))
			change.Writes[0].Token = nil // as before the first change
			if outcome, err := s.Commit(l.t.Context(), change); err != nil || outcome.Landed {
				l.t.Errorf("%+v, %v", outcome, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newHooksLab(t)
			owner := acct("orphan")
			ref := l.license(l.store, owner)
			dies := l.open(nil)
			dies.moveEvery = time.Hour
			dies.fences.listeners.learned = time.Now()
			other := l.open(nil)
			ctx, cancel := context.WithCancel(t.Context())
			written := make(chan struct{})
			go func() {
				<-written
				cancel()
			}()
			go l.awaitKey(keyspace.ListenRequestKey(owner), written)
			if _, err := dies.Commit(ctx, l.hooked(dies, owner, subscribe(owner))); !errors.Is(err,
				licensing.ErrOutcomeUnknown) {
				t.Errorf("the change is stored and not in effect, and the answer is %v", err)
			}
			l.wantListeners()
			l.clean() // a waiting request is no violation
			look(l, other, owner)
			l.wantListeners(owner)
			l.wantNoRequests()
			if !loadOne(t, other, ref).Record.Listening {
				t.Error("the other store does not know")
			}
		})
	}
}

// TestMissedMoves has a store miss more moves than keyspace.ListenKey names: it reads every
// listener, and then follows the moves again.
func TestMissedMoves(t *testing.T) {
	l := newHooksLab(t)
	stays, goes := acct("stays"), acct("goes")
	l.hook(l.store, goes, subscribe(goes))
	l.hook(l.store, stays, subscribe(stays))
	s := l.open(nil)
	for range layout.MaxListenMoves/2 + 1 {
		l.hook(l.store, stays, unsubscribe(stays))
		l.hook(l.store, stays, subscribe(stays))
	}
	l.hook(l.store, goes, unsubscribe(goes))
	lists := func() uint64 {
		var m dto.Metric
		if err := s.metrics.StoreDuration.WithLabelValues("list_listeners",
			"ok").(prometheus.Metric).Write(&m); err != nil {
			t.Fatal(err)
		}
		return m.GetHistogram().GetSampleCount()
	}
	before := lists()
	kvtest.Must(s.readOpenEpoch(t.Context()))(t)
	if s.fences.listens(goes) || !s.fences.listens(stays) || lists() == before {
		t.Error("the store has not read who listens")
	}
	before = lists()
	l.hook(l.store, goes, subscribe(goes))
	kvtest.Must(s.readOpenEpoch(t.Context()))(t)
	if !s.fences.listens(goes) || lists() != before {
		t.Error("the store has not followed a move by its name")
	}
}

// TestListenFenceIsGarbled damages the value of the fence: every store reads all listeners, changes go on, and the next
// move repairs the fence.
func TestListenFenceIsGarbled(t *testing.T) {
	l := newHooksLab(t)
	owner, next := acct("garbled"), acct("next")
	ref := l.license(l.store, owner)
	l.hook(l.store, owner, subscribe(owner))
	kvtest.Must(l.store.etcd.Native.Put(t.Context(), keyspace.ListenKey, "\x02"))(t)
	s := l.open(nil)
	for _, store := range []*Store{l.store, s} {
		l.commit(store, l.bound(store, ref, fmt.Sprintf("%x", store.incarnation)))
	}
	l.closeEpoch()
	if kinds := kindsOf(l.feed(owner, 10)); len(kinds) != 4 {
		t.Errorf("the feed is %q", kinds)
	}
	l.hook(s, next, subscribe(next))
	l.wantListeners(owner, next)
	l.clean()
}

// wantNoRequests checks that no request to listen is in the store.
func (l *eventsLab) wantNoRequests() {
	l.t.Helper()
	if left := kvtest.Must(l.store.etcd.Native.Get(l.t.Context(), keyspace.ListenRequests,
		clientv3.WithPrefix()))(l.t); left.Count > 0 {
		l.t.Errorf("%d requests to listen are left", left.Count)
	}
}

// awaitKey closes found once the key exists.
func (l *eventsLab) awaitKey(key string, found chan<- struct{}) {
	defer close(found)
	watch := l.store.etcd.Native.Watch(l.t.Context(), key, clientv3.WithRev(1))
	<-watch
}

// removed is the change that removes a device.
func (l *eventsLab) removed(s *Store, ref licensing.Ref, device string) store.Change {
	l.t.Helper()
	snapshot := loadOne(l.t, s, ref, device)
	kvtest.Must(licensing.Apply(&snapshot.Record,
		licensing.RemoveDevice{Target: licensing.Target{Key: keyOf(ref), By: licensing.EndUser},
			Device: device}, kvtest.Time))(l.t)
	return store.Change{Writes: []store.Write{{Ref: ref, Token: snapshot.Token, Record: snapshot.Record}}}
}
