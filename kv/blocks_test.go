package kv

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/depth"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/store"
)

// binds returns changes that bind a first device to new licenses of owners, in turns.
func (l *eventsLab) binds(n int, owners ...licensing.Owner) []store.Change {
	l.t.Helper()
	changes := make([]store.Change, n)
	for i := range changes {
		changes[i] = l.bound(l.store, l.license(l.store, owners[i%len(owners)]), "a")
	}
	return changes
}

// together makes changes in one batch, each of which lands.
func (l *eventsLab) together(changes []store.Change) {
	l.t.Helper()
	outcomes, errs := batched(l.t, l.store, changes...)
	for i := range outcomes {
		if errs[i] != nil || !outcomes[i].Landed {
			l.t.Errorf("change %d: %+v, %v", i, outcomes[i], errs[i])
		}
	}
}

// entries lists the keys of an owner's events in an epoch, in the feed's order.
func (l *eventsLab) entries(owner licensing.Owner, e keyspace.Epoch) []keyspace.EventsKey {
	l.t.Helper()
	return kvtest.Must(l.store.listEvents(l.t.Context(), owner, e, e+1, 0))(l.t).entries
}

func blocksIn(entries []keyspace.EventsKey) (blocks int) {
	for _, e := range entries {
		if e.Block != 0 {
			blocks++
		}
	}
	return blocks
}

// verified returns the findings of verify, without those about the license that batched makes.
func (l *eventsLab) verified() []verify.Violation {
	l.t.Helper()
	_, found := (&lab{t: l.t, store: l.store}).verify(verify.Config{})
	return slices.DeleteFunc(found, func(v verify.Violation) bool { return v.Rule == "check_characters" })
}

// readsWell reads the events of an owner in every way, checks that all ways return the same events, and verifies the
// store.
func (l *eventsLab) readsWell(owner licensing.Owner) []store.RecordedEvent {
	l.t.Helper()
	all := l.readsAlike(owner)
	l.verifiesWell()
	return all
}

func (l *eventsLab) verifiesWell() {
	l.t.Helper()
	if found := l.verified(); len(found) > 0 {
		l.t.Errorf("verify finds %v", found)
	}
}

// readsAlike reads the events of an owner in every way, and checks that all ways return the same events.
func (l *eventsLab) readsAlike(owner licensing.Owner) []store.RecordedEvent {
	l.t.Helper()
	ctx := l.t.Context()
	all := l.feed(owner, 1000)
	l.inTheirEpochs(all)
	counts := make(map[string]int)
	for _, e := range all {
		if counts[e.ID]++; counts[e.ID] > 1 {
			l.t.Errorf("the feed has %s twice", e.ID)
		}
	}
	if !slices.IsSortedFunc(all, func(a, b store.RecordedEvent) int { return int(a.Revision - b.Revision) }) {
		l.t.Error("the feed is not in the order of revisions")
	}
	for _, limit := range []int{1, 3, 16, 17} {
		if diff := cmp.Diff(all, l.feed(owner, limit)); diff != "" {
			l.t.Errorf("%d at a time (-all at once +got):\n%s", limit, diff)
		}
	}
	var some, want []store.RecordedEvent
	page := store.FeedPage{Limit: 5, Types: []licensing.EventType{licensing.EventDeviceBound}}
	for more := true; more; {
		got := kvtest.Must(l.store.ReadEvents(ctx, owner, page))(l.t)
		some, page.After, more = append(some, got.Events...), got.Next, got.More
	}
	histories := make(map[licensing.Ref][]store.RecordedEvent)
	for _, e := range all {
		if e.Type == licensing.EventDeviceBound {
			want = append(want, e)
		}
		if got := kvtest.Must(l.store.Event(ctx, owner, e.ID))(l.t); got == nil || cmp.Diff(e, *got) != "" {
			l.t.Errorf("%s is found as %+v", e.ID, got)
		}
		ref := licensing.LicenseRef(e.License.Key)
		histories[ref] = append([]store.RecordedEvent{e}, histories[ref]...)
	}
	if diff := cmp.Diff(want, some); diff != "" {
		l.t.Errorf("of one kind (-want +got):\n%s", diff)
	}
	for ref, want := range histories {
		var got []store.RecordedEvent
		page := store.HistoryPage{Limit: 1}
		for {
			history := kvtest.Must(l.store.History(ctx, ref, page))(l.t)
			got = append(got, history.Events...)
			if page.Before = history.Next; page.Before == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			l.t.Errorf("history (-want +got):\n%s", diff)
		}
	}
	return all
}

// TestEventsShareKeys changes many licenses in batches: the events of an owner are in few keys, and are read as if
// each license had a key of its own.
func TestEventsShareKeys(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	for _, c := range []struct {
		name    string
		changes int
		owners  int
		nested  bool
		blocks  []int // of each owner, in the epoch of the batch
		keys    []int
	}{
		{"two licenses", 2, 1, false, []int{1}, []int{1}},
		{"a full block", layout.BlockRuns, 1, false, []int{1}, []int{1}},
		{"one more than a block has", layout.BlockRuns + 1, 1, false, []int{2}, []int{2}},
		{"three blocks", 40, 1, false, []int{3}, []int{3}},
		{"two owners", 20, 2, false, []int{1, 1}, []int{1, 1}},
		{"each of another owner", 3, 3, false, []int{0, 0, 0}, []int{1, 1, 1}},
		{"one of several owners with one license", 3, 2, false, []int{1, 0}, []int{1, 1}},
		{"as many as a request has room for", 118, 1, false, []int{8}, []int{8}},
		{"many owners", 60, 30, false, slices.Repeat([]int{1}, 30), slices.Repeat([]int{1}, 30)},
		{"a nested batch", 20, 1, true, []int{0}, []int{20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newEventsLab(t)
			owners := make([]licensing.Owner, c.owners)
			for i := range owners {
				owners[i] = acct(fmt.Sprintf("share%d", i))
			}
			changes := l.binds(c.changes, owners...)
			e := l.closeEpoch()
			l.store.fences.noteEpoch(e)
			if c.nested {
				l.store.nested.Store(2)
			}
			l.together(changes)
			l.closeEpoch()
			keys, blocks := make([]int, c.owners), make([]int, c.owners)
			for i, owner := range owners {
				entries := l.entries(owner, e)
				keys[i], blocks[i] = len(entries), blocksIn(entries)
			}
			if !slices.Equal(keys, c.keys) || !slices.Equal(blocks, c.blocks) {
				t.Errorf("owners have %v keys and %v blocks, want %v and %v", keys, blocks, c.keys, c.blocks)
			}
			for i, owner := range owners {
				want := (c.changes - i + c.owners - 1) / c.owners
				if all := l.readsAlike(owner); len(all) != 3*want {
					t.Errorf("%d events of %d licenses", len(all), want)
				}
			}
			l.verifiesWell()
			// The next events of the same licenses follow the events in blocks, and have keys of their own.
			for _, change := range changes[:2] {
				l.commit(l.store, l.bound(l.store, change.Writes[0].Ref, "b"))
			}
			l.closeEpoch()
			for _, owner := range owners[:min(2, len(owners))] {
				l.readsAlike(owner)
			}
			l.verifiesWell()
		})
	}
}

// TestOrderInABlock pays orders in one batch, each of which issues a license: the events of an order come before the
// events of its license.
func TestOrderInABlock(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const n = 12
	var orders []licensing.Order
	for i := range n {
		orders = append(orders, l.order(int64(100+i)))
	}
	blocked := make(chan struct{})
	send := l.store.writes.send
	awaitIdle(t, &l.store.writes)
	l.store.writes.few, l.store.writes.most = 1, 1
	left := make(chan int, 2*n)
	l.store.writes.send = func(batch []*batchItem) { left <- len(batch); <-blocked; send(batch) }
	done := make(chan error, n)
	for _, order := range orders {
		go func() {
			_, err := l.node.PayOrder(l.ctx(), order, sandboxPayment(order.OrderNo))
			done <- err
		}()
	}
	first := <-left // one, or as many as there were when it left
	awaitWaiting(t, &l.store.writes, n-first)
	close(blocked)
	for range n {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if err := l.store.OpenEpoch(l.ctx()); err != nil {
		t.Fatal(err)
	}
	paid := make(map[string]bool)
	blocks, issued := 0, 0
	page := store.FeedPage{Limit: 3}
	for more := true; more; {
		feed := kvtest.Must(l.store.ReadEvents(l.ctx(), labOwner, page))(t)
		for _, e := range feed.Events {
			switch e.Type {
			case licensing.EventOrderPaid:
				paid[e.Order.OrderNo] = true
			case licensing.EventLicenseIssued:
				issued++
				if !paid[e.License.OrderNo] {
					t.Errorf("the license of %s is issued before the order is paid", e.License.OrderNo)
				}
			}
			if at := placeOf(e.Owner, e.ID); at.Record.Block() != 0 {
				blocks++
			}
		}
		page.After, more = feed.Next, feed.More
	}
	if issued != n || len(paid) != n || n-first > 1 && blocks < 2*(n-first) {
		t.Errorf("%d licenses and %d orders, %d events in blocks", issued, len(paid), blocks)
	}
	if _, found := l.verify(verify.Config{}); len(found) > 0 {
		t.Errorf("verify finds %v", found)
	}
}

// TestBlockNumberIsTaken: the blocks of two batches have the same number. The second batch loses, and its events get
// keys of their own. No event is overwritten.
func TestBlockNumberIsTaken(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("taken")
	l.store.firstBlock = func(int) keyspace.Block { return 1<<31 | 7 }
	first, second := l.binds(20, owner), l.binds(20, owner)
	e := l.closeEpoch()
	l.store.fences.noteEpoch(e)
	l.together(first)
	l.together(second)
	l.closeEpoch()
	if entries := l.entries(owner, e); len(entries) != 22 || blocksIn(entries) != 2 {
		t.Errorf("%d keys, %d blocks", len(entries), blocksIn(entries))
	}
	if all := l.readsWell(owner); len(all) != 3*40 {
		t.Errorf("%d events", len(all))
	}
}

// TestBlocksInDoubt loses the answer of a batch with blocks. The batch landed, did not land, lands late, loses to a
// rival, or meets the next epoch: each change has one event.
func TestBlocksInDoubt(t *testing.T) {
	t.Parallel()
	lost := rpctypes.ErrTimeout
	for _, c := range []struct {
		name   string
		faults []kvtest.Fault
		rivals int
		close  bool
	}{
		{name: "made", faults: []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost}}},
		{name: "not made", faults: []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: lost}}},
		{name: "made late", faults: []kvtest.Fault{{Apply: kvtest.AppliedLate, Tell: lost}}},
		{name: "made, twice in doubt",
			faults: []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost}, {Apply: kvtest.AppliedNever, Tell: lost}}},
		{name: "a rival", rivals: 1},
		{name: "a rival, and made late", rivals: 1,
			faults: []kvtest.Fault{{}, {Apply: kvtest.AppliedLate, Tell: lost}}},
		{name: "an epoch has begun", close: true},
		{name: "an epoch has begun, and made", close: true,
			faults: []kvtest.Fault{{}, {Apply: kvtest.AppliedNow, Tell: lost}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newEventsLab(t)
			owner := acct("doubt")
			changes := l.binds(20, owner)
			for _, change := range changes[:c.rivals] {
				other := l.open(nil)
				other.recordActivations = true
				l.commit(other, l.bound(other, change.Writes[0].Ref, "rival"))
			}
			if c.close {
				l.closeEpoch()
			}
			sent := 0
			plain := l.store.etcd.Remote
			next := kvtest.Script(append([]kvtest.Fault{{}, {}}, c.faults...)...)
			l.store.etcd.Remote = &kvtest.FaultyKV{KVClient: plain, Next: func() kvtest.Fault { sent++; return next() }}
			outcomes, errs := batched(t, l.store, changes...)
			l.store.etcd.Remote = plain
			for i := range outcomes {
				if errs[i] != nil || outcomes[i].Landed != (i >= c.rivals) {
					t.Errorf("change %d: %+v, %v", i, outcomes[i], errs[i])
				}
			}
			// The store must remember what it has written.
			for _, change := range changes[c.rivals:] {
				l.commit(l.store, l.bound(l.store, change.Writes[0].Ref, "b"))
			}
			l.closeEpoch()
			if all := l.readsWell(owner); len(all) != 4*20-c.rivals {
				t.Errorf("%d events", len(all))
			}
			if sent < 2+len(c.faults) {
				t.Errorf("%d requests met their faults", sent)
			}
		})
	}
}

// TestInvalidPositionsInBlocks: the feed refuses positions in a block that belong to no event.
func TestInvalidPositionsInBlocks(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("places")
	changes := l.binds(3, owner)
	l.together(changes)
	l.closeEpoch()
	all := l.feed(owner, 100)
	at := placeOf(owner, all[len(all)-1].ID)
	if at.Record.Block() == 0 {
		t.Fatal("there is no block")
	}
	stranger, later, earlier, elsewhere := at, at, at, at
	stranger.Record[len(stranger.Record)-1]++
	later.Sequence += 5
	earlier.Sequence = 1 // of the license's issue, an earlier event
	elsewhere.Record[1]++
	for name, p := range map[string]keyspace.FeedPlace{"another record": stranger, "a later event": later,
		"an earlier event": earlier, "another block": elsewhere} {
		id := p.Text(licensing.SlotOf(owner))
		if found, err := l.store.Event(t.Context(), owner, id); found != nil || err != nil {
			t.Errorf("%s is found: %+v, %v", name, found, err)
		}
		if feed, err := l.store.ReadEvents(t.Context(), owner,
			store.FeedPage{After: store.FeedPosition(id), Limit: 10}); !errors.Is(err, store.ErrBadPosition) {
			t.Errorf("the feed behind %s: %+v, %v", name, feed, err)
		}
	}
}

// TestVerifyChecksBlocks plants corruptions of blocks: verify finds each.
func TestVerifyChecksBlocks(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("planted")
	l.together(l.binds(3, owner))
	l.closeEpoch()
	v := &lab{t: t, store: l.store, client: l.store.etcd.Native}
	if found := l.verified(); len(found) > 0 {
		t.Fatalf("verify finds %v", found)
	}
	var at keyspace.EventsKey
	for _, entry := range kvtest.Must(l.store.listEvents(v.ctx(), owner, 0, 1<<62, 0))(t).entries {
		if entry.Block != 0 {
			at = entry
		}
	}
	key := at.Key(owner)
	value := v.value(key)
	runs := kvtest.Must(layout.DecodeRuns(&at, value))(t)
	if len(runs) != 3 {
		t.Fatalf("%d runs", len(runs))
	}
	with := func(runs ...layout.Run) []byte {
		return layout.EncodeBlock(runs)
	}
	name := fmt.Sprintf("e/%s%d/%08x", keyspace.OwnerPath(owner), at.Epoch, uint32(at.Block))
	event := func(i int) string { return "e/" + keyspace.EventID(owner, at.Location, runs[i].Record, runs[i].Last) }
	license := func(i int) string {
		return "l/" + licensing.NewLicenseID(0, [licensing.LicenseBlockSize]byte([]byte(runs[i].Record[1:]))).String()
	}
	moved := keyspace.BlockKey(owner, keyspace.Location{Epoch: at.Epoch, Block: at.Block + 1})
	foreign := keyspace.BlockKey(acct("foreign"), at.Location)
	alone := func(i int) string {
		return keyspace.EventsKeyOf(owner, keyspace.Location{Epoch: at.Epoch}, runs[i].Record, runs[i].Last)
	}
	for _, c := range []struct {
		name string
		seed seed
		want []string
	}{
		{"a record is missing", seed{key: with(runs[0], runs[2])},
			[]string{"event unlinked e/", "license event_missing " + license(1)}},
		{"a block without a reference", seed{moved: with(runs[1])}, []string{"event unlinked e/"}},
		{"one has moved", seed{key: with(runs[0], runs[2]), moved: with(runs[1])},
			[]string{"event unlinked e/", "license event_missing " + license(1)}},
		{"out of order", seed{key: with(runs[1], runs[0], runs[2])}, []string{"event value " + name}},
		{"one twice", seed{key: with(runs[0], runs[0], runs[1], runs[2])}, []string{"event value " + name}},
		{"empty", seed{key: with()}, []string{"event value " + name}},
		{"cut short", seed{key: value[:len(value)-1]}, []string{"event value " + name}},
		{"an unreadable block", seed{key: with(runs[0], layout.Run{Record: runs[1].Record, Last: runs[1].Last,
			Value: []byte{9}}, runs[2])}, []string{"event value " + event(1)}},
		{"another number", seed{key: with(runs[0], layout.Run{Record: runs[1].Record, Last: runs[1].Last + 1,
			Value: runs[1].Value}, runs[2])}, []string{
			"event event_missing e/" + keyspace.EventID(owner, at.Location, runs[1].Record,
				runs[1].Last+1), "event unlinked e/", "license event_missing " + license(1)}},
		{"one is in another owner's", seed{key: with(runs[0], runs[2]), foreign: with(runs[1])}, []string{
			"event owner_missing e/acct_foreign/l/", "event value e/" + keyspace.EventID(acct("foreign"), at.Location,
				runs[1].Record, runs[1].Last), "license event_missing " + license(1)}},
		{"taken apart", seed{key: nil, alone(0): runs[0].Value, alone(1): runs[1].Value, alone(2): runs[2].Value},
			[]string{
				"event unlinked e/", "license event_missing " + license(0), "license event_missing " + license(1),
				"license event_missing " + license(2)}},
		{"a number that no key of events can have", seed{key: with(runs[0], layout.Run{Record: runs[1].Record,
			Last: 1 << 40, Value: runs[1].Value}, runs[2])}, []string{"event value " + name}},
		{"no number of a block", seed{keyspace.BlockKey(owner, keyspace.Location{Epoch: at.Epoch, Block: 7}): value},
			[]string{"event key e/" + verify.Opaque(strings.TrimPrefix(keyspace.BlockKey(owner,
				keyspace.Location{Epoch: at.Epoch, Block: 7}), keyspace.InSlot(licensing.SlotOf(owner), "e/")))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer v.plant(maps.Clone(c.seed))()
			found := l.verified()
			slices.Sort(c.want)
			if diff := cmp.Diff(c.want, names(found)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, found)
			}
		})
	}
	if !bytes.Equal(value, v.value(key)) {
		t.Error("the block has changed")
	}
}

// TestVerifyBoundsBlocks puts the events of two blocks into one block.
func TestVerifyBoundsBlocks(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("bounded")
	changes := l.binds(layout.BlockRuns+1, owner)
	e := l.closeEpoch()
	l.store.fences.noteEpoch(e)
	l.together(changes)
	l.closeEpoch()
	v := &lab{t: t, store: l.store, client: l.store.etcd.Native}
	var runs []layout.Run
	var keys []string
	for _, entry := range l.entries(owner, e) {
		keys = append(keys, entry.Key(owner))
		runs = append(runs, kvtest.Must(layout.DecodeRuns(&entry, v.value(keys[len(keys)-1])))(t)...)
	}
	if len(keys) != 2 || len(runs) != layout.BlockRuns+1 {
		t.Fatalf("%d keys with %d records", len(keys), len(runs))
	}
	defer v.plant(seed{keys[0]: layout.EncodeBlock(runs), keys[1]: nil})()
	block := [licensing.LicenseBlockSize]byte([]byte(runs[layout.BlockRuns].Record[1:]))
	license := licensing.NewLicenseID(0, block).String()
	want := []string{"event runs e/" + keyspace.OwnerPath(owner), "event unlinked e/",
		"license event_missing l/" + license}
	got := names(l.verified())
	if len(got) != len(want) || !strings.HasPrefix(got[0], want[0]) || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("verify finds %q, want %q", got, want)
	}
}

// TestBlocksAreSwept: a sweep removes blocks like other events.
func TestBlocksAreSwept(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("swept")
	l.together(l.binds(20, owner))
	l.closeEpoch()
	ctx := t.Context()
	keep := store.EventRetention{Age: time.Hour, Bytes: 1 << 30}
	if removed, err := l.store.SweepEvents(ctx, kvtest.Time, keep); removed != 0 || err != nil {
		t.Fatalf("removed %d, %v", removed, err)
	}
	if removed, err := l.store.SweepEvents(ctx, kvtest.Time.Add(2*time.Hour), keep); removed == 0 || err != nil {
		t.Fatalf("removed %d, %v", removed, err)
	}
	left := kvtest.Must(l.store.etcd.Native.Get(ctx, keyspace.EventsOf(owner), clientv3.WithPrefix(),
		clientv3.WithCountOnly()))(t).Count
	if left != 0 {
		t.Errorf("%d keys are left", left)
	}
	l.readsWell(owner)
}
