package node_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// limitedBy returns the policy of the limit that an error comes from; empty if no limit refused.
func limitedBy(err error) string {
	var refused *licensing.Error
	if errors.As(err, &refused) && refused.Reason == licensing.ReasonRateLimited && refused.Limit != nil {
		return refused.Limit.Policy
	}
	return ""
}

// wantChanges makes changes until the limit refuses one.
func wantChanges(t *testing.T, want int, change func(i int) error) {
	t.Helper()
	for i := range 2 * want {
		switch err := change(i); {
		case limitedBy(err) == node.PolicyReserve:
			if i != want {
				t.Errorf("the limit let in %d changes, want %d", i, want)
			}
			return
		case err != nil:
			t.Fatalf("change %d: %v", i, err)
		}
	}
	t.Fatal("nothing limits the changes")
}

// stopped returns a service with a clock that stands still until the test moves it.
func stopped(t *testing.T, db store.Store) (*service.Service, *atomic.Pointer[time.Time]) {
	var clock atomic.Pointer[time.Time]
	now := time.Now()
	clock.Store(&now)
	return nodetest.New(t, db, func(c *service.Config) { c.Clock = func() time.Time { return *clock.Load() } }), &clock
}

// TestChangesInReserve: while the store is almost full, an owner makes 100 changes at once and 10 a second, whatever
// the changes are. The owner's end users and other owners have changes of their own. Requests that change nothing do
// not count.
func TestChangesInReserve(t *testing.T) {
	db := openSpaced(t)
	n, clock := stopped(t, db)
	owner := nodetest.NewOwner(licensing.Test)
	key := grantTo(t, n, owner, 3)
	nodetest.MustActivate(t, n, key, "bound")
	other := grantTo(t, n, nodetest.NewOwner(licensing.Test), 3)
	suspended := false
	toggle := func(owner licensing.Owner, key licensing.LicenseKey) error {
		target := licensing.Target{Key: key, Caller: owner}
		var cmd licensing.Command = licensing.SuspendLicense{Target: target}
		if suspended {
			cmd = licensing.ReinstateLicense{Target: target}
		}
		_, _, err := n.ChangeLicense(nodetest.Context(t), owner, service.LicenseChange{Key: key, Command: cmd})
		if err == nil {
			suspended = !suspended
		}
		return err
	}
	for range 120 { // the limit does not count what came before
		nodetest.WantError(t, toggle(owner, key), nil)
	}
	db.set(store.SpaceReserve)
	wantChanges(t, 100, func(int) error { return toggle(owner, key) })
	if err := n.TakeChange(owner); limitedBy(err) != node.PolicyReserve {
		t.Errorf("a change without a command: %v", err)
	}
	for range 3 { // a bound device changes nothing
		nodetest.MustActivate(t, n, key, "bound")
	}
	if _, err := n.License(nodetest.Context(t), owner, key, store.DevicePage{Limit: 1}); err != nil {
		t.Errorf("a look-up: %v", err)
	}
	if _, err := remove(nodetest.Context(t), n, key, "bound"); err != nil {
		t.Errorf("a removal by an end user: %v", err)
	}
	absent := licensing.RemoveDevice{Target: licensing.Target{Key: other}, Device: "absent"}
	if _, err := n.RemoveDevice(nodetest.Context(t), absent); err != nil {
		t.Errorf("another owner: %v", err)
	}
	later := clock.Load().Add(time.Second)
	clock.Store(&later)
	wantChanges(t, 10, func(int) error { return toggle(owner, key) })
	for _, space := range []store.Space{store.SpaceFull, store.SpaceFree} {
		db.set(space)
		nodetest.WantError(t, toggle(owner, key), nil) // a store that is full refuses the change itself
		nodetest.WantError(t, n.TakeChange(owner), nil)
	}
}

// TestPaymentsInReserve: an owner whose changes are used up is still paid, and the node records the refunds that the
// provider has made.
func TestPaymentsInReserve(t *testing.T) {
	db := openSpaced(t)
	n, _ := stopped(t, db)
	owner := nodetest.NewOwner(licensing.Test)
	order, _, err := n.CreateOrder(nodetest.Context(t), owner,
		service.NewOrder{ProductID: "pro", Amount: 100, Currency: "EUR"})
	if err != nil {
		t.Fatal(err)
	}
	db.set(store.SpaceReserve)
	request := func() error {
		_, _, err := n.ChangeOrder(nodetest.Context(t), owner, order.OrderNo, licensing.RequestRefund{By: "key_x"}, nil)
		return err
	}
	for n.TakeChange(owner) == nil {
	}
	paid, err := n.PayOrder(nodetest.Context(t), order, nodetest.SandboxPayment(order.OrderNo))
	if err != nil || paid.Order().LicenseKey.IsZero() {
		t.Fatalf("the payment: %+v, %v", paid.Order(), err)
	}
	if err := request(); limitedBy(err) != node.PolicyReserve {
		t.Errorf("the request for a refund: %v", err)
	}
	db.set(store.SpaceFree)
	nodetest.WantError(t, request(), nil)
	db.set(store.SpaceReserve)
	if _, err := n.TryRefund(nodetest.Context(t), order, false); err != nil {
		t.Errorf("the try of a refund: %v", err)
	}
	refunded, err := n.RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
	if err != nil || refunded.Order().RefundedAt.IsZero() {
		t.Errorf("the refund: %+v, %v", refunded.Order(), err)
	}
}

// TestClaimsInReserve: a request that is refused with its Idempotency-Key stores a claim, and counts.
func TestClaimsInReserve(t *testing.T) {
	db := openSpaced(t)
	n, _ := stopped(t, db)
	owner := nodetest.NewOwner(licensing.Test)
	key := grantTo(t, n, owner, 3)
	target := licensing.Target{Key: key, Caller: owner}
	request := func(i int, cmd licensing.Command) error {
		once := &node.Once{Hash: fmt.Sprintf("%016d", i), Fingerprint: [32]byte{byte(i)}}
		_, _, err := n.ChangeLicense(nodetest.Context(t), owner,
			service.LicenseChange{Key: key, Command: cmd, Once: once})
		return err
	}
	nodetest.WantError(t, request(0, licensing.RevokeLicense{Target: target}), nil)
	db.set(store.SpaceReserve)
	refused := &licensing.Error{Reason: licensing.ReasonInvalidLicenseState}
	wantChanges(t, 100, func(i int) error {
		err := request(1+i, licensing.SuspendLicense{Target: target})
		if errors.Is(err, refused) {
			return nil
		}
		return err
	})
	nodetest.WantError(t, request(1, licensing.SuspendLicense{Target: target}), refused) // its claim is stored
}
