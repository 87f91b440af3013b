package node_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

func TestFiftyPaymentsMakeOneLicense(t *testing.T) {
	nodes := []*service.Service{nodetest.New(t, nodetest.OpenStore(t)), nodetest.New(t, nodetest.OpenStore(t))}
	order, _, err := nodes[0].CreateOrder(nodetest.Context(t), nodetest.Owner, nodetest.NewOrder(4900))
	if err != nil {
		t.Fatal(err)
	}
	keys := sync.Map{}
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			payment := nodetest.SandboxPayment(fmt.Sprint("payment-", i))
			result, err := nodes[i%2].PayOrder(nodetest.Context(t), order, payment)
			if err != nil {
				t.Errorf("pay: %v", err)
				return
			}
			keys.Store(result.Order().LicenseKey, true)
		})
	}
	group.Wait()
	distinct := 0
	keys.Range(func(key, _ any) bool {
		distinct++
		view, err := nodes[0].License(nodetest.Context(t), nodetest.Owner, key.(licensing.LicenseKey),
			store.DevicePage{Limit: 1})
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
	test := nodetest.NewOwner(licensing.Test)
	live := licensing.Owner{AccountID: test.AccountID, Mode: licensing.Live}
	n := nodetest.New(t, nodetest.OpenStore(t))
	ctx := nodetest.Context(t)

	_, _, err := n.CreateOrder(ctx, live, nodetest.NewOrder(100))
	nodetest.WantError(t, err, licensing.ErrProductNotFound)
	order, _, err := n.CreateOrder(ctx, test, nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
	if got := order.Status(n.Now()); got != licensing.OrderUnpaid || !order.LicenseKey.IsZero() {
		t.Errorf("a new order is %s: %+v", got, order)
	}
	stored, err := n.Order(ctx, test, order.OrderNo)
	nodetest.WantError(t, err, nil)
	if stored != order {
		t.Errorf("stored %+v\nanswered %+v", stored, order)
	}
	_, err = n.Order(ctx, live, order.OrderNo)
	nodetest.WantError(t, err, licensing.ErrOrderNotFound)
	right, err := nodetest.Ring(t).PayToken(&order)
	nodetest.WantError(t, err, nil)
	_, err = n.OrderToPay(ctx, order.OrderNo, right)
	nodetest.WantError(t, err, nil)
	hash := string(order.PayHash[:])
	for _, token := range []string{"", "x", right + "0", "00000000000000000000000000000000", hash} {
		_, err = n.OrderToPay(ctx, order.OrderNo, token)
		nodetest.WantError(t, err, licensing.ErrOrderNotFound)
	}

	free, _, err := n.CreateOrder(ctx, test, nodetest.NewOrder(0))
	nodetest.WantError(t, err, nil)
	if free.Status(n.Now()) != licensing.OrderPaid || free.LicenseKey.IsZero() || free.Late {
		t.Errorf("a free order is %s: %+v", free.Status(n.Now()), free)
	}
	if _, err := n.License(ctx, test, free.LicenseKey, store.DevicePage{Limit: 1}); err != nil {
		t.Errorf("its license: %v", err)
	}
}

// doubtfulMasters is a store whose first UseMaster is in doubt.
type doubtfulMasters struct {
	store.Store
	applied bool // whether the store applies the first UseMaster
	asked   atomic.Int32
}

func (s *doubtfulMasters) UseMaster(ctx context.Context, master keyring.MasterKey) error {
	if s.asked.Add(1) > 1 {
		return s.Store.UseMaster(ctx, master)
	}
	if s.applied {
		if err := s.Store.UseMaster(ctx, master); err != nil {
			return err
		}
	}
	return licensing.ErrOutcomeUnknown
}

// TestOrderWhileMasterKeyIsInDoubt creates the first order of a node whose note of the master key is in doubt: the
// order was certainly not created, so the same request, with its Idempotency-Key, creates the order later.
func TestOrderWhileMasterKeyIsInDoubt(t *testing.T) {
	for _, applied := range []bool{true, false} {
		db := &doubtfulMasters{Store: nodetest.OpenStore(t), applied: applied}
		n, owner := nodetest.New(t, db), nodetest.NewOwner(licensing.Test)
		request := nodetest.OrderOnce("k", "r")
		_, replayed, err := n.CreateOrder(nodetest.Context(t), owner, request)
		if licensing.ReasonOf(err) != licensing.ReasonUnavailable || replayed {
			t.Errorf("in doubt: %v, replayed: %t", err, replayed)
		}
		order, replayed, err := n.CreateOrder(nodetest.Context(t), owner, request)
		if err != nil || replayed || order.PaySeed.MasterID != nodetest.Ring(t).Current().ID {
			t.Errorf("afterward: %+v, replayed: %t, %v", order, replayed, err)
		}
		again, replayed, err := n.CreateOrder(nodetest.Context(t), owner, request)
		if err != nil || !replayed || again.OrderNo != order.OrderNo {
			t.Errorf("repeated: %+v, replayed: %t, %v", again, replayed, err)
		}
		if asked := db.asked.Load(); asked != 2 {
			t.Errorf("the node noted the master key %d times, want 2", asked)
		}
	}
}

// TestProductMadeOnce: many first orders of one product at the same time create the product once.
func TestProductMadeOnce(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	owner := nodetest.NewOwner(licensing.Test)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.NewOrder(100)); err != nil {
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
		sell func(*service.Service, licensing.Owner) error
	}{
		{"an order", func(n *service.Service, owner licensing.Owner) error {
			_, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.NewOrder(100))
			return err
		}},
		{"a grant", func(n *service.Service, owner licensing.Owner) error {
			_, _, err := n.Grant(nodetest.Context(t), owner, service.Grant{ProductID: "pro", Quantity: 1})
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			owner := nodetest.NewOwner(licensing.Test)
			ref := licensing.ProductRef(owner, "pro")
			arrived, goOn := make(chan struct{}), make(chan struct{})
			var writes atomic.Int32
			store := &storetest.Faulty{
				Store:     nodetest.OpenStore(t),
				OnOverlap: func(ref licensing.Ref) { t.Errorf("%v is in two Commits at a time", ref) },
				OnCommit: func(change store.Change) storetest.Fault {
					if slices.ContainsFunc(change.Writes, func(w store.Write) bool { return w.Ref == ref }) &&
						writes.Add(1) == 1 {
						close(arrived)
						<-goOn
					}
					return storetest.Fault{}
				},
			}
			n := nodetest.New(t, store)
			var group sync.WaitGroup
			group.Go(func() {
				put := licensing.PutProduct{ID: "pro", Owner: owner, Terms: licensing.DefaultTerms()}
				if _, created, err := n.PutProduct(nodetest.Context(t), put); err != nil || !created {
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
				t.Errorf("the product was sold while it was being stored: %v", err)
				sold <- err
			}
			close(goOn)
			group.Wait()
			nodetest.WantError(t, <-sold, nil)
			if writes.Load() != 1 {
				t.Errorf("the product was written %d times", writes.Load())
			}
		})
	}
}

func TestLivePaymentNeedsAProvider(t *testing.T) {
	live := nodetest.NewOwner(licensing.Live)
	db := nodetest.OpenStore(t)
	product := &licensing.Product{ID: "pro", Owner: live, Terms: licensing.DefaultTerms(), CreatedAt: time.Now()}
	outcome, err := db.Commit(nodetest.Context(t), store.Change{Writes: []store.Write{
		{Ref: licensing.ProductRef(live, "pro"), Record: licensing.Record{Product: product}},
	}})
	if err != nil || !outcome.Landed {
		t.Fatalf("make the product: %+v, %v", outcome, err)
	}
	n := nodetest.New(t, db)
	_, _, err = n.CreateOrder(nodetest.Context(t), live, nodetest.NewOrder(100))
	nodetest.WantError(t, err, licensing.ErrPaymentNotConfigured)
	_, _, err = n.CreateOrder(nodetest.Context(t), live, nodetest.NewOrder(0))
	nodetest.WantError(t, err, nil)
	n = nodetest.New(t, db, func(c *service.Config) { c.Accepts = func(licensing.Order) error { return nil } })
	_, _, err = n.CreateOrder(nodetest.Context(t), live, nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
}

func TestGrant(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	licenses, _, err := n.Grant(nodetest.Context(t), nodetest.Owner,
		service.Grant{ProductID: "pro", Quantity: 100, ExpiresAt: ends, Metadata: `{"a":1}`})
	if err != nil || len(licenses) != 100 {
		t.Fatalf("%d licenses, %v", len(licenses), err)
	}
	keys := map[licensing.LicenseKey]bool{}
	for _, granted := range licenses {
		l := granted.License
		keys[l.Key] = true
		view, err := n.License(nodetest.Context(t), nodetest.Owner, l.Key, store.DevicePage{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if view.License != l || view.Metadata.Object != `{"a":1}` || !l.ExpiresAt.Equal(ends) || l.MaxDevices != 3 ||
			l.OrderNo != "" {
			t.Fatalf("stored %+v\nanswered %+v", view, l)
		}
	}
	if len(keys) != 100 {
		t.Errorf("%d different keys, want 100", len(keys))
	}
}

// TestGrantFailsHalfWay: a grant that fails returns "outcome unknown" once some licenses are stored, and the failure
// itself before.
func TestGrantFailsHalfWay(t *testing.T) {
	plain := nodetest.OpenStore(t)
	for _, c := range []struct {
		failing int
		want    *licensing.Error
	}{{1, licensing.ErrUnavailable}, {2, licensing.ErrOutcomeUnknown}} {
		commits := 0
		n := nodetest.New(t, &storetest.Faulty{Store: plain, OnCommit: func(store.Change) storetest.Fault {
			if commits++; commits == c.failing {
				return storetest.Fault{Skip: true, Say: licensing.ErrUnavailable}
			}
			return storetest.Fault{}
		}})
		_, _, err := n.Grant(nodetest.Context(t), nodetest.Owner,
			service.Grant{ProductID: "pro", Quantity: 2 * store.MaxNewLicenses})
		nodetest.WantError(t, err, c.want)
	}
}

// TestIssueNeverOverwrites pays an order whose new license key is taken: the stored license stays.
func TestIssueNeverOverwrites(t *testing.T) {
	db := nodetest.OpenStore(t)
	n := nodetest.New(t, db)
	ctx := nodetest.Context(t)
	taken := nodetest.Grant(t, n, 7)
	order, _, err := n.CreateOrder(ctx, nodetest.Owner, nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
	ref := licensing.OrderRef(nodetest.Owner, order.OrderNo)
	loaded, err := db.Load(ctx, store.Want{Ref: ref})
	nodetest.WantError(t, err, nil)
	_, err = licensing.Apply(&loaded[0].Record, licensing.PayOrder{Key: taken, Terms: licensing.DefaultTerms()},
		n.Now())
	nodetest.WantError(t, err, nil)
	outcome, err := db.Commit(ctx,
		store.Change{Writes: []store.Write{{Ref: ref, Token: loaded[0].Token, Record: loaded[0].Record}}})
	nodetest.WantError(t, err, nil)
	view, err := n.License(ctx, nodetest.Owner, taken, store.DevicePage{Limit: 1})
	nodetest.WantError(t, err, nil)
	if outcome.Landed || view.License.OrderNo != "" || view.License.MaxDevices != 7 {
		t.Errorf("landed %v; the license is %+v", outcome.Landed, view.License)
	}
}

// TestTermsAtPayment: a license has the product's terms at the payment, and the order's terms if the product was
// deleted.
func TestTermsAtPayment(t *testing.T) {
	db := nodetest.OpenStore(t)
	n := nodetest.New(t, db)
	owner := nodetest.NewOwner(licensing.Test)
	put := func(ref licensing.Ref, record licensing.Record) {
		t.Helper()
		if _, err := db.Commit(nodetest.Context(t),
			store.Change{Writes: []store.Write{{Ref: ref, Record: record}}}); err != nil {
			t.Fatal(err)
		}
	}
	put(licensing.ProductRef(owner, "changed"), licensing.Record{Product: &licensing.Product{
		ID: "changed", Owner: owner, Terms: licensing.Terms{KeyPrefix: "NEW", MaxDevices: 9}, CreatedAt: n.Now(),
	}})
	for product, want := range map[string]string{"gone": "OLD", "changed": "NEW"} {
		order := licensing.Order{
			OrderNo: licensing.NewOrderNo(owner, ulid.Make().String()), Owner: owner, ProductID: product,
			OrderPayment: licensing.OrderPayment{Amount: 1},
			Terms:        licensing.Terms{KeyPrefix: "OLD", MaxDevices: 5}, CreatedAt: n.Now(),
			ExpiresAt: n.Now().Add(time.Hour),
		}
		put(licensing.OrderRef(owner, order.OrderNo), licensing.Record{Order: &order})
		paid, err := n.PayOrder(nodetest.Context(t), order, nodetest.SandboxPayment(order.OrderNo))
		if err != nil || paid.Order().LicenseKey.Prefix() != want {
			t.Errorf("%s: issued %s, %v; want the prefix %s", product, paid.Order().LicenseKey, err, want)
		}
	}
}

// TestGrantLosesTheProductRace: the answer has only licenses that are stored.
func TestGrantLosesTheProductRace(t *testing.T) {
	plain := nodetest.OpenStore(t)
	owner := nodetest.NewOwner(licensing.Test)
	raced := false
	n := nodetest.New(t, &storetest.Faulty{Store: plain, OnCommit: func(store.Change) storetest.Fault {
		if !raced {
			raced = true
			if _, _, err := nodetest.New(t, plain).CreateOrder(nodetest.Context(t), owner,
				nodetest.NewOrder(1)); err != nil {
				t.Error(err)
			}
		}
		return storetest.Fault{}
	}})
	granted, _, err := n.Grant(nodetest.Context(t), owner, service.Grant{ProductID: "pro", Quantity: 2})
	nodetest.WantError(t, err, nil)
	for _, l := range granted {
		if _, err := n.License(nodetest.Context(t), owner, l.License.Key, store.DevicePage{Limit: 1}); err != nil {
			t.Errorf("a granted license: %v", err)
		}
	}
}

// TestOutsidePaymentUnknownThenAgain loses the answer to the record of a payment, which the store has made or not. The
// repeated request pays the order once, and no other order can be paid with the reference.
func TestOutsidePaymentUnknownThenAgain(t *testing.T) {
	for _, made := range []bool{true, false} {
		for _, once := range []*node.Once{nil, nodetest.Once("k", "payment")} {
			plain := nodetest.OpenStore(t)
			owner := nodetest.NewOwner(licensing.Test)
			n := nodetest.New(t, plain)
			order, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.OrderOnce("order", "r"))
			nodetest.WantError(t, err, nil)
			other, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.OrderOnce("other", "r"))
			nodetest.WantError(t, err, nil)
			payment := service.OutsidePayment{Reference: "INV-1", By: "key_1", Once: once}
			failing := nodetest.New(t, &storetest.Faulty{Store: plain, OnCommit: func(store.Change) storetest.Fault {
				return storetest.Fault{Skip: !made, Say: licensing.ErrOutcomeUnknown}
			}})
			_, _, err = failing.RecordPayment(nodetest.Context(t), owner, order.OrderNo, payment)
			nodetest.WantError(t, err, licensing.ErrOutcomeUnknown)
			first, replayed, err := n.RecordPayment(nodetest.Context(t), owner, order.OrderNo, payment)
			if err != nil || replayed != (made && once != nil) || first.LicenseKey.IsZero() {
				t.Errorf("made %v, once %v: %+v, replayed %v, %v", made, once != nil, first, replayed, err)
			}
			second, _, err := n.RecordPayment(nodetest.Context(t), owner, order.OrderNo, payment)
			if err != nil || second.LicenseKey != first.LicenseKey {
				t.Errorf("two licenses: %v and %v, %v", first.LicenseKey, second.LicenseKey, err)
			}
			payment.Once = nil
			_, _, err = n.RecordPayment(nodetest.Context(t), owner, other.OrderNo, payment)
			if licensing.ReasonOf(err) != licensing.ReasonInvalidField {
				t.Errorf("another order with the same reference: %v", err)
			}
		}
	}
}
