package service_test

import (
	"context"
	"fmt"
	"testing"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// damagedStore can't read one license and one order.
type damagedStore struct {
	store.Store
	license licensing.LicenseKey
	orderNo string
	newer   bool // they are in a newer format
	missing bool // the store has no such license
}

func (s *damagedStore) ReadLicenses(
	ctx context.Context, keys []licensing.LicenseKey, devices int,
) ([]*store.LicenseView, error) {
	for _, key := range keys {
		if key == s.license {
			return nil, fmt.Errorf("%w: damaged", licensing.ErrInternal)
		}
	}
	return s.Store.ReadLicenses(ctx, keys, devices)
}

func (s *damagedStore) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	read, err := s.Store.Load(ctx, wants...)
	for i, want := range wants {
		switch {
		case want.Ref.ID != s.orderNo && want.Ref != licensing.LicenseRef(s.license):
		case s.missing && err == nil:
			read[i] = store.Snapshot{AsOf: read[i].AsOf}
		case s.newer:
			return nil, fmt.Errorf("%w: %w", licensing.ErrInternal, store.ErrNewerFormat)
		default:
			return nil, fmt.Errorf("%w: damaged", licensing.ErrInternal)
		}
	}
	return read, err
}

// TestEventsOfUnreadableRecords reads a feed with events of an unreadable license and of an unreadable order: these
// events lack the data that only the record has, and all other events are complete.
func TestEventsOfUnreadableRecords(t *testing.T) {
	db, owner := nodetest.OpenStore(t), nodetest.NewOwner(licensing.Test)
	n := nodetest.New(t, db)
	granted, _, err := n.Grant(nodetest.Context(t), owner, service.Grant{ProductID: "pro", Quantity: 7,
		Metadata: `{"a":1}`, By: "key_1", Once: nodetest.Once("grant", "r")})
	if err != nil {
		t.Fatal(err)
	}
	damaged := &damagedStore{Store: db, license: granted[3].License.Key}
	for range 3 {
		in := nodetest.NewOrder(100)
		in.Description = "for Ada"
		order, _, err := n.CreateOrder(nodetest.Context(t), owner, in)
		if err != nil {
			t.Fatal(err)
		}
		damaged.orderNo = order.OrderNo
	}
	recorded := nodetest.FeedOf(t, db, owner)
	n = nodetest.New(t, damaged, func(cfg *service.Config) { cfg.Events = db })
	feed, err := n.Feed(nodetest.Context(t), owner, store.FeedPage{Limit: 100}, service.FeedWait{})
	if err != nil || len(feed.Events) != len(recorded) {
		t.Fatalf("%d events of %d, %v", len(feed.Events), len(recorded), err)
	}
	for _, e := range feed.Events {
		if l := e.License; l != nil && (e.Metadata.Object == "") != (l.Key == damaged.license) {
			t.Errorf("the metadata of %s is %q", l.Key, e.Metadata.Object)
		}
		if o := e.Order; o != nil && (o.Description == "") != (o.OrderNo == damaged.orderNo) {
			t.Errorf("the description of %s is %q", o.OrderNo, o.Description)
		}
	}
}

// TestOrdersOfUnreadableLicenses lists and reads orders, one of which has an unreadable license: this order keeps the
// key that it stores, and the others show the keys that their licenses have now.
func TestOrdersOfUnreadableLicenses(t *testing.T) {
	db, owner := nodetest.OpenStore(t), nodetest.NewOwner(licensing.Test)
	n := nodetest.New(t, db)
	ctx := nodetest.Context(t)
	want := make(map[string]licensing.LicenseKey)
	damaged := &damagedStore{Store: db}
	for i := range 3 {
		order, _, err := n.CreateOrder(ctx, owner, nodetest.NewOrder(100))
		if err == nil {
			_, err = n.PayOrder(ctx, order, nodetest.SandboxPayment(order.OrderNo))
		}
		if err == nil {
			order, err = n.Order(ctx, owner, order.OrderNo)
		}
		if err != nil {
			t.Fatal(err)
		}
		if want[order.OrderNo] = order.LicenseKey; i == 1 {
			damaged.license = order.LicenseKey
		}
	}
	n = nodetest.New(t, damaged)
	list, err := n.ListOrders(ctx, owner, service.OrderFilter{}, store.Page{Limit: 100})
	if err != nil || len(list.Items) != len(want) {
		t.Fatalf("%d orders, %v", len(list.Items), err)
	}
	for i := range list.Items {
		listed := &list.Items[i]
		read, err := n.Order(ctx, owner, listed.OrderNo)
		if key := want[listed.OrderNo]; err != nil || listed.LicenseKey != key || read.LicenseKey != key {
			t.Errorf("%s: listed with %s, read with %s (%v), want %s", listed.OrderNo, listed.LicenseKey,
				read.LicenseKey, err, key)
		}
	}
}

// TestOrderWithUnreadableLicense: a license that the store can't read, or lacks, does not keep the other licenses of a
// refunded order usable, nor those of an order whose payment is disputed.
func TestOrderWithUnreadableLicense(t *testing.T) {
	db, owner := nodetest.OpenStore(t), nodetest.NewOwner(licensing.Test)
	n := nodetest.New(t, db)
	suspended := func(l *licensing.License) bool { return !l.SuspendedAt.IsZero() }
	revoked := func(l *licensing.License) bool { return !l.RevokedAt.IsZero() }
	for _, damage := range []damagedStore{{}, {missing: true}} {
		for _, at := range []int{0, 11} {
			damaged, order, keys := damage.of(t, db, n, owner, at)
			what := fmt.Sprintf("missing: %v", damage.missing)
			note := licensing.NoteDispute{Dispute: licensing.Payment{Provider: order.PaidThrough(),
				Reference: "dp_" + order.OrderNo, Amount: 100, Currency: order.Currency, State: licensing.PaymentOpen}}
			nodetest.WantError(t, damaged.NoteDispute(nodetest.Context(t), order, note, true), nil)
			wantChanged(t, n, what, order, keys, at, suspended)
			_, err := damaged.RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
			nodetest.WantError(t, err, nil)
			wantChanged(t, n, what, order, keys, at, revoked)
			if now, err := n.Order(nodetest.Context(t), owner, order.OrderNo); err != nil || now.RefundedAt.IsZero() {
				t.Errorf("%s: not refunded: %+v, %v", what, now, err)
			}
			if !damage.missing {
				continue
			}
			_, _, err = damaged.Redact(nodetest.Context(t), owner, named(buyer), nil)
			nodetest.WantError(t, err, nil)
			if now, err := n.Order(nodetest.Context(t), owner, order.OrderNo); err != nil || now.BuyerEmail != "" {
				t.Errorf("license %d is missing: not redacted: %+v, %v", at, now, err)
			}
		}
	}
}

// TestRefundWithNewerLicense: a license in a newer format, which this node can't read, waits for a node that can. If it
// is the first license, the refund waits too.
func TestRefundWithNewerLicense(t *testing.T) {
	db, owner := nodetest.OpenStore(t), nodetest.NewOwner(licensing.Test)
	n := nodetest.New(t, db)
	for _, at := range []int{0, 11} {
		damaged, order, keys := damagedStore{newer: true}.of(t, db, n, owner, at)
		_, err := damaged.RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
		now, failed := n.Order(nodetest.Context(t), owner, order.OrderNo)
		if recorded := at > 0; failed != nil || (err == nil) != recorded || now.RefundedAt.IsZero() == recorded {
			t.Errorf("license %d: refunded at %v, %v, %v", at, now.RefundedAt, err, failed)
		}
		if err := damaged.IssueLicensesDue(nodetest.Context(t)); at > 0 && err == nil {
			t.Errorf("license %d: passed", at)
		}
		_, err = n.RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
		nodetest.WantError(t, err, nil)
		nodetest.WantError(t, n.IssueLicensesDue(nodetest.Context(t)), nil)
		wantChanged(t, n, "newer", order, keys, -1, func(l *licensing.License) bool { return !l.RevokedAt.IsZero() })
	}
}

// of makes a paid order for 20 licenses, and a node that can't read the license with an index.
func (s damagedStore) of(
	t *testing.T, db store.Store, n *service.Service, owner licensing.Owner, at int,
) (*service.Service, licensing.Order, []licensing.LicenseKey) {
	t.Helper()
	in := nodetest.NewOrder(100)
	in.Quantity, in.BuyerEmail = 20, buyer
	order, _, err := n.CreateOrder(nodetest.Context(t), owner, in)
	nodetest.WantError(t, err, nil)
	paid, err := n.PayOrder(nodetest.Context(t), order, nodetest.SandboxPayment(order.OrderNo))
	nodetest.WantError(t, err, nil)
	order = paid.Order()
	keys, err := n.OrderKeys(nodetest.Context(t), &order)
	nodetest.WantError(t, err, nil)
	s.Store, s.license = db, keys[at]
	return nodetest.New(t, &s), order, keys
}

// wantChanged checks that all licenses of an order have changed, except the license with an index, and that nothing is
// left to do.
func wantChanged(
	t *testing.T, n *service.Service, what string, order licensing.Order, keys []licensing.LicenseKey, except int,
	changed func(*licensing.License) bool,
) {
	t.Helper()
	for i, key := range keys {
		view, err := n.License(nodetest.Context(t), order.Owner, key, store.DevicePage{Limit: 1})
		if err != nil || changed(&view.License) == (i == except) {
			t.Errorf("%s, index %d: license %d is %s, %v", what, except, i, view.License.Status(n.Now()), err)
		}
	}
	if now, err := n.Order(nodetest.Context(t), order.Owner, order.OrderNo); err != nil ||
		now.Others != licensing.OthersDone {
		t.Errorf("%s, index %d: the licenses must still get %+v, %v", what, except, now.OrderOthers, err)
	}
}
