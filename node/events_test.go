package node_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"licet/kv"
	"licet/licensing"
	"licet/node"
	"licet/node/store"
	"licet/node/store/storetest"
)

// openHearing opens a store that records all events.
func openHearing(t *testing.T) *kv.Store {
	t.Helper()
	cfg := storeConfig()
	cfg.HearAll = true
	return openWith(t, cfg)
}

// historyOf reads all that was told of a record, the oldest first.
func historyOf(t *testing.T, db *kv.Store, ref licensing.Ref) []store.RecordedEvent {
	t.Helper()
	var all []store.RecordedEvent
	for page := (store.HistoryPage{Limit: 100}); ; {
		got, err := db.History(testContext(t), ref, page)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got.Events...)
		if page.Before = got.Next; got.Next == "" {
			slices.Reverse(all)
			return all
		}
	}
}

// feedOf reads all that was told of an owner's records.
func feedOf(t *testing.T, db *kv.Store, owner licensing.Owner) []store.RecordedEvent {
	t.Helper()
	epoch, err := db.EventEpoch(testContext(t))
	wantError(t, err, nil)
	wantError(t, db.SealEvents(testContext(t), epoch), nil)
	var all []store.RecordedEvent
	for page := (store.FeedPage{Limit: 100}); ; {
		got, err := db.ReadEvents(testContext(t), owner, page)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got.Events...)
		if page.After = got.Next; !got.More {
			return all
		}
	}
}

// wantHistory holds what was told of a record against lines, each a number, a type,
// an actor and perhaps a device.
func wantHistory(t *testing.T, store *kv.Store, ref licensing.Ref, want ...string) []store.RecordedEvent {
	t.Helper()
	events := historyOf(t, store, ref)
	if diff := cmp.Diff(want, lines(events)); diff != "" {
		t.Errorf("told of %s (-want +got):\n%s", ref.ID, diff)
	}
	return events
}

func lines(events []store.RecordedEvent) []string {
	var list []string
	for _, e := range events {
		line := fmt.Sprintf("%d %s %s", e.Sequence, e.Type, e.Actor)
		if e.Device != nil {
			line += " " + e.Device.ID
		}
		list = append(list, line)
	}
	return list
}

// together tells whether events were told in one transaction.
func together(t *testing.T, events ...store.RecordedEvent) {
	t.Helper()
	for _, e := range events {
		if e.Revision != events[0].Revision {
			t.Errorf("%s was told in revision %d, and %s in %d", events[0].Type, events[0].Revision, e.Type, e.Revision)
		}
	}
}

// TestGrantTells: each license of a grant is told of once, by whom it was granted,
// however often it is asked for.
func TestGrantTells(t *testing.T) {
	db, owner := openStore(t), newOwner(licensing.Test)
	n := newNode(t, db)
	const quantity = store.MaxNewLicenses + 5
	in := node.Grant{ProductID: "pro", Quantity: quantity, Metadata: `{"a":1}`, By: "key_1", Once: once("grant", "r")}
	for i := range 3 {
		licenses, replayed, err := n.Grant(testContext(t), owner, in)
		if err != nil || replayed != (i > 0) {
			t.Fatalf("replayed %v, %v", replayed, err)
		}
		for _, l := range licenses {
			wantHistory(t, db, licensing.LicenseRef(l.License.Key), "1 license.issued key_1")
		}
	}
	if feed := feedOf(t, db, owner); len(feed) != quantity {
		t.Errorf("the feed has %d events, want %d", len(feed), quantity)
	}
}

// TestFreeOrderTells all that its one transaction does.
func TestFreeOrderTells(t *testing.T) {
	store, owner := openStore(t), newOwner(licensing.Live)
	n := newNode(t, store)
	wantError(t, put(t, n, owner), nil)
	in := newOrder(0)
	in.By, in.Once = "key_1", once("free", "r")
	var order licensing.Order
	for range 2 {
		var err error
		order, _, err = n.CreateOrder(testContext(t), owner, in)
		wantError(t, err, nil)
	}
	told := wantHistory(t, store, licensing.OrderRef(owner, order.OrderNo), "1 order.created key_1", "2 order.paid key_1")
	told = append(told, wantHistory(t, store, licensing.LicenseRef(order.LicenseKey), "1 license.issued key_1")...)
	together(t, told...)
	feed := feedOf(t, store, owner)
	together(t, feed...)
	if len(feed) != 3 {
		t.Errorf("the feed has %v", lines(feed))
	}
	if status := told[0].Order.Status(order.CreatedAt); status != licensing.OrderUnpaid || told[1].Order.LicenseKey != order.LicenseKey {
		t.Errorf("it was created %s, and paid as %+v", status, told[1].Order)
	}
}

func put(t *testing.T, n *node.Node, owner licensing.Owner) error {
	t.Helper()
	_, _, err := n.PutProduct(testContext(t), licensing.PutProduct{Owner: owner, ID: "pro", Terms: licensing.DefaultTerms()})
	return err
}

// TestOrderTells goes through the life of an order at two nodes, each step twice.
func TestOrderTells(t *testing.T) {
	store, owner := openStore(t), newOwner(licensing.Test)
	nodes := []*node.Node{newNode(t, store), newNode(t, openStore(t))}
	ctx := testContext(t)
	in := newOrder(100)
	in.By = "key_1"
	order, _, err := nodes[0].CreateOrder(ctx, owner, in)
	wantError(t, err, nil)
	ref := licensing.OrderRef(owner, order.OrderNo)
	for _, n := range nodes {
		_, err = n.PayOrder(ctx, order, "p")
		wantError(t, err, nil)
	}
	for i, n := range nodes {
		wish := licensing.RequestRefund{By: licensing.Actor(fmt.Sprint("key_", 2+i)), Reason: "too slow"}
		order, _, err = n.ChangeOrder(ctx, owner, order.OrderNo, wish, nil)
		wantError(t, err, nil)
	}
	for _, n := range nodes {
		_, err = n.TryRefund(ctx, order, false)
		wantError(t, err, nil)
		_, err = n.RecordRefund(ctx, order)
		wantError(t, err, nil)
	}
	told := wantHistory(t, store, ref, "1 order.created key_1", "2 order.paid provider", "3 order.refunded key_2")
	license := wantHistory(t, store, licensing.LicenseRef(order.LicenseKey), "1 license.issued provider", "2 license.revoked key_2")
	together(t, told[1], license[0])
	together(t, told[2], license[1])
	if told[1].Revision >= told[2].Revision || license[1].License.RevokedAt.IsZero() || told[2].Order.RefundedAt.IsZero() {
		t.Errorf("told %+v and %+v", told[2], license[1])
	}
}

// TestRefundOfRevokedTells nothing of a license that was revoked before.
func TestRefundOfRevokedTells(t *testing.T) {
	store, owner := openStore(t), newOwner(licensing.Test)
	n := newNode(t, store)
	order, _, err := n.CreateOrder(testContext(t), owner, newOrder(0))
	wantError(t, err, nil)
	license := licensing.LicenseRef(order.LicenseKey)
	_, err = n.Do(testContext(t), license, licensing.RevokeLicense{Target: licensing.Target{Key: order.LicenseKey, By: "key_1"}})
	wantError(t, err, nil)
	_, err = n.RecordRefund(testContext(t), order)
	wantError(t, err, nil)
	wantHistory(t, store, license, "1 license.issued provider", "2 license.revoked key_1")
	wantHistory(t, store, licensing.OrderRef(owner, order.OrderNo), "1 order.created system", "2 order.paid provider", "3 order.refunded system")
}

// TestBuyerCancels: nobody else has the pay page.
func TestBuyerCancels(t *testing.T) {
	store, owner := openStore(t), newOwner(licensing.Test)
	n := newNode(t, store)
	order, _, err := n.CreateOrder(testContext(t), owner, newOrder(100))
	wantError(t, err, nil)
	for range 2 {
		_, err = n.CancelOrder(testContext(t), order)
		wantError(t, err, nil)
	}
	_, err = n.PayOrder(testContext(t), order, "p")
	wantError(t, err, nil)
	_, err = n.RecordRefund(testContext(t), order)
	wantError(t, err, nil)
	wantHistory(t, store, licensing.OrderRef(owner, order.OrderNo), "1 order.created system", "2 order.canceled end_user", "3 order.refunded provider")
}

// TestOnceTellsOnce: a change under an Idempotency-Key is told once, also where its
// answer was lost, and where several ask at once.
func TestOnceTellsOnce(t *testing.T) {
	for _, made := range []bool{true, false} {
		db, owner := openStore(t), newOwner(licensing.Test)
		key := grantTo(t, newNode(t, db), owner, 3)
		suspend := node.LicenseChange{
			Key: key, Command: licensing.SuspendLicense{Target: licensing.Target{Key: key, Caller: owner, By: "key_1"}}, Once: once("suspend", "r"),
		}
		failing := newNode(t, &storetest.Faulty{Store: db, OnCommit: func(store.Change) storetest.Fault {
			return storetest.Fault{Skip: !made, Say: licensing.ErrOutcomeUnknown}
		}})
		_, _, err := failing.ChangeLicense(testContext(t), owner, suspend)
		wantError(t, err, licensing.ErrOutcomeUnknown)
		nodes := []*node.Node{newNode(t, db), newNode(t, openStore(t))}
		var group sync.WaitGroup
		for i := range 10 {
			group.Go(func() {
				for {
					_, _, err := nodes[i%2].ChangeLicense(testContext(t), owner, suspend)
					if !errors.Is(err, licensing.ErrRequestInProgress) {
						wantError(t, err, nil)
						return
					}
				}
			})
		}
		group.Wait()
		wantHistory(t, db, licensing.LicenseRef(key), "1 license.issued system", "2 license.suspended key_1")
	}
}

func grantTo(t *testing.T, n *node.Node, owner licensing.Owner, maxDevices int) licensing.LicenseKey {
	t.Helper()
	licenses, _, err := n.Grant(testContext(t), owner, node.Grant{ProductID: "pro", Quantity: 1, MaxDevices: &maxDevices})
	if err != nil {
		t.Fatal(err)
	}
	return licenses[0].License.Key
}

// TestFoldTells: the events of a fold stand in one transaction, in the order of its
// commands. Of a command that panics there is none, and a full license is told once.
func TestFoldTells(t *testing.T) {
	const waiting = 40
	plain := openHearing(t)
	key := grantTo(t, newNode(t, plain), newOwner(licensing.Test), 1+waiting)
	db, arrived, open, commits := gated(plain)
	withhold := func(s *store.Snapshot) { delete(s.Record.Devices, "poison") }
	db.AfterLoad = func(snapshots []store.Snapshot) { withhold(&snapshots[0]) }
	db.AfterRecall = withhold
	n := newNode(t, db)
	ctx, ref := testContext(t), licensing.LicenseRef(key)
	want := []string{"1 license.issued system", "2 license.activated end_user first", "3 device.bound end_user first"}
	var group sync.WaitGroup
	start := func(device string, answer error) {
		group.Go(func() {
			_, err := n.Activate(ctx, licensing.Activate{Target: licensing.Target{Key: key, By: licensing.EndUser}, Device: device})
			wantError(t, err, answer)
		})
	}
	start("first", nil)
	<-arrived
	waits := 0
	wait := func(device string, answer error) {
		start(device, answer)
		waits++
		n.AwaitQueued(ref, waits)
	}
	for i := range waiting {
		device := fmt.Sprint("waiting-", i)
		wait(device, nil)
		want = append(want, fmt.Sprintf("%d device.bound end_user %s", len(want)+1, device))
		if i == waiting/2 {
			wait("poison", licensing.ErrInternal)
		}
	}
	want = append(want, fmt.Sprintf("%d license.limit_reached end_user too many", len(want)+1))
	full := &licensing.Error{Reason: licensing.ReasonDeviceLimitReached}
	wait("too many", full)
	wait("much too many", full)
	close(open)
	group.Wait()
	events := wantHistory(t, plain, ref, want...)
	if commits.Load() != 2 || t.Failed() {
		t.Fatalf("%d swaps, want 2", commits.Load())
	}
	together(t, events[1:3]...)
	together(t, events[3:]...)
	for i, e := range events[3:] {
		if current := min(2+i, 1+waiting); e.License.CurrentDevices != current {
			t.Errorf("%s %s tells of %d devices, want %d", e.Type, e.Device.ID, e.License.CurrentDevices, current)
		}
	}
}

// TestRefusalsTellNothing, nor does what changes nothing.
func TestRefusalsTellNothing(t *testing.T) {
	store, owner := openHearing(t), newOwner(licensing.Test)
	n := newNode(t, store)
	key := grantTo(t, n, owner, 1)
	target := licensing.Target{Key: key, By: "key_1"}
	ref := licensing.LicenseRef(key)
	run := func(c licensing.Command, want licensing.Reason) {
		t.Helper()
		_, err := n.Do(testContext(t), ref, c)
		if want == "" {
			wantError(t, err, nil)
		} else {
			wantError(t, err, &licensing.Error{Reason: want})
		}
	}
	run(licensing.Activate{Target: target, Device: "a"}, "")
	run(licensing.Activate{Target: target, Device: "a"}, "")
	run(licensing.Activate{Target: target, Device: "a", ProductID: "other"}, licensing.ReasonProductMismatch)
	run(licensing.RemoveDevice{Target: target, Device: "b"}, "")
	run(licensing.DeactivateDevice{Target: target, Device: "a"}, licensing.ReasonSelfServiceForbidden)
	run(licensing.ReinstateLicense{Target: target}, "")
	run(licensing.UpdateLicense{Target: target, MaxDevices: new(1)}, "")
	run(licensing.RevokeLicense{Target: target}, "")
	run(licensing.RevokeLicense{Target: target}, "")
	run(licensing.SuspendLicense{Target: target}, licensing.ReasonInvalidLicenseState)
	run(licensing.Activate{Target: target, Device: "b"}, licensing.ReasonLicenseRevoked)
	run(licensing.RevokeLicense{Target: licensing.Target{Key: key, Caller: newOwner(licensing.Test)}}, licensing.ReasonLicenseNotFound)
	wantHistory(t, store, ref,
		"1 license.issued system", "2 license.activated key_1 a", "3 device.bound key_1 a", "4 license.revoked key_1")
}

// TestHopTells: a command that hops is told of as its caller's.
func TestHopTells(t *testing.T) {
	c := newCrowd(t)
	c.open = openHearing
	owner, store := c.join()
	other, _ := c.join(eager)
	key := grant(t, owner, 0)
	yields(t, c, other, owner, key)
	ref := licensing.LicenseRef(key)
	before, hops := len(historyOf(t, store, ref)), c.hops.Load()
	_, err := other.Activate(testContext(t), licensing.Activate{Target: licensing.Target{Key: key, By: "key_7"}, Device: "hopped"})
	wantError(t, err, nil)
	_, err = other.RemoveDevice(testContext(t), licensing.RemoveDevice{Target: licensing.Target{Key: key, By: "key_8"}, Device: "hopped"})
	wantError(t, err, nil)
	if c.hops.Load() < hops+2 {
		t.Fatal("the commands did not hop")
	}
	got := lines(historyOf(t, store, ref))[before:]
	for i, want := range []string{"device.bound key_7 hopped", "device.removed key_8 hopped"} {
		if len(got) != 2 || !strings.HasSuffix(got[i], want) {
			t.Errorf("told %v, want %s", got, want)
		}
	}
}
