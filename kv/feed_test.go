package kv

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/depth"
	"licet/kv/embedded"
	"licet/kv/embedded/embeddedtest"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// eventsCheck is the check key of the license keys in an eventsLab.
const eventsCheck = "a check key of thirty-two bytes."

// eventsLab is an etcd of its own, with a store on it that records all activations.
type eventsLab struct {
	t     *testing.T
	etcd  *embedded.Server
	store *Store
}

func newEventsLab(t *testing.T) *eventsLab {
	t.Helper()
	l := &eventsLab{t: t, etcd: embeddedtest.Start(t, t.TempDir())}
	l.store = l.open(nil)
	l.store.recordActivations = true
	if _, err := l.store.etcd.Native.Put(t.Context(), keyspace.CheckKey, eventsCheck); err != nil {
		t.Fatal(err)
	}
	kvtest.Must(l.store.IDKey(t.Context(), kvtest.Ring(t), rand.Reader))(t)
	return l
}

// open opens a further store, whose writes meet faults.
func (l *eventsLab) open(next func() kvtest.Fault) *Store {
	l.t.Helper()
	s := openStoreOn(l.t, l.etcd)
	if next != nil {
		s.etcd.Remote = &kvtest.FaultyKV{KVClient: s.etcd.Remote, Next: next}
	}
	if err := s.OpenEpoch(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	return s
}

// closeEpoch begins a new epoch without the knowledge of any store.
func (l *eventsLab) closeEpoch() keyspace.Epoch {
	l.t.Helper()
	response, err := l.store.etcd.Native.Put(l.t.Context(), keyspace.EpochKey, "")
	if err != nil {
		l.t.Fatal(err)
	}
	return keyspace.Epoch(response.Header.Revision)
}

// listen makes the owners listen, and no other owner.
func (l *eventsLab) listen(owners ...licensing.Owner) {
	l.t.Helper()
	puts := []clientv3.Op{clientv3.OpPut(keyspace.ListenKey, string((&layout.ListenFence{}).Encode()))}
	for _, owner := range owners {
		puts = append(puts, clientv3.OpPut(keyspace.ListenerKey(owner), ""))
	}
	none := clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpDelete(keyspace.ListenersPrefix, clientv3.WithPrefix())}, nil)
	for _, op := range []clientv3.Op{none, clientv3.OpTxn(nil, puts, nil)} {
		if _, err := l.store.etcd.Native.Do(l.t.Context(), op); err != nil {
			l.t.Fatal(err)
		}
	}
}

// license stores a new license of an owner.
func (l *eventsLab) license(s *Store, owner licensing.Owner) licensing.Ref {
	l.t.Helper()
	made := newLicense(l.t, 0)
	var entropy [keyring.LicenseKeyEntropy]byte
	_, _ = rand.Read(entropy[:])
	made.Owner, made.Key = owner, kvtest.Keys.Mint("LIC", owner, entropy)
	ref := licensing.LicenseRef(made.Key)
	l.commit(s, store.Change{Writes: []store.Write{{Ref: ref, Record: licensing.NewLicense(made, nil, "key_maker")}}})
	return ref
}

func (l *eventsLab) commit(s *Store, change store.Change) {
	l.t.Helper()
	outcome, err := s.Commit(l.t.Context(), change)
	if err != nil || !outcome.Landed {
		l.t.Fatalf("commit: %+v, %v", outcome, err)
	}
}

// bound returns the change that binds devices, made on the license as s reads it.
func (l *eventsLab) bound(s *Store, ref licensing.Ref, devices ...string) store.Change {
	l.t.Helper()
	snapshot := loadOne(l.t, s, ref, devices...)
	for _, device := range devices {
		cmd := licensing.Activate{Target: licensing.Target{Key: keyOf(ref), By: licensing.EndUser},
			Device: device}
		if _, err := licensing.Apply(&snapshot.Record, cmd, kvtest.Time); err != nil {
			l.t.Fatal(err)
		}
	}
	return store.Change{Writes: []store.Write{{Ref: ref, Token: snapshot.Token, Record: snapshot.Record}}}
}

// feed reads all of an owner's feed, some events at a time.
func (l *eventsLab) feed(owner licensing.Owner, limit int) []store.RecordedEvent {
	l.t.Helper()
	var all []store.RecordedEvent
	page := store.FeedPage{Limit: limit}
	for {
		got, err := kvtest.Read(func() (store.Feed, error) { return l.store.ReadEvents(l.t.Context(), owner, page) })
		if err != nil {
			l.t.Fatal(err)
		}
		all = append(all, got.Events...)
		page.After = got.Next
		if !got.More {
			return all
		}
	}
}

// placeOf returns the place of an event in its owner's feed.
func placeOf(owner licensing.Owner, id string) keyspace.FeedPlace {
	at, _ := keyspace.ReadFeedPlace(licensing.SlotOf(owner), id)
	return at
}

// inTheirEpochs checks that each event was written in its epoch.
func (l *eventsLab) inTheirEpochs(events []store.RecordedEvent) {
	l.t.Helper()
	epochs := make(map[int64]keyspace.Epoch) // by revision
	for _, e := range events {
		at := placeOf(e.Owner, e.ID)
		if _, asked := epochs[e.Revision]; !asked {
			epochs[e.Revision] = keyspace.Epoch(kvtest.Must(l.store.etcd.Native.Get(l.t.Context(),
				keyspace.EpochKey, clientv3.WithRev(e.Revision)))(l.t).Kvs[0].ModRevision)
		}
		if at.Epoch != epochs[e.Revision] {
			l.t.Errorf("%d %s of epoch %d was written in epoch %d", e.Sequence, e.Type, at.Epoch, epochs[e.Revision])
		}
	}
}

// kindsOf returns the number, the type and the device of each event.
func kindsOf(events []store.RecordedEvent) []string {
	var kinds []string
	for _, e := range events {
		kind := fmt.Sprintf("%d %s", e.Sequence, e.Type)
		if e.Device != nil {
			kind += " " + e.Device.ID
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

func acct(name string) licensing.Owner {
	return licensing.Owner{AccountID: "acct_" + name, Mode: licensing.Live}
}

// TestFeed records the events of changes, and reads them in every way.
func TestFeed(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("feed")
	ref := l.license(l.store, owner)
	l.commit(l.store, l.bound(l.store, ref, "a", "b", "c"))
	l.closeEpoch()
	l.license(l.store, acct("other"))
	l.commit(l.store, l.bound(l.store, ref, "d"))
	removal := loadOne(t, l.store, ref, "b")
	if _, err := licensing.Apply(&removal.Record,
		licensing.RemoveDevice{Target: licensing.Target{Key: keyOf(ref), By: "key_shop"},
			Device: "b"}, kvtest.Time.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	l.commit(l.store, store.Change{Writes: []store.Write{{Ref: ref, Token: removal.Token, Record: removal.Record}}})
	open := l.license(l.store, owner)

	want := []string{
		"1 license.issued", "2 license.activated a", "3 device.bound a", "4 device.bound b", "5 device.bound c",
		"6 device.bound d", "7 device.removed b",
	}
	if got := kindsOf(l.feed(owner, 100)); !slices.Equal(got, want[:5]) {
		t.Errorf("before the second epoch is closed, the feed is %q, want %q", got, want[:5])
	}
	l.closeEpoch()
	want = append(want, "1 license.issued")
	all := l.feed(owner, 100)
	if got := kindsOf(all); !slices.Equal(got, want) {
		t.Fatalf("the feed is %q, want %q", got, want)
	}
	for limit := 1; limit <= len(want); limit++ {
		if diff := cmp.Diff(all, l.feed(owner, limit)); diff != "" {
			t.Errorf("read %d at a time it differs:\n%s", limit, diff)
		}
	}
	revision := int64(0)
	for i, e := range all {
		if e.Revision < revision || e.Owner != owner {
			t.Errorf("event %d: %+v", i, e)
		}
		revision = e.Revision
		got, err := l.store.Event(t.Context(), owner, e.ID)
		if err != nil || got == nil || !cmp.Equal(*got, e) {
			t.Errorf("event %s is %+v, %v", e.ID, got, err)
		}
		rest, err := l.store.ReadEvents(t.Context(), owner,
			store.FeedPage{After: store.FeedPosition(e.ID), Limit: 100})
		if diff := cmp.Diff(all[i+1:], rest.Events); err != nil || diff != "" && len(rest.Events)+i+1 != len(all) {
			t.Errorf("after event %d: %v\n%s", i, err, diff)
		}
		stranger, err := l.store.Event(t.Context(), acct("other"), e.ID)
		if err != nil || stranger != nil {
			t.Errorf("another owner finds %+v, %v", stranger, err)
		}
	}
	bound := all[3]
	if bound.License.CurrentDevices != 2 || bound.Actor != licensing.EndUser || !bound.At.Equal(kvtest.Time) ||
		!bound.Device.BoundAt.Equal(kvtest.Time) {
		t.Errorf("the second device's event is %+v", bound)
	}
	if removed := all[6]; removed.Actor != "key_shop" || removed.License.CurrentDevices != 3 ||
		!removed.Device.BoundAt.Equal(kvtest.Time) || !removed.At.Equal(kvtest.Time.Add(time.Hour)) {
		t.Errorf("the removal's event is %+v", removed)
	}

	removals, err := l.store.ReadEvents(t.Context(), owner,
		store.FeedPage{Types: []licensing.EventType{licensing.EventDeviceRemoved}, Limit: 10})
	if got := kindsOf(removals.Events); err != nil || !slices.Equal(got, want[6:7]) {
		t.Errorf("of removals the feed is %q, %v", got, err)
	}
	for limit := 1; limit <= 8; limit++ {
		var history []store.RecordedEvent
		page := store.HistoryPage{Limit: limit}
		for {
			got, err := l.store.History(t.Context(), ref, page)
			if err != nil {
				t.Fatal(err)
			}
			history = append(history, got.Events...)
			if page.Before = got.Next; page.Before == "" {
				break
			}
		}
		slices.Reverse(history)
		if diff := cmp.Diff(all[:7], history); diff != "" {
			t.Errorf("the history, %d at a time:\n%s", limit, diff)
		}
	}
	_ = open
}

// TestPositionsOfNoFeed reads the events after positions that the feed never had.
func TestPositionsOfNoFeed(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("mine")
	l.license(l.store, owner)
	l.license(l.store, acct("other"))
	l.closeEpoch()
	mine, others := l.feed(owner, 10)[0], l.feed(acct("other"), 10)[0]
	at := placeOf(owner, mine.ID)
	later, unknown := at, at
	later.Sequence++
	unknown.Epoch += 1 << 40
	for _, position := range []string{"x", "evt_", "evt_0", mine.ID + "0",
		"evt_" + (licensing.SlotOf(owner) ^ 1).String() + mine.ID[6:],
		others.ID,
		later.Text(licensing.SlotOf(owner)), unknown.Text(licensing.SlotOf(owner)), "pos_0"} {
		_, err := l.store.ReadEvents(t.Context(), owner,
			store.FeedPage{After: store.FeedPosition(position), Limit: 1})
		if !errors.Is(err, store.ErrBadPosition) {
			t.Errorf("after %q: %v", position, err)
		}
		if got, err := l.store.Event(t.Context(), owner, position); got != nil || err != nil {
			t.Errorf("event %q is %+v, %v", position, got, err)
		}
	}
}

// TestEpochMovesDuringACommit begins an epoch that the writer does not know of, while the swap of the writer meets
// every fault: the event is in the feed once, and in the epoch in which it was written.
func TestEpochMovesDuringACommit(t *testing.T) {
	t.Parallel()
	lost := rpctypes.ErrTimeout
	l := newEventsLab(t)
	for i, c := range []struct {
		name   string
		faults []kvtest.Fault
	}{
		{"no fault", nil},
		{"applied, answer lost", []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost}}},
		{"not applied, answer lost", []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: lost}}},
		{"applied late", []kvtest.Fault{{Apply: kvtest.AppliedLate, Tell: lost}}},
		{"twice in doubt",
			[]kvtest.Fault{{Apply: kvtest.AppliedLate, Tell: lost}, {Apply: kvtest.AppliedNow, Tell: lost}}},
	} {
		for _, when := range []string{"before", "between the attempts"} {
			t.Run(c.name+", closed "+when, func(t *testing.T) {
				l := &eventsLab{t: t, etcd: l.etcd, store: l.store}
				owner := acct(fmt.Sprintf("moves_%d_%d", i, len(when)))
				ref := l.license(l.store, owner)
				next := kvtest.Script(c.faults...)
				writes := 0
				s := l.open(nil)
				s.recordActivations = true
				s.etcd.Remote = &kvtest.FaultyKV{KVClient: s.etcd.Remote, Next: func() kvtest.Fault {
					if writes++; when != "before" && writes == 2 {
						l.closeEpoch()
					}
					return next()
				}}
				change := l.bound(s, ref, "a")
				if when == "before" {
					l.closeEpoch()
				}
				l.commit(s, change)
				_ = s.Ping(t.Context())
				l.commit(s, l.bound(s, ref, "b")) // also runs what is late
				l.closeEpoch()
				want := []string{"1 license.issued", "2 license.activated a", "3 device.bound a", "4 device.bound b"}
				got := l.feed(owner, 10)
				if kinds := kindsOf(got); !slices.Equal(kinds, want) {
					t.Errorf("the feed is %q, want %q", kinds, want)
				}
				l.inTheirEpochs(got)
				history, err := l.store.History(t.Context(), ref, store.HistoryPage{Limit: 10})
				slices.Reverse(history.Events)
				if diff := cmp.Diff(got, history.Events); err != nil || diff != "" {
					t.Errorf("the history: %v\n%s", err, diff)
				}
				if stored := loadOne(t, s, ref); stored.Record.License.Sequence != 4 {
					t.Errorf("the license has %d events", stored.Record.License.Sequence)
				}
			})
		}
	}
}

// TestFencesInABatch sends changes of many records together while the fences move: all changes land, and each has
// one event.
func TestFencesInABatch(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("batch")
	var changes []store.Change
	for range 20 {
		changes = append(changes, l.bound(l.store, l.license(l.store, owner), "a"))
	}
	l.closeEpoch()
	for _, nested := range []bool{false, true} {
		if nested {
			l.store.nested.Store(1)
			changes = nil
			for range 20 {
				changes = append(changes, l.bound(l.store, l.license(l.store, owner), "a"))
			}
			l.closeEpoch()
		}
		outcomes, errs := batched(t, l.store, changes...)
		for i := range outcomes {
			if errs[i] != nil || !outcomes[i].Landed {
				t.Errorf("change %d: %+v, %v", i, outcomes[i], errs[i])
			}
		}
	}
	l.closeEpoch()
	counts := make(map[string]int)
	all := l.feed(owner, 7)
	l.inTheirEpochs(all)
	for _, e := range all {
		counts[e.ID]++
		counts[string(e.Type)]++
	}
	for id, n := range counts {
		if id[:4] == "evt_" && n != 1 {
			t.Errorf("the feed has %s %d times", id, n)
		}
	}
	if counts["device.bound"] != 40 || counts["license.issued"] != 40 || counts["license.activated"] != 40 {
		t.Errorf("the feed has %v", counts)
	}
}

// TestFeedOfManyEpochs reads feeds with large epochs, many small ones and gaps, with directories that do not have the
// whole feed.
func TestFeedOfManyEpochs(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("many")
	var ids []string
	many := func(n int, do func(i int) error) {
		var group sync.WaitGroup
		for from := range 64 { // so that etcd syncs its disk for many at once
			group.Go(func() {
				for i := from; i < n; i += 64 {
					if err := do(i); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
	}
	put := func(n int) {
		made := make([]keyspace.EventsKey, n)
		e := l.store.fences.known()
		for i := range made {
			made[i] = keyspace.EventsKey{Location: keyspace.Location{Epoch: e},
				Record: keyspace.LicenseInEvents(newLicense(t, 0).Key.ID()), Last: 1}
		}
		many(n, func(i int) error {
			license := *newLicense(t, 0)
			license.Owner = owner
			record := licensing.NewLicense(&license, nil, "")
			response, err := l.store.etcd.Native.Put(t.Context(), made[i].Key(owner),
				string(layout.EncodeEvents(record.Events, keyspace.Location{})))
			if err == nil {
				made[i].Revision = response.Header.Revision
			}
			return err
		})
		slices.SortFunc(made, keyspace.CompareEvents)
		for _, entry := range made {
			ids = append(ids, keyspace.EventID(owner, entry.Location, entry.Record, 1))
		}
		if err := l.store.OpenEpoch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	gap := func() {
		many(2*firstSlice, func(int) error {
			_, err := l.store.etcd.Native.Put(t.Context(), "elsewhere", "")
			return err
		})
	}
	put(1)
	gap()
	put(dirEntries + 500)
	for range 50 {
		put(3)
	}
	gap()
	put(2)
	for _, limit := range []int{100, 33, 5000} {
		var got []string
		for _, e := range l.feed(owner, limit) {
			got = append(got, e.ID)
		}
		if diff := cmp.Diff(ids, got); diff != "" {
			t.Errorf("%d at a time:\n%s", limit, diff)
		}
	}

	// The reader wants only the last of these events.
	rare := l.license(l.store, owner)
	l.commit(l.store, l.bound(l.store, rare, "a"))
	l.closeEpoch()
	page := store.FeedPage{Types: []licensing.EventType{licensing.EventDeviceBound}, Limit: 10}
	for pages := 1; ; pages++ {
		got := kvtest.Must(l.store.ReadEvents(t.Context(), owner, page))(t)
		if page.After = got.Next; got.More && len(got.Events) == 0 {
			continue
		}
		if want := len(ids)/feedScan + 1; !slices.Equal(kindsOf(got.Events), []string{"3 device.bound a"}) ||
			got.More || pages != want {
			t.Errorf("page %d of %d has %q", pages, want, kindsOf(got.Events))
		}
		break
	}
}
