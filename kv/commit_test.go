package kv

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// licenseOwner owns the licenses of newKey and newLicense.
var licenseOwner = licensing.Owner{AccountID: "acct_test", Mode: licensing.Test}

func newKey(t testing.TB) licensing.LicenseKey { return newKeyOf(t, licenseOwner) }

func newKeyOf(t testing.TB, owner licensing.Owner) licensing.LicenseKey {
	t.Helper()
	var entropy [keyring.LicenseKeyEntropy]byte
	if _, err := rand.Read(entropy[:]); err != nil {
		t.Fatal(err)
	}
	return kvtest.Keys.Mint("LIC", owner, entropy)
}

func newLicense(t testing.TB, maxDevices int) *licensing.License {
	t.Helper()
	terms := licensing.Terms{KeyPrefix: "LIC", MaxDevices: maxDevices}
	return terms.Issue(newKey(t), licenseOwner, "pro", "", kvtest.Time)
}

// createStored stores a license, and returns its snapshot with the entries of devices.
func createStored(t *testing.T, s *Store, devices ...string) (licensing.Ref, store.Snapshot) {
	t.Helper()
	l := newLicense(t, 0)
	ref := licensing.LicenseRef(l.Key)
	outcome, err := s.Commit(t.Context(),
		store.Change{Writes: []store.Write{{Ref: ref, Record: licensing.Record{License: l}}}})
	if err != nil || !outcome.Landed {
		t.Fatalf("create: %+v, %v", outcome, err)
	}
	return ref, loadOne(t, s, ref, devices...)
}

func loadOne(t *testing.T, s *Store, ref licensing.Ref, devices ...string) store.Snapshot {
	t.Helper()
	snapshots, err := s.Load(t.Context(), store.Want{Ref: ref, Devices: devices})
	if err != nil {
		t.Fatal(err)
	}
	return snapshots[0]
}

// keyOf returns the license key of a license of these tests: all have the same prefix.
func keyOf(ref licensing.Ref) licensing.LicenseKey { return ref.LicenseID().Key("LIC") }

// bind returns the change that activates a device on a snapshot.
func bind(t *testing.T, ref licensing.Ref, s store.Snapshot, device string) store.Change {
	t.Helper()
	cmd := licensing.Activate{Target: licensing.Target{Key: keyOf(ref)}, Device: device}
	if _, err := licensing.Apply(&s.Record, cmd, kvtest.Time); err != nil {
		t.Fatal(err)
	}
	return store.Change{Writes: []store.Write{{Ref: ref, Token: s.Token, Record: s.Record}}}
}

// TestSwapInDoubt drives one swap through every combination of what etcd did with its attempts and of its answers.
func TestSwapInDoubt(t *testing.T) {
	lost := rpctypes.ErrTimeout
	for _, c := range []struct {
		name   string
		faults []kvtest.Fault
		landed bool
		err    error
		stored bool // whether the device is bound in the end
	}{
		{name: "no fault", landed: true, stored: true},
		{name: "applied, answer lost", faults: []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost}}, landed: true,
			stored: true},
		{name: "not applied, answer lost", faults: []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: lost}},
			landed: true, stored: true},
		{name: "applied after the second attempt", faults: []kvtest.Fault{{Apply: kvtest.AppliedLate, Tell: lost}},
			landed: true, stored: true},
		{name: "every answer of three lost, first " +
			"applied", faults: []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost}, {Apply: kvtest.AppliedNever,
			Tell: lost}, {Apply: kvtest.AppliedNow, Tell: lost}}, landed: true, stored: true},
		{name: "no space, which etcd reports after applying",
			faults: []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: rpctypes.ErrNoSpace}}, landed: true, stored: true},
		{name: "refused", faults: []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTooManyRequests}},
			err: licensing.ErrUnavailable},
		{name: "rejected", faults: []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTooManyOps}},
			err: licensing.ErrInternal},
		{name: "in doubt, then refused: doubt is " +
			"sticky", faults: []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost}, {Apply: kvtest.AppliedNever,
			Tell: rpctypes.ErrTooManyRequests}}, err: licensing.ErrOutcomeUnknown, stored: true},
		{name: "in doubt, then " +
			"rejected", faults: []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost}, {Apply: kvtest.AppliedNever,
			Tell: rpctypes.ErrTooManyOps}}, err: licensing.ErrOutcomeUnknown, stored: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := faultyStore(t, nil)
			s.etcd.Remote.(*kvtest.FaultyKV).Next = kvtest.Script()
			ref, snapshot := createStored(t, s, "a")
			s.etcd.Remote.(*kvtest.FaultyKV).Next = kvtest.Script(c.faults...)
			outcome, err := s.Commit(t.Context(), bind(t, ref, snapshot, "a"))
			if outcome.Landed != c.landed || !errors.Is(err, c.err) {
				t.Fatalf("got landed %v, %v; want %v, %v", outcome.Landed, err, c.landed, c.err)
			}
			after := loadOne(t, s, ref, "a")
			if after.Record.Devices["a"].Bound != c.stored {
				t.Errorf("bound is %v, want %v", !c.stored, c.stored)
			}
			checkVersions(t, ref, map[bool]int64{true: 2, false: 1}[c.stored])
		})
	}
}

// checkVersions checks how often a record was written: a swap that is sent again must land once.
func checkVersions(t *testing.T, ref licensing.Ref, want int64) {
	t.Helper()
	response, err := server.Client.Get(t.Context(), keyspace.RecordKey(ref))
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Kvs[0].Version; got != want {
		t.Errorf("the record was written %d times, want %d", got, want)
	}
}

// rivals lets n other writers swap the record, one after the other, right after the current attempt.
func rivals(t *testing.T, ref licensing.Ref, n int) {
	t.Helper()
	for i := range n {
		rival := faultyStore(t, kvtest.Script())
		device := string(rune('A' + i))
		outcome, err := rival.Commit(t.Context(),
			bind(t, ref, loadOne(t, rival, ref, device), device))
		if err != nil || !outcome.Landed {
			t.Fatalf("rival %d: %+v, %v", i, outcome, err)
		}
	}
}

// TestSwapInDoubtAmongRivals loses the answer of a swap, lets others write, and checks that the record's writers show
// whose swap landed.
func TestSwapInDoubtAmongRivals(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  kvtest.Applied
		rivals int
		long   int // how many others wrote before
		landed bool
		err    error
	}{
		{name: "ours was first", first: kvtest.AppliedNow, rivals: 1, landed: true},
		{name: "ours was first, seven after it", first: kvtest.AppliedNow, rivals: 7, landed: true},
		{name: "ours was first, eight after it: evicted", first: kvtest.AppliedNow, rivals: 8,
			err: licensing.ErrOutcomeUnknown},
		{name: "ours was never made", first: kvtest.AppliedNever, rivals: 1},
		{name: "ours was never made, and the creator's entry shows it", first: kvtest.AppliedNever, rivals: 7},
		{name: "ours was never made, but nothing tells", first: kvtest.AppliedNever, rivals: 8,
			err: licensing.ErrOutcomeUnknown},
		{name: "a table full from long ago tells all the same", first: kvtest.AppliedNever, rivals: 1, long: 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := faultyStore(t, nil)
			faulty := s.etcd.Remote.(*kvtest.FaultyKV)
			faulty.Next = kvtest.Script()
			ref, _ := createStored(t, s)
			rivals(t, ref, c.long)
			snapshot := loadOne(t, s, ref, "a")
			calls := 0
			faulty.Next = func() kvtest.Fault {
				if calls++; calls == 1 {
					return kvtest.Fault{Apply: c.first, Tell: rpctypes.ErrTimeout}
				}
				if calls == 2 {
					rivals(t, ref, c.rivals)
				}
				return kvtest.Fault{}
			}
			outcome, err := s.Commit(t.Context(), bind(t, ref, snapshot, "a"))
			if outcome.Landed != c.landed || !errors.Is(err, c.err) {
				t.Fatalf("got landed %v, %v; want %v, %v", outcome.Landed, err, c.landed, c.err)
			}
			if err == nil && !outcome.Landed {
				rival := outcome.Rivals[0].Record
				if rival.License.CurrentDevices != max(c.rivals, c.long) || rival.Devices["a"].Bound {
					t.Errorf("the rival has %d devices, a bound: %v", rival.License.CurrentDevices,
						rival.Devices["a"].Bound)
				}
			}
		})
	}
}

// TestDoubtUntilTheEnd never gets an answer: Commit returns "outcome unknown" within the deadline, whatever happened.
func TestDoubtUntilTheEnd(t *testing.T) {
	s := faultyStore(t, nil)
	faulty := s.etcd.Remote.(*kvtest.FaultyKV)
	faulty.Next = kvtest.Script()
	ref, snapshot := createStored(t, s, "a")
	faulty.Next = func() kvtest.Fault { return kvtest.Fault{Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTimeout} }
	_, err := s.Commit(kvtest.Context(t, 100*time.Millisecond), bind(t, ref, snapshot, "a"))
	if !errors.Is(err, licensing.ErrOutcomeUnknown) {
		t.Fatalf("got %v, want ErrOutcomeUnknown", err)
	}
}

// TestDoubtThenFull loses the answer of a swap that landed, and then finds the batcher full: the swap stays in doubt.
func TestDoubtThenFull(t *testing.T) {
	s := faultyStore(t, nil)
	faulty := s.etcd.Remote.(*kvtest.FaultyKV)
	faulty.Next = kvtest.Script()
	ref, snapshot := createStored(t, s, "a")
	faulty.Next = func() kvtest.Fault {
		s.writes.mu.Lock()
		defer s.writes.mu.Unlock()
		s.writes.few, s.writes.most, s.writes.waiting = 0, 0, make([]*batchItem, maxWaiting)
		return kvtest.Fault{Apply: kvtest.AppliedNow, Tell: rpctypes.ErrTimeout}
	}
	_, err := s.Commit(t.Context(), bind(t, ref, snapshot, "a"))
	var failure *licensing.Error
	if !errors.As(err, &failure) || failure.Reason != licensing.ReasonOutcomeUnknown {
		t.Errorf("got %v, want ErrOutcomeUnknown", err)
	}
}

// TestCreationInDoubt loses the answer to a creation that was made.
func TestCreationInDoubt(t *testing.T) {
	s := faultyStore(t, kvtest.Script(kvtest.Fault{Apply: kvtest.AppliedNow, Tell: rpctypes.ErrTimeout}))
	l := newLicense(t, 3)
	outcome, err := s.Commit(t.Context(), store.Change{Writes: []store.Write{
		{Ref: licensing.LicenseRef(l.Key), Record: licensing.Record{License: l}},
	}})
	if err != nil || !outcome.Landed {
		t.Fatalf("got %+v, %v; want landed", outcome, err)
	}
}

// TestGrantInDoubt loses the answer to a change whose first record is a product. A product contains its writers as any
// record does.
func TestGrantInDoubt(t *testing.T) {
	s := faultyStore(t, kvtest.Script(kvtest.Fault{Apply: kvtest.AppliedNow, Tell: rpctypes.ErrTimeout}))
	l := newLicense(t, 3)
	product := &licensing.Product{ID: "pro " + l.Key.String(), Owner: l.Owner, Terms: licensing.DefaultTerms(),
		CreatedAt: kvtest.Time}
	outcome, err := s.Commit(t.Context(), store.Change{Writes: []store.Write{
		{Ref: licensing.ProductRef(l.Owner, product.ID), Record: licensing.Record{Product: product}},
		{Ref: licensing.LicenseRef(l.Key), Record: licensing.Record{License: l}},
	}})
	if err != nil || !outcome.Landed {
		t.Fatalf("got %+v, %v; want landed", outcome, err)
	}
}

// resendKV sends every write twice, as etcd's client may by itself.
type resendKV struct{ etcdserverpb.KVClient }

func (r *resendKV) Txn(
	ctx context.Context, request *etcdserverpb.TxnRequest, opts ...grpc.CallOption,
) (*etcdserverpb.TxnResponse, error) {
	if kvtest.IsWrite(request) {
		if _, err := r.KVClient.Txn(ctx, request, opts...); err != nil {
			return nil, err
		}
	}
	return r.KVClient.Txn(ctx, request, opts...)
}

// TestHiddenResend loses a swap to an earlier copy of the swap that the store does not know of.
func TestHiddenResend(t *testing.T) {
	s := faultyStore(t, kvtest.Script())
	s.etcd.Remote = &resendKV{s.etcd.Remote}
	ref, snapshot := createStored(t, s, "a")
	outcome, err := s.Commit(t.Context(), bind(t, ref, snapshot, "a"))
	if err != nil || !outcome.Landed {
		t.Errorf("got %+v, %v; want landed", outcome, err)
	}
}

func TestFindSwap(t *testing.T) {
	me := layout.Writer{By: store.Incarnation{1}, Swap: 7}
	others := func(n int) (ws []layout.Writer) {
		for i := range n {
			ws = append(ws, layout.Writer{By: store.Incarnation{byte(100 + i)}, Swap: 7})
		}
		return ws
	}
	f := func(name string, writers, before []layout.Writer, want layout.Verdict) {
		t.Helper()
		if got := layout.FindSwap(writers, before, me); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
	f("no writer", nil, nil, layout.SwapAbsent)
	f("ours", []layout.Writer{me}, nil, layout.SwapLanded)
	f("ours behind seven", append(others(7), me), nil, layout.SwapLanded)
	f("an earlier one of ours", []layout.Writer{{By: me.By, Swap: 6}}, nil, layout.SwapAbsent)
	f("seven others", others(7), nil, layout.SwapAbsent)
	f("eight others", others(8), nil, layout.SwapEvicted)
	f("eight others, one of them from before", others(8), others(1), layout.SwapAbsent)
	f("eight others, one of which has written again", others(8), []layout.Writer{{By: store.Incarnation{100}, Swap: 6}},
		layout.SwapEvicted)

	var table []layout.Writer
	for i := range 10 {
		table = layout.WithWriter(table, layout.Writer{By: store.Incarnation{byte(i)}, Swap: uint64(i)})
	}
	table = layout.WithWriter(table, layout.Writer{By: store.Incarnation{5}, Swap: 99})
	if len(table) != layout.MaxWriters || table[0] != (layout.Writer{By: store.Incarnation{5}, Swap: 99}) ||
		table[1].By != (store.Incarnation{9}) || table[7].By != (store.Incarnation{2}) {
		t.Errorf("table %v", table)
	}
}

// TestProductInDoubt loses the answer to each change of a product, which etcd has applied or not: the change is stored
// once, and Commit reports that it landed.
func TestProductInDoubt(t *testing.T) {
	owner := licensing.Owner{AccountID: "acct_" + rand.Text(), Mode: licensing.Live}
	ref := licensing.ProductRef(owner, "pro")
	for _, how := range []kvtest.Applied{kvtest.AppliedNow, kvtest.AppliedNever} {
		for _, name := range []string{"first", "second", ""} {
			s := faultyStore(t, kvtest.Script(kvtest.Fault{Apply: how, Tell: rpctypes.ErrTimeout}))
			write := store.Write{Ref: ref, Token: loadOne(t, s, ref).Token}
			if name != "" {
				write.Record.Product = &licensing.Product{ID: "pro", Owner: owner, Name: name,
					Terms: licensing.DefaultTerms(), CreatedAt: kvtest.Time}
			}
			outcome, err := s.Commit(t.Context(), store.Change{Writes: []store.Write{write}})
			if err != nil || !outcome.Landed {
				t.Fatalf("%q: got %+v, %v; want landed", name, outcome, err)
			}
			if got := loadOne(t, s, ref).Record.Product; (got == nil) != (name == "") || got != nil &&
				got.Name != name {
				t.Fatalf("%q: stored is %+v", name, got)
			}
		}
	}
}

// TestRemovalLostForCertain loses a removal to another removal, with no answer lost: the removal has not landed.
func TestRemovalLostForCertain(t *testing.T) {
	owner := licensing.Owner{AccountID: "acct_" + rand.Text(), Mode: licensing.Live}
	ref := licensing.ProductRef(owner, "pro")
	s := openStore(t)
	commit := func(write store.Write) bool {
		t.Helper()
		outcome, err := s.Commit(t.Context(), store.Change{Writes: []store.Write{write}})
		if err != nil {
			t.Fatal(err)
		}
		return outcome.Landed
	}
	product := &licensing.Product{ID: "pro", Owner: owner, Terms: licensing.DefaultTerms(), CreatedAt: kvtest.Time}
	if !commit(store.Write{Ref: ref, Record: licensing.Record{Product: product}}) {
		t.Fatal("the product was not created")
	}
	removal := store.Write{Ref: ref, Token: loadOne(t, s, ref).Token}
	if !commit(removal) || commit(removal) {
		t.Error("the product was not removed exactly once")
	}
}
