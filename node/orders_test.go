package node_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
	"licet/node/store/storetest"
)

func newOrder(amount int64) node.NewOrder {
	return node.NewOrder{ProductID: "pro", Amount: amount, Currency: "USD"}
}

func TestFiftyPaymentsMakeOneLicense(t *testing.T) {
	nodes := []*node.Node{newNode(t, openStore(t)), newNode(t, openStore(t))}
	order, _, err := nodes[0].CreateOrder(testContext(t), testOwner, newOrder(4900))
	if err != nil {
		t.Fatal(err)
	}
	keys := sync.Map{}
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			result, err := nodes[i%2].PayOrder(testContext(t), order, fmt.Sprint("payment-", i))
			if err != nil {
				t.Errorf("pay: %v", err)
				return
			}
			keys.Store(result.Order.LicenseKey, true)
		})
	}
	group.Wait()
	distinct := 0
	keys.Range(func(key, _ any) bool {
		distinct++
		view, err := nodes[0].License(testContext(t), testOwner, key.(licensing.LicenseKey), store.DevicePage{Limit: 1})
		if err != nil || view.License.OrderNo != order.OrderNo {
			t.Errorf("license of the order: %+v, %v", view, err)
		}
		return true
	})
	if distinct != 1 {
		t.Errorf("%d licenses, want 1", distinct)
	}
}

func TestCreateOrder(t *testing.T) {
	test := newOwner(licensing.Test)
	live := licensing.Owner{AccountID: test.AccountID, Mode: licensing.Live}
	n := newNode(t, openStore(t))
	ctx := testContext(t)

	_, _, err := n.CreateOrder(ctx, live, newOrder(100))
	wantError(t, err, licensing.ErrProductNotFound)
	order, _, err := n.CreateOrder(ctx, test, newOrder(100))
	wantError(t, err, nil)
	if got := order.Status(n.Now()); got != licensing.OrderUnpaid || order.PayToken == "" || order.LicenseKey != "" {
		t.Errorf("a new order is %s: %+v", got, order)
	}
	stored, err := n.Order(ctx, test, order.OrderNo)
	wantError(t, err, nil)
	if stored != order {
		t.Errorf("stored %+v\nanswered %+v", stored, order)
	}
	_, err = n.Order(ctx, live, order.OrderNo)
	wantError(t, err, licensing.ErrOrderNotFound)
	_, err = n.OrderToPay(ctx, order.OrderNo, order.PayToken)
	wantError(t, err, nil)
	for _, token := range []string{"", "x", order.PayToken + "0", "00000000000000000000000000000000"} {
		_, err = n.OrderToPay(ctx, order.OrderNo, token)
		wantError(t, err, licensing.ErrOrderNotFound)
	}

	free, _, err := n.CreateOrder(ctx, test, newOrder(0))
	wantError(t, err, nil)
	if free.Status(n.Now()) != licensing.OrderPaid || free.LicenseKey == "" || free.Late {
		t.Errorf("a free order is %s: %+v", free.Status(n.Now()), free)
	}
	if _, err := n.License(ctx, test, free.LicenseKey, store.DevicePage{Limit: 1}); err != nil {
		t.Errorf("its license: %v", err)
	}
}

// TestProductMadeOnce lets many first orders of one product meet.
func TestProductMadeOnce(t *testing.T) {
	n := newNode(t, openStore(t))
	owner := newOwner(licensing.Test)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, _, err := n.CreateOrder(testContext(t), owner, newOrder(100)); err != nil {
				t.Errorf("create: %v", err)
			}
		})
	}
	group.Wait()
}

// TestProductMadeBesidePut sells a product that does not exist while a PUT of it is being
// stored at the same node. The product is in one Commit at a time, or the store could not
// tell whose swap has landed, and could make the PUT twice.
func TestProductMadeBesidePut(t *testing.T) {
	for _, c := range []struct {
		name string
		sell func(*node.Node, licensing.Owner) error
	}{
		{"an order", func(n *node.Node, owner licensing.Owner) error {
			_, _, err := n.CreateOrder(testContext(t), owner, newOrder(100))
			return err
		}},
		{"a grant", func(n *node.Node, owner licensing.Owner) error {
			_, _, err := n.Grant(testContext(t), owner, node.Grant{ProductID: "pro", Quantity: 1})
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			owner := newOwner(licensing.Test)
			ref := licensing.ProductRef(owner, "pro")
			arrived, goOn := make(chan struct{}), make(chan struct{})
			var writes atomic.Int32
			store := &storetest.Faulty{
				Store:     openStore(t),
				OnOverlap: func(ref licensing.Ref) { t.Errorf("%v is in two Commits at a time", ref) },
				OnCommit: func(change store.Change) storetest.Fault {
					if slices.ContainsFunc(change.Writes, func(w store.Write) bool { return w.Ref == ref }) && writes.Add(1) == 1 {
						close(arrived)
						<-goOn
					}
					return storetest.Fault{}
				},
			}
			n := newNode(t, store)
			var group sync.WaitGroup
			group.Go(func() {
				put := licensing.PutProduct{ID: "pro", Owner: owner, Terms: licensing.DefaultTerms()}
				if _, created, err := n.PutProduct(testContext(t), put); err != nil || !created {
					t.Errorf("put: created %v, %v", created, err)
				}
			})
			<-arrived
			sold, waits := make(chan error, 1), make(chan struct{})
			group.Go(func() { sold <- c.sell(n, owner) })
			go func() {
				n.AwaitQueued(ref, 1)
				close(waits)
			}()
			select {
			case <-waits:
			case err := <-sold:
				t.Errorf("it was sold while the product was being stored: %v", err)
				sold <- err
			}
			close(goOn)
			group.Wait()
			wantError(t, <-sold, nil)
			if writes.Load() != 1 {
				t.Errorf("the product was written %d times", writes.Load())
			}
		})
	}
}

func TestLivePaymentNeedsAProvider(t *testing.T) {
	live := newOwner(licensing.Live)
	db := openStore(t)
	product := &licensing.Product{ID: "pro", Owner: live, Terms: licensing.DefaultTerms(), CreatedAt: time.Now()}
	outcome, err := db.Commit(testContext(t), store.Change{Writes: []store.Write{
		{Ref: licensing.ProductRef(live, "pro"), Record: licensing.Record{Product: product}},
	}})
	if err != nil || !outcome.Landed {
		t.Fatalf("make the product: %+v, %v", outcome, err)
	}
	n := newNode(t, db)
	_, _, err = n.CreateOrder(testContext(t), live, newOrder(100))
	wantError(t, err, licensing.ErrPaymentNotConfigured)
	_, _, err = n.CreateOrder(testContext(t), live, newOrder(0))
	wantError(t, err, nil)
	n = newNode(t, db, func(c *node.Config) { c.LivePayments = true })
	_, _, err = n.CreateOrder(testContext(t), live, newOrder(100))
	wantError(t, err, nil)
}

func TestGrant(t *testing.T) {
	n := newNode(t, openStore(t))
	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	licenses, _, err := n.Grant(testContext(t), testOwner, node.Grant{ProductID: "pro", Quantity: 100, ExpiresAt: ends, Metadata: `{"a":1}`})
	if err != nil || len(licenses) != 100 {
		t.Fatalf("%d licenses, %v", len(licenses), err)
	}
	keys := map[licensing.LicenseKey]bool{}
	for _, granted := range licenses {
		l := granted.License
		keys[l.Key] = true
		view, err := n.License(testContext(t), testOwner, l.Key, store.DevicePage{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if view.License != l || view.Metadata != `{"a":1}` || !l.ExpiresAt.Equal(ends) || l.MaxDevices != 3 || l.OrderNo != "" {
			t.Fatalf("stored %+v\nanswered %+v", view, l)
		}
	}
	if len(keys) != 100 {
		t.Errorf("%d different keys, want 100", len(keys))
	}
}

// TestGrantFailsHalfWay answers unknown once some licenses are stored, and
// plainly before.
func TestGrantFailsHalfWay(t *testing.T) {
	plain := openStore(t)
	for _, c := range []struct {
		failing int
		want    *licensing.Error
	}{{1, licensing.ErrUnavailable}, {2, licensing.ErrOutcomeUnknown}} {
		commits := 0
		n := newNode(t, &storetest.Faulty{Store: plain, OnCommit: func(store.Change) storetest.Fault {
			if commits++; commits == c.failing {
				return storetest.Fault{Skip: true, Say: licensing.ErrUnavailable}
			}
			return storetest.Fault{}
		}})
		_, _, err := n.Grant(testContext(t), testOwner, node.Grant{ProductID: "pro", Quantity: 2 * store.MaxNewLicenses})
		wantError(t, err, c.want)
	}
}

// TestIssueNeverOverwrites pays with a license key that is taken.
func TestIssueNeverOverwrites(t *testing.T) {
	db := openStore(t)
	n := newNode(t, db)
	ctx := testContext(t)
	taken := grant(t, n, 7)
	order, _, err := n.CreateOrder(ctx, testOwner, newOrder(100))
	wantError(t, err, nil)
	ref := licensing.OrderRef(testOwner, order.OrderNo)
	loaded, err := db.Load(ctx, store.Want{Ref: ref})
	wantError(t, err, nil)
	_, err = licensing.Apply(&loaded[0].Record, licensing.PayOrder{Key: taken, Terms: licensing.DefaultTerms()}, n.Now())
	wantError(t, err, nil)
	outcome, err := db.Commit(ctx, store.Change{Writes: []store.Write{{Ref: ref, Token: loaded[0].Token, Record: loaded[0].Record}}})
	wantError(t, err, nil)
	view, err := n.License(ctx, testOwner, taken, store.DevicePage{Limit: 1})
	wantError(t, err, nil)
	if outcome.Landed || view.License.OrderNo != "" || view.License.MaxDevices != 7 {
		t.Errorf("landed %v; the license is %+v", outcome.Landed, view.License)
	}
}

// TestTermsAtPayment issues with the product's terms of the moment, and with
// the order's where the product is gone.
func TestTermsAtPayment(t *testing.T) {
	db := openStore(t)
	n := newNode(t, db)
	owner := newOwner(licensing.Test)
	put := func(ref licensing.Ref, record licensing.Record) {
		t.Helper()
		if _, err := db.Commit(testContext(t), store.Change{Writes: []store.Write{{Ref: ref, Record: record}}}); err != nil {
			t.Fatal(err)
		}
	}
	put(licensing.ProductRef(owner, "changed"), licensing.Record{Product: &licensing.Product{
		ID: "changed", Owner: owner, Terms: licensing.Terms{KeyPrefix: "NEW", MaxDevices: 9}, CreatedAt: n.Now(),
	}})
	for product, want := range map[string]string{"gone": "OLD", "changed": "NEW"} {
		order := licensing.Order{
			OrderNo: licensing.NewOrderNo(store.Cell, ulid.Make().String()), Owner: owner, ProductID: product, Amount: 1,
			Terms: licensing.Terms{KeyPrefix: "OLD", MaxDevices: 5}, CreatedAt: n.Now(), ExpiresAt: n.Now().Add(time.Hour),
		}
		put(licensing.OrderRef(owner, order.OrderNo), licensing.Record{Order: &order})
		paid, err := n.PayOrder(testContext(t), order, "p")
		if err != nil || paid.Order.LicenseKey.Prefix() != want {
			t.Errorf("%s: issued %s, %v; want the prefix %s", product, paid.Order.LicenseKey, err, want)
		}
	}
}

// TestGrantLosesTheProductRace answers only licenses that are stored.
func TestGrantLosesTheProductRace(t *testing.T) {
	plain := openStore(t)
	owner := newOwner(licensing.Test)
	raced := false
	n := newNode(t, &storetest.Faulty{Store: plain, OnCommit: func(store.Change) storetest.Fault {
		if !raced {
			raced = true
			if _, _, err := newNode(t, plain).CreateOrder(testContext(t), owner, newOrder(1)); err != nil {
				t.Error(err)
			}
		}
		return storetest.Fault{}
	}})
	granted, _, err := n.Grant(testContext(t), owner, node.Grant{ProductID: "pro", Quantity: 2})
	wantError(t, err, nil)
	for _, l := range granted {
		if _, err := n.License(testContext(t), owner, l.License.Key, store.DevicePage{Limit: 1}); err != nil {
			t.Errorf("a granted license: %v", err)
		}
	}
}
