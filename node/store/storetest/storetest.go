package storetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/oklog/ulid/v2"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// Run checks a store against the contract of store.Store. open returns the store to test. The tests
// share only the store, and leave their records behind.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, fixture)
	}{
		{"absent records", testAbsent},
		{"create and load", testCreate},
		{"creating what exists is lost", testCreateExisting},
		{"a stale swap is lost and brings the rival back", testStaleSwap},
		{"all writes or none", testAllOrNone},
		{"products are made, replaced and removed", testProducts},
		{"versions of terms stay", testTerms},
		{"revocations are listed and removed", testRevocations},
		{"how far a payment provider's events are read is swapped", testProviderEvents},
		{"endpoints of webhooks are made, changed and removed", testWebhooks},
		{"metadata changes along with its license", testMetadata},
		{"an alias is made once, along with its license", testAlias},
		{"settings are made and changed", testSettings},
		{"paying stores order and license together", testIssue},
		{"an order for many licenses gets each once", testIssueMany},
		{"an order and its license change together", testTogether},
		{"what is due is found by time", testDue},
		{"devices inline and spilled", testDevices},
		{"leases are found once they have lapsed", testLeases},
		{"devices are found that were not seen for longest", testInactive},
		{"a device keeps its slot under a new id", testChangedDevice},
		{"a change of nothing is a swap all the same", testUnchanged},
		{"what has changed is not confirmed", testConfirm},
		{"a page covers every device once", testPages},
		{"many licenses are read as one is", testReadMany},
		{"concurrent swaps lose no update", testConcurrent},
		{"a context that has ended changes nothing", testEnded},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.test(t, fixture{t: t, store: open(t), keys: Keys()})
		})
	}
}

// Keys makes the license keys of tests.
func Keys() keyring.LicenseKeys {
	return keyring.NewLicenseKeys(keyring.NewKeyCheck([]byte("check key")),
		keyring.NewIDKey([keyring.IDKeySize]byte([]byte("id key of a test"))))
}

// RunClaims checks the claims of a store. A sweep removes the claims of all owners, so no other test
// may create claims on the same server at the same time.
func RunClaims(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("claims are made once, and swept by age", func(t *testing.T) {
		testClaims(t, fixture{t: t, store: open(t), keys: Keys()})
	})
}

// EventfulStore is a store that also reads the events that it records.
type EventfulStore interface {
	store.Store
	store.Events

	// CloseEpoch makes all events that were recorded before the call appear in the feeds.
	CloseEpoch(ctx context.Context) error
}

// RunEvents checks the events that a store records. open returns a store that records the activations
// of every owner, or of none.
func RunEvents(t *testing.T, open func(t *testing.T, recordActivations bool) EventfulStore) {
	for _, recordActivations := range []bool{false, true} {
		t.Run(fmt.Sprintf("recorded events are read, with activations: %v", recordActivations), func(t *testing.T) {
			store := open(t, recordActivations)
			testEvents(t, fixture{t: t, store: store, keys: Keys()}, store,
				recordActivations)
		})
	}
}

// RunSubscriptions checks the events of activations while an endpoint subscribes to them. A change of
// a license that was prepared before the subscription conflicts, for any owner of the license, so no other
// test may change a license on the same server at the same time. open is as in RunEvents.
func RunSubscriptions(t *testing.T, open func(t *testing.T, recordActivations bool) EventfulStore) {
	for _, recordActivations := range []bool{false, true} {
		t.Run(fmt.Sprintf("subscribers get activations, all owners: %v", recordActivations), func(t *testing.T) {
			store := open(t, recordActivations)
			testListening(t, fixture{t: t, store: store, keys: Keys()}, store,
				recordActivations)
		})
	}
}

// fixture makes records that no other test knows of.
type fixture struct {
	t     *testing.T
	store store.Store
	keys  keyring.LicenseKeys
}

var created = time.Date(2026, 11, 20, 11, 12, 13, 456e6, time.UTC)

func (f fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	f.t.Cleanup(cancel)
	return ctx
}

func (f fixture) owner() licensing.Owner {
	return licensing.Owner{AccountID: "acct_" + ulid.Make().String(), Mode: licensing.Test}
}

func (f fixture) key(owner licensing.Owner) licensing.LicenseKey {
	return f.keys.Mint("LIC", owner, f.entropy())
}

// entropy returns random bytes. A key depends on the slot of its owner and on these bytes: the same bytes would make
// the same key for the owner of another test, if both owners are in one of the 1,024 slots.
func (f fixture) entropy() (random [keyring.LicenseKeyEntropy]byte) {
	f.t.Helper()
	if _, err := rand.Read(random[:]); err != nil {
		f.t.Fatal(err)
	}
	return random
}

func (f fixture) license(maxDevices int) *licensing.License {
	return f.licenseOf(f.owner(), maxDevices)
}

func (f fixture) licenseOf(owner licensing.Owner, maxDevices int) *licensing.License {
	terms := licensing.Terms{KeyPrefix: "LIC", MaxDevices: maxDevices}
	return terms.Issue(f.key(owner), owner, "pro", "", created)
}

func (f fixture) order(owner licensing.Owner) *licensing.Order {
	return &licensing.Order{
		OrderNo: licensing.NewOrderNo(owner, ulid.Make().String()), Owner: owner,
		ProductID: "pro", OrderPayment: licensing.OrderPayment{Amount: 4900, Currency: "USD"},
		Description: "one seat", BuyerEmail: "ada@example.com", Metadata: `{"cart":[1,2]}`,
		SuccessURL: "https://shop.example/thanks", PayHash: keyring.HashPayToken("token"),
		Terms: licensing.Terms{KeyPrefix: "PRO", MaxDevices: 5, Validity: licensing.Period{Years: 1},
			FromActivation: true},
		CreatedAt: created, ExpiresAt: created.Add(24 * time.Hour),
	}
}

func (f fixture) commit(writes ...store.Write) store.Outcome {
	f.t.Helper()
	outcome, err := f.store.Commit(f.context(), store.Change{Writes: writes})
	if err != nil {
		f.t.Fatalf("Commit: %v", err)
	}
	return outcome
}

func (f fixture) mustLand(writes ...store.Write) {
	f.t.Helper()
	outcome := f.commit(writes...)
	if outcome.Landed {
		return
	}
	for i, rival := range outcome.Rivals {
		ref := writes[i].Ref
		f.t.Logf("%v %q was read as %+v, and now is %+v", ref.Kind, ref.ID, writes[i].Token, rival.Token)
	}
	f.t.Fatal("Commit: the swap was lost")
}

func (f fixture) load(ref licensing.Ref, devices ...string) store.Snapshot {
	f.t.Helper()
	snapshots, err := f.store.Load(f.context(), store.Want{Ref: ref, Devices: devices})
	if err != nil {
		f.t.Fatalf("Load: %v", err)
	}
	return snapshots[0]
}

// rival is what a swap of one record was lost to.
func (f fixture) rival(outcome store.Outcome, ref licensing.Ref, devices ...string) store.Snapshot {
	f.t.Helper()
	if len(outcome.Rivals) > 0 {
		return outcome.Rivals[0]
	}
	return f.load(ref, devices...)
}

func (f fixture) createLicense(maxDevices int) *licensing.License {
	f.t.Helper()
	l := f.license(maxDevices)
	f.mustLand(store.Write{Ref: licensing.LicenseRef(l.Key), Record: licensing.Record{License: l, Changed: true}})
	return l
}

// activate binds devices in one change, on a fresh snapshot.
func (f fixture) activate(l *licensing.License, now time.Time, devices ...string) {
	f.t.Helper()
	snapshot := f.load(licensing.LicenseRef(l.Key), devices...)
	f.apply(&snapshot.Record, l, now, devices...)
	f.mustLand(store.Write{Ref: licensing.LicenseRef(l.Key), Token: snapshot.Token, Record: snapshot.Record})
}

func (f fixture) apply(record *licensing.Record, l *licensing.License, now time.Time, devices ...string) {
	f.t.Helper()
	record.ActsByTime = true
	for _, id := range devices {
		cmd := licensing.Activate{Target: licensing.Target{Key: l.Key}, Device: id, Name: "name of " + id, Named: true}
		if _, err := licensing.Apply(record, cmd, now); err != nil {
			f.t.Fatalf("activate %s: %v", id, err)
		}
	}
}

func (f fixture) remove(l *licensing.License, device string) {
	f.t.Helper()
	snapshot := f.load(licensing.LicenseRef(l.Key), device)
	cmd := licensing.RemoveDevice{Target: licensing.Target{Key: l.Key}, Device: device}
	result, err := licensing.Apply(&snapshot.Record, cmd, created)
	if err != nil || !result.Removed {
		f.t.Fatalf("remove %s: %v, %v", device, result.Removed, err)
	}
	f.mustLand(store.Write{Ref: licensing.LicenseRef(l.Key), Token: snapshot.Token, Record: snapshot.Record})
}

func (f fixture) equal(what string, got, want any) {
	f.t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		f.t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func deviceNames(from, to int) []string {
	var names []string
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("device-%d", i))
	}
	return names
}
