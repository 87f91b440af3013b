package kv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"licet/internal/depth"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// TestDamagedEvents cuts and changes a value of events at every byte. The result has the right events, or placeholders
// for them.
func TestDamagedEvents(t *testing.T) {
	const last = 7
	record := keyspace.LicenseInEvents(kvtest.Key.ID())
	value := layout.EncodeEvents(kvtest.Events(), keyspace.Location{Epoch: 0x0102030405, Block: 0x86070809})
	check := func(what string, damaged []byte) {
		t.Helper()
		stored, err := layout.DecodeEvents(kvtest.Owner, record, last, damaged)
		if n := len(stored.Events); n == 0 || stored.Events[n-1].Sequence != last || stored.Torn &&
			(err == nil || n > 1) {
			t.Fatalf("%s: %+v, %v", what, stored, err)
		}
		bad := 0
		for i := range stored.Events {
			e := &stored.Events[i]
			if e.Sequence != last-uint64(len(stored.Events)-1-i) || e.Actor == "" ||
				stored.At(e.Sequence, last) == nil {
				t.Fatalf("%s: %+v", what, e)
			}
			if _, err := json.Marshal([]any{e.At, e.License, e.Device}); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if e.Type == licensing.EventUnreadable {
				bad++
			} else if l := e.License; l != nil && (l.Key.ID() != kvtest.Key.ID() || l.Owner != kvtest.Owner) {
				t.Fatalf("%s: an event of another license: %+v", what, l)
			}
		}
		if (bad > 0) != (err != nil) {
			t.Fatalf("%s: %d placeholders, and %v", what, bad, err)
		}
	}
	check("whole", value)
	for n := range value {
		check(fmt.Sprintf("%d bytes of it", n), value[:n])
		for _, b := range []byte{0, 1, 2, 0x7f, 0x80, 0xff, value[n] ^ 1, value[n] ^ 8} {
			garbled := bytes.Clone(value)
			garbled[n] = b
			check(fmt.Sprintf("byte %d is %#x", n, b), garbled)
		}
	}
	newer := bytes.Clone(value)
	newer[0] = 9
	stored, err := layout.DecodeEvents(kvtest.Owner, record, last, newer)
	if err == nil || len(stored.Events) != 3 || stored.Torn || stored.Before != (keyspace.Location{Epoch: 0x0102030405,
		Block: 0x86070809}) || !stored.Events[0].At.Equal(kvtest.Time) {
		t.Errorf("of a newer format: %+v, %v", stored, err)
	}
}

// damagedFeed is the feed of an owner before a value was damaged.
type damagedFeed struct {
	*eventsLab
	owner licensing.Owner
	all   []store.RecordedEvent
	lost  map[string]bool // the ids of the events in the damaged value
}

// rest returns the events that are not lost, without placeholders.
func (r *damagedFeed) rest(events []store.RecordedEvent) (rest []store.RecordedEvent) {
	for _, e := range events {
		if !r.lost[e.ID] && e.Type != licensing.EventUnreadable {
			e.Revision = 0 // each way to damage the key changes its revision
			rest = append(rest, e)
		}
	}
	return rest
}

// history reads the whole history of a license, limit events at a time.
func (r *damagedFeed) history(ref licensing.Ref, limit int) (all []store.RecordedEvent) {
	r.t.Helper()
	for page := (store.HistoryPage{Limit: limit}); ; {
		got := kvtest.Must(kvtest.Read(func() (store.History, error) {
			return r.store.History(r.t.Context(), ref, page)
		}))(r.t)
		all = append(all, got.Events...)
		if page.Before = got.Next; page.Before == "" {
			return all
		}
	}
}

// event reads an event by its id; nil if there is none.
func (r *damagedFeed) event(id string) *store.RecordedEvent {
	r.t.Helper()
	return kvtest.Must(kvtest.Read(func() (*store.RecordedEvent, error) {
		return r.store.Event(r.t.Context(), r.owner, id)
	}))(r.t)
}

// check reads everything while the value is damaged, in every way, and returns the feed.
func (r *damagedFeed) check(what string) []store.RecordedEvent {
	r.t.Helper()
	t := r.t
	got := r.feed(r.owner, 100)
	if diff := cmp.Diff(r.rest(r.all), r.rest(got)); diff != "" {
		t.Errorf("%s: the neighbors in the feed (-want +got):\n%s", what, diff)
	}
	for _, limit := range []int{1, 2, 5} {
		if diff := cmp.Diff(got, r.feed(r.owner, limit)); diff != "" {
			t.Errorf("%s: %d at a time (-all at once +got):\n%s", what, limit, diff)
		}
	}
	placeholders := 0
	for i, e := range got {
		if e.Type == licensing.EventUnreadable {
			placeholders++
			if e.License != nil || e.Order != nil || e.Actor != licensing.System || e.Revision == 0 {
				t.Errorf("%s: the placeholder %+v", what, e)
			}
		}
		if found := r.event(e.ID); found == nil || cmp.Diff(e, *found) != "" {
			t.Errorf("%s: %s is found as %+v", what, e.ID, found)
		}
		rest, err := r.after(r.owner, store.FeedPosition(e.ID))
		if diff := cmp.Diff(append([]store.RecordedEvent(nil), got[i+1:]...), rest); err != nil || diff != "" {
			t.Errorf("%s: after %s (-want +got): %v\n%s", what, e.ID, err, diff)
		}
	}
	if placeholders == 0 {
		t.Errorf("%s: there is no placeholder", what)
	}
	histories := map[licensing.Ref][]store.RecordedEvent{}
	for i, e := range r.all {
		// The reader got the event from a node that could read it.
		rest, err := r.after(r.owner, store.FeedPosition(e.ID))
		if diff := cmp.Diff(r.rest(r.all[i+1:]), r.rest(rest)); err != nil || diff != "" {
			t.Errorf("%s: after %s, which the reader already has (-want +got): %v\n%s", what, e.ID, err, diff)
		}
		if r.event(e.ID) == nil {
			t.Errorf("%s: %s is not found", what, e.ID)
		}
		ref := licensing.LicenseRef(e.License.Key)
		histories[ref] = append([]store.RecordedEvent{e}, histories[ref]...)
	}
	for ref, want := range histories {
		for _, limit := range []int{1, 100} {
			if diff := cmp.Diff(r.rest(want), r.rest(r.history(ref, limit))); diff != "" {
				t.Errorf("%s: a history (-want +got):\n%s", what, diff)
			}
		}
	}
	if n := kvtest.Counted(t, r.store.metrics.EventValuesUnreadable); n != 1 {
		t.Errorf("%s: %v values are counted", what, n)
	}
	found := r.verified()
	for _, v := range found {
		if v.Family != "event" || v.Rule != "value" {
			t.Errorf("%s: verify finds %+v", what, v)
		}
	}
	if len(found) == 0 {
		t.Errorf("%s: verify finds nothing", what)
	}
	return got
}

// damage reads everything while a value is damaged, in several ways, and after the value was repaired.
func (l *eventsLab) damage(
	owner licensing.Owner, key string, lost func(store.RecordedEvent) bool, ways map[string][]byte,
) {
	l.t.Helper()
	put := func(value []byte) {
		if _, err := l.store.etcd.Native.Put(l.t.Context(), key, string(value)); err != nil {
			l.t.Fatal(err)
		}
	}
	whole := kvtest.Must(l.store.etcd.Native.Get(l.t.Context(), key))(l.t).Kvs[0].Value
	put(whole) // so that the key is where it will be in its epoch
	l.store = l.open(nil)
	r := &damagedFeed{eventsLab: l, owner: owner, all: l.feed(owner, 100), lost: map[string]bool{}}
	for _, e := range r.all {
		r.lost[e.ID] = lost(e)
	}
	for what, value := range ways {
		l.store = l.open(nil) // with counters of its own
		put(value)
		got := r.check(what)
		put(whole)
		for i, e := range got {
			rest, err := l.after(owner, store.FeedPosition(e.ID))
			if diff := cmp.Diff(r.rest(got[i+1:]), r.rest(rest)); err != nil || diff != "" {
				l.t.Errorf("%s, and repaired: after %s (-want +got): %v\n%s", what, e.ID, err, diff)
			}
			if r.event(e.ID) == nil {
				l.t.Errorf("%s, and repaired: %s is not found", what, e.ID)
			}
		}
	}
}

// TestUnreadableEvents damages the value of one transaction's events in the middle of a feed.
func TestUnreadableEvents(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("damaged")
	ref, other := l.license(l.store, owner), l.license(l.store, owner)
	l.closeEpoch()
	l.commit(l.store, l.bound(l.store, ref, "a"))
	l.commit(l.store, l.bound(l.store, other, "a", "b"))
	l.closeEpoch()
	l.commit(l.store, l.bound(l.store, ref, "b", "c"))
	l.commit(l.store, l.bound(l.store, other, "c"))
	l.closeEpoch() // what is damaged becomes the last key of its epoch, and must be so for its record too
	l.commit(l.store, l.bound(l.store, ref, "d"))
	l.closeEpoch()
	var key string
	all := l.feed(owner, 100)
	record := keyspace.LicenseInEvents(ref.LicenseID())
	at := placeOf(owner, all[len(all)-2].ID)
	key = keyspace.EventsKeyOf(owner, keyspace.Location{Epoch: at.Epoch}, record, 5)
	whole := kvtest.Must(l.store.etcd.Native.Get(t.Context(), key))(t).Kvs[0].Value
	newer, facts := bytes.Clone(whole), bytes.Clone(whole)
	newer[0] = 9
	facts[3] = 9 // the format version of the license's value
	lost := func(e store.RecordedEvent) bool {
		return e.License.Key == keyOf(ref) && (e.Sequence == 4 || e.Sequence == 5)
	}
	l.damage(owner, key, lost, map[string][]byte{
		"empty": {}, "cut to a byte": whole[:1], "cut to half": whole[:len(whole)/2],
		"cut by a byte": whole[:len(whole)-1],
		"newer":         newer, "the license's facts are newer": facts, "noise": bytes.Repeat([]byte{0xee}, 50),
	})
}

// TestUnreadableBlocks damages a block, and one run in it.
func TestUnreadableBlocks(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("block")
	changes := l.binds(5, owner)
	l.closeEpoch()
	l.together(changes)
	e := l.store.fences.known()
	l.closeEpoch()
	entries := slices.DeleteFunc(l.entries(owner, e), func(e keyspace.EventsKey) bool { return e.Block == 0 })
	if len(entries) != 1 {
		t.Fatalf("%d blocks", len(entries))
	}
	key := entries[0].Key(owner)
	whole := kvtest.Must(l.store.etcd.Native.Get(t.Context(), key))(t).Kvs[0].Value
	runs := kvtest.Must(layout.DecodeRuns(&entries[0], whole))(t)
	inBlock := func(from, to int) func(store.RecordedEvent) bool {
		return func(e store.RecordedEvent) bool {
			at := placeOf(e.Owner, e.ID)
			return at.Record.Block() != 0 && slices.ContainsFunc(runs[from:to],
				func(r layout.Run) bool { return r.Hash(entries[0].Block) == at.Record })
		}
	}
	// The values of runs may be alike.
	begins := func(i int) int {
		from := bytes.Index(whole, []byte(runs[i].Record))
		return from + bytes.Index(whole[from:], runs[i].Value)
	}
	replaced := func(i int, with []byte) []byte {
		value := bytes.Clone(whole)
		copy(value[begins(i):], with)
		return value
	}
	unnamed := bytes.Clone(whole)
	unnamed[bytes.Index(whole, []byte(runs[2].Record))-2] = 0x7a // the field with the record is another one
	newer := bytes.Clone(whole)
	newer[0] = 9
	l.damage(owner, key, inBlock(0, 5),
		map[string][]byte{"newer": newer, "empty": {}, "noise": bytes.Repeat([]byte{0xee}, 50)})
	l.damage(owner, key, inBlock(2, 5), map[string][]byte{"cut in the third run": whole[:begins(2)+3]})
	l.damage(owner, key, inBlock(2, 3), map[string][]byte{
		"the third run is newer": replaced(2, []byte{9}), "the third run is noise": replaced(2,
			bytes.Repeat([]byte{0xee}, len(runs[2].Value))),
		"the third run is of nothing": unnamed,
	})
}

// TestNewerEvents reads kinds, members and records that only a newer build knows.
func TestNewerEvents(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("newer")
	ref := l.license(l.store, owner)
	change := l.bound(l.store, ref, "a")
	record := &change.Writes[0].Record
	members := []licensing.EventMember{{Of: "license", Name: "pauses", JSON: "3"}, {Name: "pause", JSON: `{"days":30}`}}
	record.Events[0].Type, record.Events[0].Actor, record.Events[0].Members = "license.paused", "robot", members
	l.commit(l.store, change)
	e := l.store.fences.known()
	// A record of a kind that this build does not know: it reads all of the events but the record.
	text := func(b []byte, num protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
	}
	// The numbers are those of layout's events.go: kind 8, actor 4, member 9 with its name 2 and JSON 3.
	member := text(text(nil, 2, "seat"), 3, `{"row":7}`)
	message := text(text(text(nil, 8, "seat.taken"), 4, "key_1"), 9, string(member))
	value := text([]byte{1}, 1, "facts")
	value = protowire.AppendVarint(protowire.AppendTag(value, 4, protowire.VarintType), uint64(kvtest.Time.UnixMilli()))
	value = text(value, 2, string(append(message, 0x78, 1)))
	if _, err := l.store.etcd.Native.Put(t.Context(),
		keyspace.EventsKeyOf(owner, keyspace.Location{Epoch: e}, "sseat-7", 1), string(value)); err != nil {
		t.Fatal(err)
	}
	l.closeEpoch()
	all := l.feed(owner, 1)
	if got := kindsOf(all); !slices.Equal(got,
		[]string{"1 license.issued", "2 license.paused a", "3 device.bound a", "1 seat.taken"}) {
		t.Fatalf("the feed has %v", got)
	}
	if e := all[1]; e.Actor != "robot" || e.License == nil || !slices.Equal(e.Members, members) {
		t.Errorf("the new kind of events is %+v", e)
	}
	if e := all[3]; e.Actor != "key_1" || !e.At.Equal(kvtest.Time) ||
		!slices.Equal(e.Members, []licensing.EventMember{{Name: "seat", JSON: `{"row":7}`}}) {
		t.Errorf("the event of a new kind of records is %+v", e)
	}
	some := kvtest.Must(l.store.ReadEvents(t.Context(), owner,
		store.FeedPage{Limit: 10, Types: []licensing.EventType{"seat.taken"}}))(t)
	if diff := cmp.Diff(all[3:], some.Events); diff != "" {
		t.Errorf("of one kind (-want +got):\n%s", diff)
	}
	for _, e := range all {
		if found := kvtest.Must(l.store.Event(t.Context(), owner, e.ID))(t); found == nil ||
			cmp.Diff(e, *found) != "" {
			t.Errorf("%s is found as %+v", e.ID, found)
		}
	}
	if n := kvtest.Counted(t, l.store.metrics.EventValuesUnreadable); n != 0 {
		t.Errorf("%v values can't be read", n)
	}
	if found := l.verified(); len(found) > 0 {
		t.Errorf("verify finds %+v", found)
	}
}

// TestSearchHistory searches, over several calls, for events of a record whose location nothing stores.
func TestSearchHistory(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner, ctx := acct("search"), t.Context()
	const old, late = 5, 1 << 40
	at := placeOf(owner, l.putEvents(owner, old, 3, "a")[0])
	l.putEvents(owner, late-1, 2, "b") // of another license
	entry := l.entries(owner, at.Epoch)[0]
	place := historyPlace{Location: keyspace.Location{Epoch: late}, sequence: 7}
	for calls := 1; place.last == 0; calls++ {
		var err error
		if place, err = l.store.searchHistory(ctx, owner, entry.Record, place, 0); err != nil || place.sequence == 0 ||
			calls > 9 {
			t.Fatalf("call %d: %+v, %v", calls, place, err)
		}
		if again, ok := readHistoryPlace(place.text()); !ok || again != place || calls == 1 && place.last > 0 {
			t.Errorf("call %d: %+v is read as %+v, %v", calls, place, again, ok)
		}
	}
	if want := (historyPlace{keyspace.Location{Epoch: old}, 3, 3}); place != want {
		t.Errorf("found is %+v, not %+v", place, want)
	}
	for _, from := range []historyPlace{{Location: keyspace.Location{Epoch: late}, sequence: 2},
		{Location: keyspace.Location{Epoch: old - 1}, sequence: 9}} {
		for calls := 0; from.sequence > 0; calls++ {
			var err error
			if from, err = l.store.searchHistory(ctx, owner, entry.Record, from, 0); err != nil || from.last > 0 ||
				calls > 9 {
				t.Fatalf("before the first: %+v, %v", from, err)
			}
		}
	}
}

// TestListsSkipUnreadableRecords: a record that can't be read does not end the lists that contain it.
func TestListsSkipUnreadableRecords(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	licenses := []licensing.LicenseKey{l.grant(1, ""), l.grant(1, ""), l.grant(1, "")}
	orders := []licensing.Order{l.order(100), l.order(100), l.order(100)}
	if err := l.store.UseMaster(l.ctx(),
		kvtest.Must(keyring.NewMasterKey("m1", [keyring.MasterKeySize]byte{1}))(t)); err != nil {
		t.Fatal(err)
	}
	keys := []licensing.APIKey{newAPIKeyOf(labOwner), newAPIKeyOf(labOwner), newAPIKeyOf(labOwner)}
	for i := range keys {
		keys[i].ID, keys[i].MasterID = fmt.Sprint("key_0e", i), "m1"
		if err := l.store.CreateAPIKey(l.ctx(), keys[i]); err != nil {
			t.Fatal(err)
		}
	}
	before := kvtest.Counted(t, l.store.metrics.EventValuesUnreadable)
	l.write(seed{
		keyspace.LicenseKey(licenses[1].ID()):          bytesOf("?"),
		keyspace.OrderKey(labOwner, orders[1].OrderNo): bytesOf("?"),
		keyspace.APIKeyKey(keys[1].Hash):               bytesOf("?"),
		keyspace.KeyUseKey(keys[0].Hash):               bytesOf("?"),
	})
	if _, err := l.store.Load(l.ctx(), store.Want{Ref: licensing.LicenseRef(licenses[1])}); !errors.Is(err,
		licensing.ErrInternal) || !errors.Is(err, store.ErrNewerFormat) { // "?" is the number of no format so far
		t.Errorf("the license is read with %v", err)
	}
	page := store.Page{Limit: 10}
	for range 2 { // each value counts once
		listed := kvtest.Must(l.store.ListLicenses(l.ctx(), labOwner, licensing.Customer{}, page, nil))(t)
		var found []licensing.LicenseKey
		for _, view := range listed.Items {
			found = append(found, view.License.Key)
		}
		if want := []licensing.LicenseKey{licenses[2], licenses[0]}; !haveSame(found, want) {
			t.Errorf("the licenses are %v, want %v", found, want)
		}
		var numbers []string
		for _, order := range kvtest.Must(l.store.ListOrders(l.ctx(), labOwner, "", page, nil))(t).Items {
			numbers = append(numbers, order.OrderNo)
		}
		if want := []string{orders[2].OrderNo, orders[0].OrderNo}; !haveSame(numbers, want) {
			t.Errorf("the orders are %v, want %v", numbers, want)
		}
		var ids []string
		for _, key := range kvtest.Must(l.store.ListAPIKeys(l.ctx(), labOwner, page))(t).Items {
			ids = append(ids, key.ID)
		}
		if want := []string{"key_0e2", "key_0e0"}; !slices.Equal(ids, want) {
			t.Errorf("the API keys are %v, want %v", ids, want)
		}
	}
	// A look-up does not say that there is no such API key.
	if _, err := l.store.FindAPIKey(l.ctx(), labOwner, "key_0e1"); !errors.Is(err, licensing.ErrInternal) {
		t.Errorf("the API key is found: %v", err)
	}
	if n := kvtest.Counted(t, l.store.metrics.EventValuesUnreadable) - before; n != 4 {
		t.Errorf("%v unreadable values were counted, want 4", n)
	}
}

// haveSame reports whether two lists have the same elements. Records of the same millisecond are in any order.
func haveSame[T comparable](list, other []T) bool {
	return len(list) == len(other) && !slices.ContainsFunc(list, func(e T) bool { return !slices.Contains(other, e) })
}
