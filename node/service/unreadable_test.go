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
	for _, want := range wants {
		if want.Ref.ID == s.orderNo {
			return nil, fmt.Errorf("%w: damaged", licensing.ErrInternal)
		}
	}
	return s.Store.Load(ctx, wants...)
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
