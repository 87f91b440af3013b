package kv

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// eventIDs returns the ids of all events of the lab's owner, also of the open epoch.
func (l *lab) eventIDs() []string {
	l.t.Helper()
	if err := l.store.CloseEpoch(l.ctx()); err != nil {
		l.t.Fatal(err)
	}
	var ids []string
	page := store.FeedPage{Limit: 1000}
	for {
		feed := kvtest.Must(l.store.ReadEvents(l.ctx(), labOwner, page))(l.t)
		for _, e := range feed.Events {
			ids = append(ids, e.ID)
		}
		if page.After = feed.Next; !feed.More {
			return ids
		}
	}
}

// TestRestoreRepeatsNoEvent makes the same change after a backup, and again after the restore: the second event has
// another id. The node was up all the time, and has read the epoch since or not, or was started after the restore.
func TestRestoreRepeatsNoEvent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		after func(*disaster) *lab
	}{
		{"a node that was up", func(d *disaster) *lab { return d.lab }},
		{"a node that was up and looks", func(d *disaster) *lab {
			kvtest.Must(d.store.readOpenEpoch(d.ctx()))(d.t)
			return d.lab
		}},
		{"a node that was up and reads", func(d *disaster) *lab {
			_, _ = d.store.ReadEvents(d.ctx(), labOwner, store.FeedPage{Limit: 10})
			return d.lab
		}},
		{"a node that was up, after another", func(d *disaster) *lab {
			labOn(d.t, d.etcd.Endpoints())
			return d.lab
		}},
		{"a node that was started", func(d *disaster) *lab { return labOn(d.t, d.etcd.Endpoints()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisaster(t)
			kept := d.keptIDs()
			d.pay(d.lost.unpaid) // in the epoch in which the backup was made
			lost := d.eventIDs() // which begins another epoch
			lostEpoch := d.store.fences.known()
			lost = slices.DeleteFunc(lost, func(id string) bool { return slices.Contains(kept, id) })
			if len(lost) != 2 {
				t.Fatalf("the events of the payment are %q", lost)
			}
			d.restore(keyspace.RevisionBump)
			l := c.after(d)
			l.pay(d.lost.unpaid)
			l.clean()
			now := l.eventIDs()
			for _, id := range lost {
				if slices.Contains(now, id) {
					t.Errorf("the id %s is used again", id)
				}
			}
			for _, id := range kept {
				if !slices.Contains(now, id) {
					t.Errorf("the event %s is gone", id)
				}
			}
			fresh := 0
			for _, id := range now {
				if at := placeOf(labOwner, id); at.Epoch > lostEpoch {
					fresh++
				}
			}
			if fresh != 2 || len(now) != len(kept)+2 {
				t.Errorf("after the restore %d events are of later epochs, and %d in all; %d were kept", fresh,
					len(now), len(kept))
			}
			l.clean()
		})
	}
}

// TestRestoreRegistersOwnersAnew loses the key of an owner with the store. A node that was up writes the key again
// before the next event, so that sweeps find the event.
func TestRestoreRegistersOwnersAnew(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(*disaster){
		"it finds the earlier epoch":    func(*disaster) {},
		"another node begins a new one": func(d *disaster) { labOn(d.t, d.etcd.Endpoints()) },
		"and it has seen that": func(d *disaster) {
			labOn(d.t, d.etcd.Endpoints())
			kvtest.Must(d.store.readOpenEpoch(d.ctx()))(d.t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisaster(t)
			late := licensing.Owner{AccountID: "acct_late", Mode: licensing.Test}
			order := func() {
				t.Helper()
				if _, _, err := d.node.CreateOrder(d.ctx(), late,
					service.NewOrder{ProductID: "pro", Currency: "USD"}); err != nil {
					t.Fatal(err)
				}
			}
			order()
			d.eventIDs() // which begins an epoch: the node knows a later epoch than the backup
			d.restore(keyspace.RevisionBump)
			after(d)
			order()
			d.clean()
			if owners := kvtest.Must(d.store.listOwners(d.ctx()))(t); !slices.Contains(owners, late) {
				t.Errorf("registered are %v", owners)
			}
		})
	}
}

// keptIDs returns the ids of all events in the store, without closing an epoch.
func (l *lab) keptIDs() []string {
	l.t.Helper()
	var ids []string
	dir := kvtest.Must(l.store.listEvents(l.ctx(), labOwner, 0, 1<<62, 0))(l.t)
	for _, e := range dir.entries {
		for _, run := range kvtest.Must(layout.DecodeRuns(&e, l.value(e.Key(labOwner))))(l.t) {
			for _, event := range kvtest.Must(layout.DecodeEvents(labOwner, run.Record, run.Last,
				run.Value))(l.t).Events {
				ids = append(ids, keyspace.EventID(labOwner, e.Location, run.Record, event.Sequence))
			}
		}
	}
	return ids
}

// TestDeadWriterLosesNoEvent lets a store write events and end before their epoch is closed: the events are in the feed
// after another node has closed the epoch.
func TestDeadWriterLosesNoEvent(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("dead")
	dead := kvtest.Must(Open(t.Context(),
		Config{Endpoints: l.etcd.Endpoints(), RecordActivations: true, Metrics: kvtest.Metrics(),
			Log: zerolog.Nop()}))(t)
	if err := dead.OpenEpoch(t.Context()); err != nil {
		t.Fatal(err)
	}
	ref := l.license(dead, owner)
	l.commit(dead, l.bound(dead, ref, "a", "b"))
	if got := l.feed(owner, 10); len(got) != 0 {
		t.Errorf("before the epoch is closed the feed is %q", kindsOf(got))
	}
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	n := service.New(service.Config{Config: node.Config{Records: l.store, Queries: l.store, Clock: time.Now,
		Metrics: kvtest.Metrics(), Log: zerolog.Nop()}, Keys: l.store, Sweeps: l.store, Events: l.store})
	l.store.KeepClosingEpochs()
	feed, err := n.Feed(t.Context(), owner, store.FeedPage{Limit: 10},
		service.FeedWait{For: 20 * time.Second})
	var events []store.RecordedEvent
	for _, e := range feed.Events {
		events = append(events, e.RecordedEvent)
	}
	if got := kindsOf(events); err != nil || !slices.Equal(got,
		[]string{"1 license.issued", "2 license.activated a", "3 device.bound a", "4 device.bound b"}) {
		t.Errorf("the feed is %q, %v", got, err)
	}
}

// TestListenersAreLearned makes an owner listen without the knowledge of a store that follows only the epoch, and then
// gives the store an older reading of who listens.
func TestListenersAreLearned(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("learned")
	ref := l.license(l.store, owner)
	s := l.open(nil)
	listens := func() bool { return loadOne(t, s, ref).Record.Listening }
	if listens() {
		t.Error("an owner listens before any has begun")
	}
	l.listen(owner)
	kvtest.Must(s.readOpenEpoch(t.Context()))(t)
	if !listens() {
		t.Error("the store has not learned that an owner listens")
	}
	if err := s.noteListening(t.Context(), nil, s.fences.listeners.read-1); err != nil || !listens() {
		t.Errorf("an older reading replaces a newer one: %v", err)
	}
	// as after the restore of an older store
	kvtest.Must(s.etcd.Native.Delete(t.Context(), keyspace.ListenKey))(t)
	kvtest.Must(s.etcd.Native.Delete(t.Context(), keyspace.ListenerKey(owner)))(t)
	if kvtest.Must(s.readOpenEpoch(t.Context()))(t); listens() {
		t.Error("a later reading of an older store does not count")
	}
}

// TestOwnersAreRegistered writes events of many owners at once, under faults: each has
// its key before its first event.
func TestOwnersAreRegistered(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	s := kvtest.Must(storeOver(&kvtest.FaultyKV{KVClient: l.store.etcd.Remote, Next: kvtest.Storm(7)},
		l.store.etcd.Native, kvtest.Metrics()))(t)
	errs := make(chan error, 64)
	for i := range 64 {
		made := newLicense(t, 0)
		made.Owner = acct(fmt.Sprint("many", i%8))
		made.Key = newKeyOf(t, made.Owner)
		go func() {
			_, err := s.Commit(t.Context(),
				store.Change{Writes: []store.Write{{Ref: licensing.LicenseRef(made.Key),
					Record: licensing.NewLicense(made, nil, "")}}})
			errs <- err
		}()
	}
	for range 64 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if owners := kvtest.Must(l.store.listOwners(t.Context()))(t); len(owners) != 8 {
		t.Errorf("registered are %v", owners)
	}
	l.closeEpoch()
	count := 0
	for i := range 8 {
		count += len(l.feed(acct(fmt.Sprint("many", i)), 100))
	}
	if count != 64 {
		t.Errorf("there are %d events", count)
	}
}

// TestSlowRegistrationDelaysNoOtherOwner lets the first event of one owner wait for the key of the owner, which etcd
// does not write, and records the first event of another owner meanwhile.
func TestSlowRegistrationDelaysNoOtherOwner(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	slow, quick := acct("slow"), acct("quick")
	asked, let := make(chan struct{}), make(chan struct{})
	s := l.open(nil)
	s.etcd.KV = clientv3.NewKVFromKVClient(&kvtest.FaultyKV{KVClient: s.etcd.Remote,
		Next: func() kvtest.Fault { return kvtest.Fault{} }, Note: func(request *etcdserverpb.TxnRequest) {
			if put := request.Success[0].GetRequestPut(); put != nil && string(put.Key) == keyspace.OwnerKey(slow) {
				close(asked)
				<-let
			}
		}}, s.etcd.Native)
	var group sync.WaitGroup
	group.Go(func() { l.license(s, slow) })
	<-asked
	l.license(s, quick)
	close(let)
	group.Wait()
	if !s.owners.locks.TryEnter(slow) {
		t.Error("a registration that has ended keeps its turn")
	}
	l.closeEpoch()
	for _, owner := range []licensing.Owner{slow, quick} {
		if got := l.feed(owner, 10); len(got) != 1 {
			t.Errorf("the events of %s are %q", owner.AccountID, kindsOf(got))
		}
	}
}
