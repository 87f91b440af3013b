package service_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"licet/internal/nodetest"
	"licet/kv"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// budgetNode returns a node with a budget of keys, and its store. Tests run the passes of KeepUsage by hand.
func budgetNode(t *testing.T, keys int64) (*service.Service, *kv.Store) {
	t.Helper()
	db := nodetest.OpenStore(t)
	return budgetNodeOn(t, db, keys), db
}

func budgetNodeOn(t *testing.T, db *kv.Store, keys int64) *service.Service {
	t.Helper()
	return nodetest.New(t, db, func(cfg *service.Config) {
		withRing(t)(cfg)
		cfg.Usages, cfg.Budget = db, licensing.Budget{Keys: keys}
	})
}

// grantTo grants licenses to an owner.
func grantTo(
	t *testing.T, n *service.Service, owner licensing.Owner, quantity, maxDevices int, once *node.Once,
) ([]licensing.LicenseKey, bool, error) {
	granted, replayed, err := n.Grant(nodetest.Context(t), owner,
		service.Grant{ProductID: "pro", Quantity: quantity, MaxDevices: &maxDevices, Once: once})
	var keys []licensing.LicenseKey
	for _, l := range granted {
		keys = append(keys, l.License.Key)
	}
	return keys, replayed, err
}

// mustGrant is grantTo without an Idempotency-Key, for requests that succeed.
func mustGrant(
	t *testing.T, n *service.Service, owner licensing.Owner, quantity, maxDevices int,
) []licensing.LicenseKey {
	t.Helper()
	keys, _, err := grantTo(t, n, owner, quantity, maxDevices, nil)
	nodetest.WantError(t, err, nil)
	return keys
}

// TestRefusedTrialsAreCounted: the metric tells refused trials from other refusals.
func TestRefusedTrialsAreCounted(t *testing.T) {
	db := nodetest.OpenStore(t)
	var refusals *prometheus.CounterVec
	n := nodetest.New(t, db, func(cfg *service.Config) {
		withRing(t)(cfg)
		cfg.Usages, cfg.Budget = db, licensing.Budget{Keys: 63} // room for no trial
		refusals = cfg.Metrics.BudgetRefusals
	})
	owner := nodetest.NewOwner(licensing.Test)
	mustGrant(t, n, owner, 1, 3)
	nodetest.WantError(t, n.RefuseTrial(owner), licensing.ErrTrialBudgetReached)
	nodetest.WantError(t, n.Refuse(owner), nil)
	for kind, want := range map[string]float64{"trial": 1, "growth": 0} {
		if got := testutil.ToFloat64(refusals.WithLabelValues(kind)); got != want {
			t.Errorf("%v refusals of the kind %s, want %v", got, kind, want)
		}
	}
}

// TestBudgetRefusesOrdinaryGrowth fills the budget of an account. From then on the node refuses requests that make the
// account store more, and serves all other requests.
func TestBudgetRefusesOrdinaryGrowth(t *testing.T) {
	n, db := budgetNode(t, 50) // ordinary growth ends at 40 keys; the warning comes at 32
	owner, other := nodetest.NewOwner(licensing.Test), nodetest.NewOwner(licensing.Test)
	ctx := nodetest.Context(t)
	warnings := func() []string {
		t.Helper()
		return nodetest.Lines(nodetest.HistoryOf(t, db, licensing.UsageRef(owner)))
	}

	unlimited := mustGrant(t, n, owner, 1, 0)[0]
	limited := mustGrant(t, n, owner, 1, 3)[0]
	order, _, err := n.CreateOrder(ctx, owner, nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
	second, _, err := n.CreateOrder(ctx, owner, nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
	endpoint, _, err := n.CreateWebhook(ctx, service.EndpointCreation{Owner: owner, URL: "https://shop.example/"})
	nodetest.WantError(t, err, nil)
	product := licensing.PutProduct{ID: "tools", Owner: owner, Terms: licensing.DefaultTerms(), Metadata: `{"of":"tools"}`}
	_, _, err = n.PutProduct(ctx, product)
	nodetest.WantError(t, err, nil)
	described := licensing.Target{Key: unlimited, Caller: owner}
	_, _, err = n.ChangeLicense(ctx, owner, service.LicenseChange{Key: unlimited,
		Command: licensing.UpdateLicense{Target: described, Metadata: `{"seat":"the first"}`}})
	nodetest.WantError(t, err, nil)
	once := nodetest.Once("before", "r")
	_, _, err = grantTo(t, n, owner, 1, 3, once)
	nodetest.WantError(t, err, nil)
	nodetest.MustActivate(t, n, unlimited, "first")
	nodetest.MustActivate(t, n, unlimited, "gone")
	n.StoreUsage(ctx)
	usage, budget, err := n.Usage(ctx, owner)
	if err != nil || budget.Keys != 50 || usage.Keys < 15 || usage.Keys >= 32 || len(warnings()) > 0 {
		t.Fatalf("%+v, %+v, %v, %v", usage, budget, err, warnings())
	}
	mustGrant(t, n, owner, int(32-usage.Keys+1)/2, 3)
	n.StoreUsage(ctx)
	n.StoreUsage(ctx)
	if got := warnings(); len(got) != 1 || got[0] != "1 account.budget_warning system" {
		t.Fatalf("warnings %v", got)
	}
	suspended := mustGrant(t, n, owner, 4, 3)[0]
	n.StoreUsage(ctx)
	if got := warnings(); len(got) != 1 {
		t.Errorf("warnings %v", got)
	}

	refused, long := nodetest.Once("refused", "r"), strings.Repeat("x", licensing.MaxSmallReason+1)
	url := "https://shop.example/other"
	for name, do := range map[string]func() error{
		"a grant":         func() error { _, _, err := grantTo(t, n, owner, 1, 3, refused); return err },
		"an order":        func() error { _, _, err := n.CreateOrder(ctx, owner, nodetest.NewOrder(100)); return err },
		"an unpaid order": func() error { _, _, err := n.CreateOrder(ctx, owner, nodetest.NewOrder(0)); return err },
		"a product": func() error {
			_, _, err := n.PutProduct(ctx, licensing.PutProduct{ID: "new", Owner: owner,
				Terms: licensing.DefaultTerms()})
			return err
		},
		"an API key": func() error {
			_, _, err := n.CreateAPIKey(ctx, service.KeyCreation{
				NewKey: service.NewKey{Owner: owner, Name: "shop", Scopes: []string{"orders"}}})
			return err
		},
		"an endpoint": func() error {
			_, _, err := n.CreateWebhook(ctx, service.EndpointCreation{Owner: owner, URL: url})
			return err
		},
		"a longer product": func() error {
			longer := product
			longer.Name = "Tools"
			_, _, err := n.PutProduct(ctx, longer)
			return err
		},
		"longer metadata": func() error {
			_, _, err := n.ChangeLicense(ctx, owner, service.LicenseChange{Key: unlimited,
				Command: licensing.UpdateLicense{Target: described, Metadata: `{"seat":"the last of all"}`}})
			return err
		},
		"a longer URL": func() error {
			_, err := n.UpdateWebhook(ctx, owner, licensing.UpdateEndpoint{ID: endpoint.Endpoint.ID, URL: &url})
			return err
		},
		"a device of an unlimited license": func() error {
			_, err := nodetest.Activate(ctx, n, unlimited, "new")
			return err
		},
		"settings": func() error {
			_, err := n.ChangeSettings(ctx,
				licensing.ChangeSettings{Owner: owner, ExternalKeys: licensing.MatchCompact})
			return err
		},
		"metadata": func() error {
			_, _, err := n.ChangeLicense(ctx, owner, service.LicenseChange{Key: limited,
				Command: licensing.UpdateLicense{Target: licensing.Target{Key: limited, Caller: owner}, Metadata: `{"a":1}`}})
			return err
		},
		"a new key of a license": func() error {
			_, _, err := n.ReissueLicense(ctx, owner, service.Reissue{Target: described, Once: refused})
			return err
		},
		"a larger device limit": func() error {
			_, _, err := n.ChangeLicense(ctx, owner, service.LicenseChange{Key: limited,
				Command: licensing.UpdateLicense{
					Target: licensing.Target{Key: limited, Caller: owner}, MaxDevices: new(4)}})
			return err
		},
		"a device limit for an unlimited license": func() error {
			_, _, err := n.ChangeLicense(ctx, owner, service.LicenseChange{Key: unlimited,
				Command: licensing.UpdateLicense{Target: described, MaxDevices: new(1_000_000)}})
			return err
		},
		"a suspension with a long reason": func() error {
			_, _, err := n.ChangeLicense(ctx, owner, service.LicenseChange{Key: suspended,
				Command: licensing.SuspendLicense{
					Target: licensing.Target{Key: suspended, Caller: owner}, Reason: long}})
			return err
		},
		"a cancellation with a long reason": func() error {
			_, _, err := n.ChangeOrder(ctx, owner, second.OrderNo, licensing.CancelOrder{Reason: long}, refused)
			return err
		},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			for range 2 {
				nodetest.WantError(t, do(), licensing.ErrAccountBudgetReached)
			}
		})
	}
	target := licensing.Target{Key: limited, Caller: owner}
	for name, do := range map[string]func() error{
		"a bound device of an unlimited license": func() error {
			_, err := nodetest.Activate(ctx, n, unlimited, "first")
			return err
		},
		"a device within a limit": func() error { _, err := nodetest.Activate(ctx, n, limited, "a"); return err },
		"a payment and its refund": func() error {
			if _, err := n.PayOrder(ctx, order, nodetest.SandboxPayment(order.OrderNo)); err != nil {
				return err
			}
			_, err := n.RecordRefund(ctx, order, service.MadeRefund{})
			return err
		},
		"a cancellation": func() error { _, err := n.CancelOrder(ctx, second); return err },
		"a renewal": func() error {
			_, _, err := n.ChangeLicense(ctx, owner,
				service.LicenseChange{Key: limited, Once: nodetest.Once("renew", "r"),
					Command: licensing.RenewLicense{Target: target,
						ExpiresAt: time.Now().Add(time.Hour).Truncate(time.Millisecond)}})
			return err
		},
		"a smaller device limit": func() error {
			_, _, err := n.ChangeLicense(ctx, owner, service.LicenseChange{Key: limited,
				Command: licensing.UpdateLicense{Target: target, MaxDevices: new(2)}})
			return err
		},
		"a suspension": func() error {
			_, _, err := n.ChangeLicense(ctx, owner,
				service.LicenseChange{Key: suspended, Command: licensing.SuspendLicense{
					Target: licensing.Target{Key: suspended, Caller: owner}, Reason: long[1:]}})
			return err
		},
		"a removal": func() error {
			_, err := n.RemoveDevice(ctx, licensing.RemoveDevice{
				Target: licensing.Target{Key: unlimited, Caller: owner}, Device: "gone"})
			return err
		},
		"cleared metadata": func() error {
			_, _, err := n.ChangeLicense(ctx, owner, service.LicenseChange{Key: unlimited,
				Command: licensing.UpdateLicense{Target: described, Metadata: `{"seat":null}`}})
			return err
		},
		"a shorter product": func() error {
			shorter := product
			shorter.Metadata = ""
			_, _, err := n.PutProduct(ctx, shorter)
			return err
		},
		"a shorter URL": func() error {
			_, err := n.UpdateWebhook(ctx, owner,
				licensing.UpdateEndpoint{ID: endpoint.Endpoint.ID, URL: new("https://a.example/")})
			return err
		},
		"the repetition of an earlier grant": func() error {
			_, replayed, err := grantTo(t, n, owner, 1, 3, once)
			if err == nil && !replayed {
				t.Error("not replayed")
			}
			return err
		},
		"another account": func() error { _, _, err := grantTo(t, n, other, 1, 0, nil); return err },
	} {
		t.Run("serves "+name, func(t *testing.T) { nodetest.WantError(t, do(), nil) })
	}

	// Another account that asks to change a license learns nothing about the owner's budget.
	_, _, err = n.ChangeLicense(ctx, other, service.LicenseChange{Key: unlimited, Command: licensing.UpdateLicense{
		Target: licensing.Target{Key: unlimited, Caller: other}, Metadata: `{"seat":"mine"}`}})
	nodetest.WantError(t, err, licensing.ErrLicenseNotFound)

	// A larger budget takes effect at once, also for the request with the same Idempotency-Key.
	raised, _ := budgetNode(t, 1000)
	if keys, replayed, err := grantTo(t, raised, owner, 1, 3, refused); err != nil || replayed || len(keys) != 1 {
		t.Errorf("with a larger budget: %v, replayed %v, %v", keys, replayed, err)
	}
}

// TestBudgetBoundsClaims: beyond its whole budget an owner goes on with changes that no budget refuses, but only with a
// limited number of new Idempotency-Keys, since each of these stores a claim. Repetitions and requests without an
// Idempotency-Key go on.
func TestBudgetBoundsClaims(t *testing.T) {
	n, _ := budgetNode(t, 300)
	owner, ctx := nodetest.NewOwner(licensing.Test), nodetest.Context(t)
	key := mustGrant(t, n, owner, 1, 3)[0]
	suspend := func(once *node.Once) (replayed bool, err error) {
		_, replayed, err = n.ChangeLicense(ctx, owner, service.LicenseChange{Key: key, Once: once,
			Command: licensing.SuspendLicense{Target: licensing.Target{Key: key, Caller: owner}}})
		return replayed, err
	}
	for i := range 160 { // two keys each
		_, err := suspend(nodetest.Once(fmt.Sprint("within ", i), "r"))
		nodetest.WantError(t, err, nil)
	}
	n.StoreUsage(ctx)
	var refused *licensing.Error
	for i := 0; refused == nil; i++ {
		_, err := suspend(nodetest.Once(fmt.Sprint("beyond ", i), "r"))
		if err != nil && !errors.As(err, &refused) || i > 1000 {
			t.Fatalf("request %d beyond the budget: %v", i, err)
		}
	}
	if refused.Limit == nil || refused.Limit.Policy != node.PolicyClaims {
		t.Errorf("refused with %v, by %v", refused, refused.Limit)
	}
	if replayed, err := suspend(nodetest.Once("within 0", "r")); err != nil || !replayed {
		t.Errorf("a repetition: replayed %v, %v", replayed, err)
	}
	_, err := suspend(nil)
	nodetest.WantError(t, err, nil)
}

// TestTwoNodesAddUp lets two nodes grow one account at the same time. The record has the sum, and each node also counts
// the growth of the other. Each grant may also store one key of events, which depends on how batches fall.
func TestTwoNodesAddUp(t *testing.T) {
	first, _ := budgetNode(t, 100)
	second, _ := budgetNode(t, 100)
	nodes := []*service.Service{first, second}
	owner, ctx := nodetest.NewOwner(licensing.Test), nodetest.Context(t)
	mustGrant(t, first, owner, 1, 1) // also the product
	var group sync.WaitGroup
	for _, n := range nodes {
		group.Go(func() {
			for range 4 {
				mustGrant(t, n, owner, 4, 1)
				n.StoreUsage(ctx)
			}
		})
	}
	group.Wait()
	mustGrant(t, first, owner, 8, 1) // at 68 to 77 keys; the limit is 80
	for _, n := range nodes {
		n.StoreUsage(ctx)
		usage, _, err := n.Usage(ctx, owner)
		if want := int64(2 * (1 + 2*4*4 + 8)); err != nil || usage.Keys < want || usage.Keys > want+2+10 {
			t.Errorf("%+v, %v, want %d keys and a few more", usage, err, want)
		}
		_, _, err = grantTo(t, n, owner, 1, 1, nil)
		nodetest.WantError(t, err, licensing.ErrAccountBudgetReached)
	}

	// A node that has just started knows the usage before its first grant.
	third, _ := budgetNode(t, 100)
	_, _, err := grantTo(t, third, owner, 1, 1, nil)
	nodetest.WantError(t, err, licensing.ErrAccountBudgetReached)
}

// TestKeepUsage stores the growth of a node at intervals, and once more at the end.
func TestKeepUsage(t *testing.T) {
	db := nodetest.OpenStore(t)
	n := nodetest.New(t, db, func(cfg *service.Config) {
		cfg.Usages, cfg.Budget, cfg.UsageEvery = db, licensing.Budget{Keys: 1000}, time.Hour
	})
	owner := nodetest.NewOwner(licensing.Test)
	mustGrant(t, n, owner, 3, 1)
	ctx, stop := context.WithCancel(nodetest.Context(t))
	done := make(chan struct{})
	go func() { n.KeepUsage(ctx); close(done) }()
	stop()
	<-done
	if usage, _, err := n.Usage(nodetest.Context(t), owner); err != nil || usage.Keys < 8 || usage.Bytes < 500 {
		t.Errorf("%+v, %v", usage, err)
	}
}

// TestBudgetInReserve: the budget also holds while the store is almost full.
func TestBudgetInReserve(t *testing.T) {
	db := &reserved{Store: nodetest.OpenStore(t)}
	n := nodetest.New(t, db, func(cfg *service.Config) {
		withRing(t)(cfg)
		cfg.Usages, cfg.Budget = db.Store, licensing.Budget{Keys: 10}
	})
	owner, ctx := nodetest.NewOwner(licensing.Test), nodetest.Context(t)
	key := mustGrant(t, n, owner, 4, 1)[0]
	n.StoreUsage(ctx)
	n.StoreUsage(ctx)
	db.full.Store(true)
	target := licensing.Target{Key: key, Caller: owner}
	for _, cmd := range []licensing.Command{
		licensing.UpdateLicense{Target: target, MaxDevices: new(2)},
		licensing.SuspendLicense{Target: target, Reason: strings.Repeat("x", licensing.MaxSmallReason+1)},
	} {
		_, _, err := n.ChangeLicense(ctx, owner, service.LicenseChange{Key: key, Command: cmd})
		nodetest.WantError(t, err, licensing.ErrAccountBudgetReached)
	}
	_, _, err := n.ChangeLicense(ctx, owner,
		service.LicenseChange{Key: key, Command: licensing.SuspendLicense{Target: target, Reason: "unpaid"}})
	nodetest.WantError(t, err, nil)
}

// reserved is a store that is almost full once a test says so.
type reserved struct {
	*kv.Store
	full atomic.Bool
}

func (s *reserved) Space() store.Space {
	if s.full.Load() {
		return store.SpaceReserve
	}
	return store.SpaceFree
}

// TestBudgetOfOrders refuses orders for more licenses than the budget has room for, and payments once it has no room
// any more. An order that a provider has been paid for gets all its licenses, whatever the budget.
func TestBudgetOfOrders(t *testing.T) {
	db := nodetest.OpenStore(t)
	n := budgetNodeOn(t, db, 1000) // of which 800 keys are for ordinary growth
	owner, ctx := nodetest.NewOwner(licensing.Test), nodetest.Context(t)
	order := func(quantity int, amount int64) (licensing.Order, error) {
		in := nodetest.NewOrder(amount)
		in.Quantity, in.Outside = quantity, amount > 0
		made, _, err := n.CreateOrder(ctx, owner, in)
		return made, err
	}
	for _, amount := range []int64{0, 100} {
		_, err := order(300, amount)
		nodetest.WantError(t, err, licensing.ErrAccountBudgetReached)
	}
	var orders []licensing.Order
	for range 3 { // each fits, all of them don't
		made, err := order(200, 100)
		nodetest.WantError(t, err, nil)
		orders = append(orders, made)
	}
	pay := func(i int, reference string) error {
		_, _, err := n.RecordPayment(ctx, owner, orders[i].OrderNo,
			service.OutsidePayment{Reference: reference, By: "key_1"})
		return err
	}
	nodetest.WantError(t, pay(0, "first"), nil)
	n.StoreUsage(ctx)
	nodetest.WantError(t, pay(1, "second"), licensing.ErrAccountBudgetReached)
	nodetest.WantError(t, pay(0, "first"), nil) // once more
	nodetest.WantError(t, n.RefuseLicenses(ctx, &orders[1]), licensing.ErrAccountBudgetReached)
	_, err := order(200, 100)
	nodetest.WantError(t, err, licensing.ErrAccountBudgetReached)
	if _, err := n.CancelOrder(ctx, orders[2]); err != nil {
		t.Fatal(err)
	}
	if err := pay(2, "third"); licensing.ReasonOf(err) != licensing.ReasonInvalidOrderState {
		t.Errorf("the payment of a canceled order: %v", err)
	}
	single, err := order(1, 100)
	nodetest.WantError(t, err, nil)
	nodetest.WantError(t, n.RefuseLicenses(ctx, &single), nil)
	paid, err := n.PayOrder(ctx, orders[1], nodetest.SandboxPayment("p"))
	if err != nil || new(paid.Order()).Issued() != 200 {
		t.Errorf("a provider was paid: %d licenses, %v", new(paid.Order()).Issued(), err)
	}
	n.StoreUsage(ctx)
	if usage, _, err := n.Usage(ctx, owner); err != nil || usage.Keys > 3*400+40 || usage.Bytes > 512*400 {
		t.Errorf("400 licenses take %+v, %v: more than licensing.SizeOfLicenses says", usage, err)
	}
}
