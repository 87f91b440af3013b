package node_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"licet/internal/nodetest"
	"licet/kv"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// openHearing opens a store that also records the events of activations.
func openHearing(t *testing.T) *kv.Store {
	t.Helper()
	cfg := nodetest.StoreConfig()
	cfg.RecordActivations = true
	return nodetest.OpenWith(t, cfg)
}

// together checks that one transaction recorded all events.
func together(t *testing.T, events ...store.RecordedEvent) {
	t.Helper()
	for _, e := range events {
		if e.Revision != events[0].Revision {
			t.Errorf("%s was recorded in revision %d, and %s in %d", events[0].Type, events[0].Revision, e.Type,
				e.Revision)
		}
	}
}

// TestEventsOfAGrant: each license of a grant has one event, which names the grantor, however often the request is
// repeated.
func TestEventsOfAGrant(t *testing.T) {
	db, owner := nodetest.OpenStore(t), nodetest.NewOwner(licensing.Test)
	n := nodetest.New(t, db)
	const quantity = store.MaxNewLicenses + 5
	in := service.Grant{ProductID: "pro", Quantity: quantity, Metadata: `{"a":1}`, By: "key_1",
		Once: nodetest.Once("grant", "r")}
	for i := range 3 {
		licenses, replayed, err := n.Grant(nodetest.Context(t), owner, in)
		if err != nil || replayed != (i > 0) {
			t.Fatalf("replayed %v, %v", replayed, err)
		}
		for _, l := range licenses {
			nodetest.WantHistory(t, db, licensing.LicenseRef(l.License.Key), "1 license.issued key_1")
		}
	}
	if feed := nodetest.FeedOf(t, db, owner); len(feed) != quantity {
		t.Errorf("the feed has %d events, want %d", len(feed), quantity)
	}
}

// TestEventsOfAFreeOrder: the events of a free order cover all changes of its one transaction.
func TestEventsOfAFreeOrder(t *testing.T) {
	store, owner := nodetest.OpenStore(t), nodetest.NewOwner(licensing.Live)
	n := nodetest.New(t, store)
	nodetest.WantError(t, put(t, n, owner), nil)
	in := nodetest.NewOrder(0)
	in.By, in.Once = "key_1", nodetest.Once("free", "r")
	var order licensing.Order
	for range 2 {
		var err error
		order, _, err = n.CreateOrder(nodetest.Context(t), owner, in)
		nodetest.WantError(t, err, nil)
	}
	events := nodetest.WantHistory(t, store, licensing.OrderRef(owner, order.OrderNo), "1 order.created key_1",
		"2 order.paid key_1")
	events = append(events,
		nodetest.WantHistory(t, store, licensing.LicenseRef(order.LicenseKey), "1 license.issued key_1")...)
	together(t, events...)
	feed := nodetest.FeedOf(t, store, owner)
	together(t, feed...)
	if len(feed) != 3 {
		t.Errorf("the feed has %v", nodetest.Lines(feed))
	}
	if status := events[0].Order.Status(order.CreatedAt); status != licensing.OrderUnpaid ||
		events[1].Order.LicenseKey != order.LicenseKey {
		t.Errorf("it was created %s, and paid as %+v", status, events[1].Order)
	}
}

func put(t *testing.T, n *service.Service, owner licensing.Owner) error {
	t.Helper()
	_, _, err := n.PutProduct(nodetest.Context(t),
		licensing.PutProduct{Owner: owner, ID: "pro", Terms: licensing.DefaultTerms()})
	return err
}

// TestEventsOfAnOrder goes through the life of an order at two nodes, each step twice.
func TestEventsOfAnOrder(t *testing.T) {
	store, owner := nodetest.OpenStore(t), nodetest.NewOwner(licensing.Test)
	nodes := []*service.Service{nodetest.New(t, store), nodetest.New(t, nodetest.OpenStore(t))}
	ctx := nodetest.Context(t)
	in := nodetest.NewOrder(100)
	in.By = "key_1"
	order, _, err := nodes[0].CreateOrder(ctx, owner, in)
	nodetest.WantError(t, err, nil)
	ref := licensing.OrderRef(owner, order.OrderNo)
	for _, n := range nodes {
		_, err = n.PayOrder(ctx, order, nodetest.SandboxPayment(order.OrderNo))
		nodetest.WantError(t, err, nil)
	}
	for i, n := range nodes {
		wish := licensing.RequestRefund{By: licensing.Actor(fmt.Sprint("key_", 2+i)), Reason: "too slow"}
		order, _, err = n.ChangeOrder(ctx, owner, order.OrderNo, wish, nil)
		nodetest.WantError(t, err, nil)
	}
	for _, n := range nodes {
		_, err = n.TryRefund(ctx, order, false)
		nodetest.WantError(t, err, nil)
		_, err = n.RecordRefund(ctx, order, service.MadeRefund{})
		nodetest.WantError(t, err, nil)
	}
	events := nodetest.WantHistory(t, store, ref, "1 order.created key_1", "2 order.paid provider",
		"3 order.refunded key_2")
	license := nodetest.WantHistory(t, store, licensing.LicenseRef(order.LicenseKey), "1 license.issued provider",
		"2 license.revoked key_2")
	together(t, events[1], license[0])
	together(t, events[2], license[1])
	if events[1].Revision >= events[2].Revision || license[1].License.RevokedAt.IsZero() ||
		events[2].Order.RefundedAt.IsZero() {
		t.Errorf("the events are %+v and %+v", events[2], license[1])
	}
}

// TestEventsOfARefundWithARevokedLicense: a refund has no event about a license that was revoked before.
func TestEventsOfARefundWithARevokedLicense(t *testing.T) {
	store, owner := nodetest.OpenStore(t), nodetest.NewOwner(licensing.Test)
	n := nodetest.New(t, store)
	order, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.NewOrder(0))
	nodetest.WantError(t, err, nil)
	license := licensing.LicenseRef(order.LicenseKey)
	_, err = n.Do(nodetest.Context(t), license,
		licensing.RevokeLicense{Target: licensing.Target{Key: order.LicenseKey, By: "key_1"}})
	nodetest.WantError(t, err, nil)
	_, err = n.RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
	nodetest.WantError(t, err, nil)
	nodetest.WantHistory(t, store, license, "1 license.issued provider", "2 license.revoked key_1")
	nodetest.WantHistory(t, store, licensing.OrderRef(owner, order.OrderNo), "1 order.created system",
		"2 order.paid provider", "3 order.refunded system")
}

// TestBuyerCancels: the actor of a cancellation on the pay page is the buyer.
func TestBuyerCancels(t *testing.T) {
	store, owner := nodetest.OpenStore(t), nodetest.NewOwner(licensing.Test)
	n := nodetest.New(t, store)
	order, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
	for range 2 {
		_, err = n.CancelOrder(nodetest.Context(t), order)
		nodetest.WantError(t, err, nil)
	}
	_, err = n.PayOrder(nodetest.Context(t), order, nodetest.SandboxPayment(order.OrderNo))
	nodetest.WantError(t, err, nil)
	_, err = n.RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
	nodetest.WantError(t, err, nil)
	nodetest.WantHistory(t, store, licensing.OrderRef(owner, order.OrderNo), "1 order.created system",
		"2 order.canceled end_user", "3 order.refunded provider")
}

// TestOneEventPerIdempotencyKey: a change under an Idempotency-Key has one event, also if its answer was lost, and if
// several callers send the request at once.
func TestOneEventPerIdempotencyKey(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{true, false} {
		db, owner := nodetest.OpenStore(t), nodetest.NewOwner(licensing.Test)
		key := grantTo(t, nodetest.New(t, db), owner, 3)
		suspend := service.LicenseChange{
			Key: key, Command: licensing.SuspendLicense{Target: licensing.Target{Key: key, Caller: owner,
				By: "key_1"}}, Once: nodetest.Once("suspend", "r"),
		}
		failing := nodetest.New(t, &storetest.Faulty{Store: db, OnCommit: func(store.Change) storetest.Fault {
			return storetest.Fault{Skip: !made, Say: licensing.ErrOutcomeUnknown}
		}})
		_, _, err := failing.ChangeLicense(nodetest.Context(t), owner, suspend)
		nodetest.WantError(t, err, licensing.ErrOutcomeUnknown)
		nodes := []*service.Service{nodetest.New(t, db), nodetest.New(t, nodetest.OpenStore(t))}
		var group sync.WaitGroup
		for i := range 10 {
			group.Go(func() {
				for {
					_, _, err := nodes[i%2].ChangeLicense(nodetest.Context(t), owner, suspend)
					if !errors.Is(err, licensing.ErrRequestInProgress) {
						nodetest.WantError(t, err, nil)
						return
					}
				}
			})
		}
		group.Wait()
		nodetest.WantHistory(t, db, licensing.LicenseRef(key), "1 license.issued system", "2 license.suspended key_1")
	}
}

func grantTo(t *testing.T, n *service.Service, owner licensing.Owner, maxDevices int) licensing.LicenseKey {
	t.Helper()
	licenses, _, err := n.Grant(nodetest.Context(t), owner,
		service.Grant{ProductID: "pro", Quantity: 1, MaxDevices: &maxDevices})
	if err != nil {
		t.Fatal(err)
	}
	return licenses[0].License.Key
}

// TestEventsOfAFold: one transaction contains the events of a fold, in the order of its commands. A command that panics
// has no event, and a full license has one.
func TestEventsOfAFold(t *testing.T) {
	const waiting = 40
	plain := openHearing(t)
	key := grantTo(t, nodetest.New(t, plain), nodetest.NewOwner(licensing.Test), 1+waiting)
	db, arrived, open, commits := gated(plain)
	withhold := func(s *store.Snapshot) { delete(s.Record.Devices, "poison") }
	db.AfterLoad = func(snapshots []store.Snapshot) { withhold(&snapshots[0]) }
	db.AfterRecall = withhold
	n := nodetest.New(t, db)
	ctx, ref := nodetest.Context(t), licensing.LicenseRef(key)
	want := []string{"1 license.issued system", "2 license.activated end_user first", "3 device.bound end_user first"}
	var group sync.WaitGroup
	start := func(device string, answer error) {
		group.Go(func() {
			_, err := n.Activate(ctx,
				licensing.Activate{Target: licensing.Target{Key: key, By: licensing.EndUser}, Device: device})
			nodetest.WantError(t, err, answer)
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
	events := nodetest.WantHistory(t, plain, ref, want...)
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

// TestRefusalsHaveNoEvents: refused commands and commands that change nothing have no events.
func TestRefusalsHaveNoEvents(t *testing.T) {
	store, owner := openHearing(t), nodetest.NewOwner(licensing.Test)
	n := nodetest.New(t, store)
	key := grantTo(t, n, owner, 1)
	target := licensing.Target{Key: key, By: "key_1"}
	ref := licensing.LicenseRef(key)
	run := func(c licensing.Command, want licensing.Reason) {
		t.Helper()
		_, err := n.Do(nodetest.Context(t), ref, c)
		if want == "" {
			nodetest.WantError(t, err, nil)
		} else {
			nodetest.WantError(t, err, &licensing.Error{Reason: want})
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
	run(licensing.RevokeLicense{Target: licensing.Target{Key: key, Caller: nodetest.NewOwner(licensing.Test)}},
		licensing.ReasonLicenseNotFound)
	nodetest.WantHistory(t, store, ref,
		"1 license.issued system", "2 license.activated key_1 a", "3 device.bound key_1 a", "4 license.revoked key_1")
}

// TestActorOfAHop: the event of a command that hops has the actor of its caller.
func TestActorOfAHop(t *testing.T) {
	c := newNodeGroup(t)
	c.open = openHearing
	c.standStill()
	owner, store := c.join()
	other, _ := c.join(eager)
	key := nodetest.Grant(t, owner, 0)
	yields(t, c, other, owner, key)
	ref := licensing.LicenseRef(key)
	before, hops := len(nodetest.HistoryOf(t, store, ref)), c.hops.Load()
	_, err := other.Activate(nodetest.Context(t),
		licensing.Activate{Target: licensing.Target{Key: key, By: "key_7"}, Device: "hopped"})
	nodetest.WantError(t, err, nil)
	_, err = other.RemoveDevice(nodetest.Context(t),
		licensing.RemoveDevice{Target: licensing.Target{Key: key, By: "key_8"}, Device: "hopped"})
	nodetest.WantError(t, err, nil)
	if c.hops.Load() < hops+2 {
		t.Fatal("the commands did not hop")
	}
	got := nodetest.Lines(nodetest.HistoryOf(t, store, ref))[before:]
	for i, want := range []string{"device.bound key_7 hopped", "device.removed key_8 hopped"} {
		if len(got) != 2 || !strings.HasSuffix(got[i], want) {
			t.Errorf("the events are %v, want %s", got, want)
		}
	}
}
