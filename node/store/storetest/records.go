package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

func testAbsent(t *testing.T, f fixture) {
	owner := f.owner()
	key := f.key(owner)
	order := f.order(owner)
	snapshots, err := f.store.Load(f.context(),
		store.Want{Ref: licensing.LicenseRef(key), Devices: []string{"a"}},
		store.Want{Ref: licensing.OrderRef(owner, order.OrderNo)},
		store.Want{Ref: licensing.ProductRef(owner, "pro")})
	if err != nil {
		t.Fatal(err)
	}
	for i, snapshot := range snapshots {
		if snapshot.Token != nil || snapshot.Record.License != nil || snapshot.Record.Order != nil ||
			snapshot.Record.Product != nil {
			t.Errorf("snapshot %d of nothing is %+v", i, snapshot)
		}
	}
	if view, err := f.store.ReadLicense(f.context(), key, store.DevicePage{Limit: 10}); err != nil || view != nil {
		t.Errorf("ReadLicense of nothing: %v, %v", view, err)
	}
	if owner, found, err := f.store.OrderOwner(f.context(), order.OrderNo); err != nil || found {
		t.Errorf("OrderOwner of nothing: %v, %v, %v", owner, found, err)
	}
	if key, err := f.store.APIKey(f.context(), [32]byte{1}); err != nil || key != nil {
		t.Errorf("APIKey of nothing: %v, %v", key, err)
	}
	if err := f.store.Ping(f.context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
}

func testCreate(t *testing.T, f fixture) {
	owner := f.owner()
	order, l := f.order(owner), f.license(3)
	l.Validity = licensing.Period{Months: 6, Clock: time.Hour}
	l.SuspendedAt, l.AllowedOver = created.Add(time.Second), 4
	product := &licensing.Product{ID: "pro", Owner: owner, Terms: order.Terms, CreatedAt: created}
	f.mustLand(
		store.Write{Ref: licensing.OrderRef(owner, order.OrderNo), Record: licensing.Record{Order: order}},
		store.Write{Ref: licensing.ProductRef(owner, "pro"), Record: licensing.Record{Product: product}})
	f.mustLand(store.Write{Ref: licensing.LicenseRef(l.Key),
		Record: licensing.Record{License: l, Metadata: &licensing.Metadata{Object: `{"a":1}`, Changed: true}}})

	snapshots, err := f.store.Load(f.context(),
		store.Want{Ref: licensing.ProductRef(owner, "pro")},
		store.Want{Ref: licensing.LicenseRef(l.Key), Devices: []string{"x", "y"}},
		store.Want{Ref: licensing.OrderRef(owner, order.OrderNo)})
	if err != nil {
		t.Fatal(err)
	}
	f.equal("product", snapshots[0].Record.Product, product)
	f.equal("license", snapshots[1].Record.License, l)
	f.equal("devices", snapshots[1].Record.Devices, licensing.Devices{
		"x": {Device: licensing.Device{ID: "x"}}, "y": {Device: licensing.Device{ID: "y"}},
	})
	f.equal("order", snapshots[2].Record.Order, order)

	got, found, err := f.store.OrderOwner(f.context(), order.OrderNo)
	if err != nil || !found || got != owner {
		t.Errorf("OrderOwner: %v, %v, %v; want %v", got, found, err, owner)
	}
	other := licensing.Owner{AccountID: owner.AccountID, Mode: licensing.Live}
	if s := f.load(licensing.OrderRef(other, order.OrderNo)); s.Record.Order != nil {
		t.Error("the order is visible in the other mode")
	}
	view, err := f.store.ReadLicense(f.context(), l.Key, store.DevicePage{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	f.equal("view", view, &store.LicenseView{License: *l, Metadata: licensing.Metadata{Object: `{"a":1}`}})
}

func testCreateExisting(t *testing.T, f fixture) {
	l := f.createLicense(3)
	outcome := f.commit(store.Write{Ref: licensing.LicenseRef(l.Key), Record: licensing.Record{License: f.license(9)}})
	if outcome.Landed {
		t.Fatal("a second creation landed")
	}
	f.equal("rival", outcome.Rivals[0].Record.License, l)
}

func testStaleSwap(t *testing.T, f fixture) {
	l := f.createLicense(3)
	ref := licensing.LicenseRef(l.Key)
	stale := f.load(ref, "b", "a")
	f.activate(l, created.Add(time.Second), "a")

	f.apply(&stale.Record, l, created.Add(2*time.Second), "b")
	outcome := f.commit(store.Write{Ref: ref, Token: stale.Token, Record: stale.Record})
	if outcome.Landed {
		t.Fatal("a swap on a stale revision landed")
	}
	rival := outcome.Rivals[0]
	if !rival.Record.Devices["a"].Bound || rival.Record.Devices["b"].Bound || rival.Record.License.CurrentDevices != 1 {
		t.Fatalf("the rival is %+v with devices %+v", rival.Record.License, rival.Record.Devices)
	}
	f.apply(&rival.Record, l, created.Add(3*time.Second), "b")
	f.mustLand(store.Write{Ref: ref, Token: rival.Token, Record: rival.Record})
	if got := f.load(ref).Record.License.CurrentDevices; got != 2 {
		t.Errorf("current_devices is %d, want 2", got)
	}
}

func testAllOrNone(t *testing.T, f fixture) {
	owner := f.owner()
	product := &licensing.Product{ID: "pro", Owner: owner, Terms: licensing.DefaultTerms(), CreatedAt: created}
	write := store.Write{Ref: licensing.ProductRef(owner, "pro"), Record: licensing.Record{Product: product}}
	first, second := f.order(owner), f.order(owner)
	f.mustLand(store.Write{Ref: licensing.OrderRef(owner, first.OrderNo), Record: licensing.Record{Order: first}},
		write)

	outcome := f.commit(store.Write{Ref: licensing.OrderRef(owner, second.OrderNo),
		Record: licensing.Record{Order: second}}, write)
	if outcome.Landed {
		t.Fatal("a change landed though one of its writes had lost")
	}
	f.equal("the write that lost", outcome.Rivals[1].Record.Product, product)
	if s := f.load(licensing.OrderRef(owner, second.OrderNo)); s.Record.Order != nil {
		t.Error("the other write was made")
	}
	if _, found, _ := f.store.OrderOwner(f.context(), second.OrderNo); found {
		t.Error("the order's owner was written")
	}
}

func testIssue(t *testing.T, f fixture) {
	owner := f.owner()
	order := f.order(owner)
	ref := licensing.OrderRef(owner, order.OrderNo)
	f.mustLand(store.Write{Ref: ref, Record: licensing.Record{Order: order}})
	snapshot := f.load(ref)
	stale := store.Snapshot{Record: snapshot.Record.Clone(), Token: snapshot.Token}
	key, loser := f.key(owner), f.key(owner)
	pay := func(s *store.Snapshot, key licensing.LicenseKey) store.Write {
		if _, err := licensing.Apply(&s.Record, licensing.PayOrder{Payment: "p1", Terms: order.Terms, Key: key},
			created); err != nil {
			t.Fatal(err)
		}
		return store.Write{Ref: ref, Token: s.Token, Record: s.Record}
	}
	f.mustLand(pay(&snapshot, key))
	if f.commit(pay(&stale, loser)).Landed {
		t.Fatal("the order was paid twice")
	}
	paid := f.load(ref).Record.Order
	f.equal("paid order", paid, snapshot.Record.Order)
	if paid.LicenseKey != key {
		t.Errorf("license key %s, want %s", paid.LicenseKey, key)
	}
	if issued := snapshot.Record.Issued; len(issued) == 1 {
		f.equal("license", f.load(licensing.LicenseRef(key)).Record.License, issued[0])
	} else {
		t.Errorf("%d licenses are issued", len(issued))
	}
	if s := f.load(licensing.LicenseRef(loser)); s.Record.License != nil {
		t.Error("the lost payment left a license behind")
	}
}

// testIssueMany pays an order for as many licenses as a change may issue, with ends and events, and issues as many
// again, twice at the same time: each license exists once.
func testIssueMany(t *testing.T, f fixture) {
	owner := f.owner()
	order := f.order(owner)
	order.Quantity = 2*store.MaxNewLicenses + 1
	ref := licensing.OrderRef(owner, order.OrderNo)
	f.mustLand(store.Write{Ref: ref, Record: licensing.Record{Order: order}})
	order.Terms.Validity = licensing.Period{Months: 1}
	keys := make([]licensing.LicenseKey, order.Quantity)
	for i := range keys {
		keys[i] = f.key(owner)
	}
	apply := func(cmd licensing.Command) store.Write {
		s := f.load(ref)
		if _, err := licensing.Apply(&s.Record, cmd, created); err != nil {
			t.Fatal(err)
		}
		return store.Write{Ref: ref, Token: s.Token, Record: s.Record}
	}
	pay := licensing.PayOrder{Payment: "p1", Terms: order.Terms, Key: keys[0], Seed: licensing.KeySeed{1},
		More: keys[1:store.MaxNewLicenses]}
	f.mustLand(apply(pay))
	next := licensing.IssueLicenses{From: store.MaxNewLicenses,
		Keys: keys[store.MaxNewLicenses : 2*store.MaxNewLicenses]}
	first, second := apply(next), apply(next)
	f.mustLand(first)
	if f.commit(second).Landed {
		t.Error("the same licenses were issued twice")
	}
	for i, key := range keys {
		l := f.load(licensing.LicenseRef(key)).Record.License
		if issued := i < 2*store.MaxNewLicenses; (l != nil) != issued || issued && l.OrderNo != order.OrderNo {
			t.Errorf("license %d is %+v", i, l)
		}
	}
	if o := f.load(ref).Record.Order; o.LicensesIssued != 2*store.MaxNewLicenses || o.KeySeed != pay.Seed {
		t.Errorf("the order has %d licenses, and the seed %x", o.LicensesIssued, o.KeySeed)
	}
	f.due(licensing.DueIssue, created, 10, ref)
}

func testClaims(t *testing.T, f fixture) {
	owner := f.owner()
	ref := licensing.ClaimRef(owner, "0123456789abcdef")
	claims := []licensing.Claim{
		{Fingerprint: [32]byte{6}, CreatedAt: created, Redaction: &licensing.Redaction{}},
		{Fingerprint: [32]byte{7}, CreatedAt: created,
			Redaction: &licensing.Redaction{Orders: 214, Licenses: 200, Complete: true}},
		{Fingerprint: [32]byte{1}, CreatedAt: created, OrderNo: "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A"},
		{Fingerprint: [32]byte{2}, CreatedAt: created.Add(time.Hour), Grant: &licensing.GrantProgress{
			Seed: [32]byte{3}, Terms: licensing.Terms{KeyPrefix: "LIC", MaxDevices: 3,
				Validity: licensing.Period{Years: 1}}, Quantity: 1000, Done: 32}},
		{Fingerprint: [32]byte{4}, CreatedAt: created.Add(2 * time.Hour), Refusal: licensing.ErrPaymentNotConfigured},
		{Fingerprint: [32]byte{5}, CreatedAt: created.Add(3 * time.Hour), LicenseKey: f.key(owner)},
	}
	var token store.Token
	for i := range claims {
		write := store.Write{Ref: ref, Token: token, Record: licensing.Record{Claim: &claims[i]}}
		f.mustLand(write)
		if f.commit(write).Landed {
			t.Fatal("the same claim was made twice")
		}
		snapshot := f.load(ref)
		f.equal("claim", snapshot.Record.Claim, &claims[i])
		token = snapshot.Token
	}
	other := licensing.ClaimRef(licensing.Owner{AccountID: owner.AccountID, Mode: licensing.Live}, ref.ID)
	if s := f.load(other); s.Record.Claim != nil {
		t.Error("the claim is visible in the other mode")
	}

	// Of the claim's four entries by age three are due, but the claim is not: it was stored again.
	f.sweep(created.Add(3 * time.Hour))
	if s := f.load(ref); s.Record.Claim == nil {
		t.Error("a claim was swept too early")
	}
	f.sweep(created.Add(3*time.Hour + time.Millisecond))
	if s := f.load(ref); s.Record.Claim != nil {
		t.Error("a claim was left by the sweep")
	}
}

// sweep removes claims until none is due. Other tests' claims may be swept
// along, and a sweep whose answer was lost is made again.
func (f fixture) sweep(before time.Time) {
	f.t.Helper()
	for {
		swept, err := f.store.SweepClaims(f.context(), before)
		if err != nil && !errors.Is(err, licensing.ErrOutcomeUnknown) {
			f.t.Fatal(err)
		}
		if err == nil && swept == 0 {
			return
		}
	}
}

func testConcurrent(t *testing.T, f fixture) {
	const writers, each = 8, 10
	l := f.createLicense(0)
	ref := licensing.LicenseRef(l.Key)
	ctx := f.context()
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for _, device := range deviceNames(w*each, (w+1)*each) {
				snapshots, err := f.store.Load(ctx, store.Want{Ref: ref, Devices: []string{device}})
				if err != nil {
					t.Errorf("Load: %v", err)
					return
				}
				for snapshot := snapshots[0]; ; {
					cmd := licensing.Activate{Target: licensing.Target{Key: l.Key}, Device: device}
					if _, err := licensing.Apply(&snapshot.Record, cmd, created); err != nil {
						t.Errorf("activate: %v", err)
						return
					}
					outcome, err := f.store.Commit(ctx,
						store.Change{Writes: []store.Write{{Ref: ref, Token: snapshot.Token, Record: snapshot.Record}}})
					if err != nil {
						t.Errorf("Commit: %v", err)
						return
					}
					if outcome.Landed {
						break
					}
					snapshot = f.rival(outcome, ref, device)
				}
			}
		})
	}
	group.Wait()
	view, err := f.store.ReadLicense(ctx, l.Key, store.DevicePage{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if view.License.CurrentDevices != writers*each || len(view.Devices) != writers*each {
		t.Errorf("current_devices %d, entries %d; want %d", view.License.CurrentDevices, len(view.Devices),
			writers*each)
	}
}

// testUnchanged swaps unchanged records, with few devices and with many, at the same time.
func testUnchanged(t *testing.T, f fixture) {
	var group sync.WaitGroup
	for _, count := range []int{0, 3, 40} {
		l := f.createLicense(0)
		devices := deviceNames(0, count)
		if count > 0 {
			f.activate(l, created, devices...)
		}
		ref := licensing.LicenseRef(l.Key)
		for _, touched := range [][]string{nil, devices} {
			snapshot := f.load(ref, touched...)
			group.Go(func() {
				outcome, err := f.store.Commit(f.context(),
					store.Change{Writes: []store.Write{{Ref: ref, Token: snapshot.Token, Record: snapshot.Record}}})
				if err != nil {
					t.Errorf("%d devices: %v", count, err)
				}
				if rival := f.rival(outcome, ref).Record.License; rival == nil || rival.CurrentDevices != count {
					t.Errorf("%d devices: afterwards %+v", count, rival)
				}
			})
		}
	}
	group.Wait()
}

// testConfirm changes records behind the back of a guess. A store need not
// remember anything, nor be able to tell; but it must not confirm what is wrong.
func testConfirm(t *testing.T, f fixture) {
	for _, count := range []int{2, 40} {
		for _, c := range []struct {
			name   string
			change func(*licensing.License)
		}{
			{"a device more", func(l *licensing.License) { f.activate(l, created, "new") }},
			{"a device less", func(l *licensing.License) { f.remove(l, "device-0") }},
			{"a device less, and back again",
				func(l *licensing.License) { f.remove(l, "device-0"); f.activate(l, created, "device-0") }},
		} {
			l := f.createLicense(0)
			f.activate(l, created, deviceNames(0, count)...)
			ref := licensing.LicenseRef(l.Key)
			guess, _, ok := f.store.Recall(store.Want{Ref: ref, Devices: []string{"device-0", "new"}})
			if !ok {
				continue
			}
			if _, err := f.store.Confirm(f.context(), ref, guess.Token); err != nil {
				t.Errorf("%d devices: Confirm: %v", count, err)
			}
			c.change(l)
			if still, err := f.store.Confirm(f.context(), ref, guess.Token); still || err != nil {
				t.Errorf("%d devices, %s: Confirm says %v, %v", count, c.name, still, err)
			}
		}
	}
}

func testEnded(t *testing.T, f fixture) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l := f.license(3)
	_, err := f.store.Commit(ctx, store.Change{Writes: []store.Write{
		{Ref: licensing.LicenseRef(l.Key), Record: licensing.Record{License: l}},
	}})
	if !errors.Is(err, licensing.ErrUnavailable) {
		t.Errorf("Commit: %v, want ErrUnavailable", err)
	}
	if _, err := f.store.Load(ctx, store.Want{Ref: licensing.LicenseRef(l.Key)}); !errors.Is(err,
		licensing.ErrUnavailable) {
		t.Errorf("Load: %v, want ErrUnavailable", err)
	}
	if s := f.load(licensing.LicenseRef(l.Key)); s.Record.License != nil {
		t.Error("the license was written")
	}
	l = f.createLicense(0)
	guess, _, ok := f.store.Recall(store.Want{Ref: licensing.LicenseRef(l.Key)})
	if !ok {
		return
	}
	if still, err := f.store.Confirm(ctx, licensing.LicenseRef(l.Key), guess.Token); still ||
		!errors.Is(err, licensing.ErrUnavailable) {
		t.Errorf("Confirm: %v, %v; want ErrUnavailable", still, err)
	}
}
