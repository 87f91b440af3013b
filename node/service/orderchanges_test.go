package service_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

var invalidOrderState = &licensing.Error{Reason: licensing.ReasonInvalidOrderState}

// TestChangeOrderOnce cancels orders under Idempotency-Keys: the claim keeps the result, and also a refusal.
func TestChangeOrderOnce(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	owner := nodetest.NewOwner(licensing.Test)
	ctx := nodetest.Context(t)
	create := func() licensing.Order {
		t.Helper()
		order, _, err := n.CreateOrder(ctx, owner, nodetest.NewOrder(100))
		nodetest.WantError(t, err, nil)
		return order
	}
	cancel := licensing.CancelOrder{Reason: "changed my mind"}
	order := create()
	for i := range 3 {
		got, replayed, err := n.ChangeOrder(ctx, owner, order.OrderNo, cancel, nodetest.Once("cancel", "r"))
		if err != nil || replayed != (i > 0) || got.Status(n.Now()) != licensing.OrderCanceled ||
			got.StateReason != cancel.Reason {
			t.Errorf("call %d: %+v, replayed %v, %v", i, got, replayed, err)
		}
	}
	// The order was paid and refunded since: the replay shows the order as it is now, although it could not be canceled
	// any more.
	_, err := n.PayOrder(ctx, order, nodetest.SandboxPayment(order.OrderNo))
	nodetest.WantError(t, err, nil)
	_, err = n.RecordRefund(ctx, order, service.MadeRefund{})
	nodetest.WantError(t, err, nil)
	got, replayed, err := n.ChangeOrder(ctx, owner, order.OrderNo, cancel, nodetest.Once("cancel", "r"))
	if err != nil || !replayed || got.Status(n.Now()) != licensing.OrderRefunded {
		t.Errorf("after the refund: %+v, replayed %v, %v", got, replayed, err)
	}
	_, _, err = n.ChangeOrder(ctx, owner, order.OrderNo, cancel, nodetest.Once("another", "r"))
	nodetest.WantError(t, err, invalidOrderState)
	_, _, err = n.ChangeOrder(ctx, owner, "ord_x", cancel, nodetest.Once("cancel", "another request"))
	nodetest.WantError(t, err, licensing.ErrIdempotencyKeyReused)

	// For an order that is canceled already, the success is stored too.
	order = create()
	_, err = n.CancelOrder(ctx, order)
	nodetest.WantError(t, err, nil)
	for i := range 2 {
		got, replayed, err = n.ChangeOrder(ctx, owner, order.OrderNo, cancel, nodetest.Once("late", "r"))
		if err != nil || replayed != (i > 0) || got.StateReason != "" {
			t.Errorf("canceled before, call %d: %+v, replayed %v, %v", i, got, replayed, err)
		}
	}

	// The claim keeps a refusal, whatever happens to the order later. It does not keep the error of an order that does
	// not exist.
	order = create()
	refund := licensing.RequestRefund{}
	for i := range 2 {
		_, replayed, err = n.ChangeOrder(ctx, owner, order.OrderNo, refund, nodetest.Once("refund", "r"))
		nodetest.WantError(t, err, invalidOrderState)
		if replayed != (i > 0) {
			t.Errorf("refusal %d: replayed %v", i, replayed)
		}
		_, err = n.PayOrder(ctx, order, nodetest.SandboxPayment(order.OrderNo))
		nodetest.WantError(t, err, nil)
	}
	for _, missing := range []string{"ord_x", "ord_0" + "00000000000000000000000000", ""} {
		for range 2 {
			_, replayed, err = n.ChangeOrder(ctx, owner, missing, cancel, nodetest.Once("missing "+missing, "r"))
			nodetest.WantError(t, err, licensing.ErrOrderNotFound)
			if replayed {
				t.Errorf("the error of order %q, which does not exist, is replayed", missing)
			}
		}
		_, _, err = n.ChangeOrder(ctx, owner, missing, cancel, nil)
		nodetest.WantError(t, err, licensing.ErrOrderNotFound)
	}
	_, _, err = n.ChangeOrder(ctx, nodetest.NewOwner(licensing.Test), order.OrderNo, cancel, nil)
	nodetest.WantError(t, err, licensing.ErrOrderNotFound)
}

// TestChangeOrderUnknown loses the answer to a cancellation, which the store has made or not. The repeated request
// cancels the order once.
func TestChangeOrderUnknown(t *testing.T) {
	for _, made := range []bool{true, false} {
		plain := nodetest.OpenStore(t)
		owner := nodetest.NewOwner(licensing.Test)
		n := nodetest.New(t, plain)
		order, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.NewOrder(100))
		nodetest.WantError(t, err, nil)
		failing := nodetest.New(t, &storetest.Faulty{Store: plain, OnCommit: func(store.Change) storetest.Fault {
			return storetest.Fault{Skip: !made, Say: licensing.ErrOutcomeUnknown}
		}})
		_, _, err = failing.ChangeOrder(nodetest.Context(t), owner, order.OrderNo, licensing.CancelOrder{},
			nodetest.Once("k", "r"))
		nodetest.WantError(t, err, licensing.ErrOutcomeUnknown)
		got, replayed, err := n.ChangeOrder(nodetest.Context(t), owner, order.OrderNo, licensing.CancelOrder{},
			nodetest.Once("k", "r"))
		if err != nil || replayed != made || got.Status(n.Now()) != licensing.OrderCanceled {
			t.Errorf("made %v: %+v, replayed %v, %v", made, got, replayed, err)
		}
	}
}

// TestOneKeyOnTwoNodes cancels one order under one key again and again, through two nodes at the same time.
func TestOneKeyOnTwoNodes(t *testing.T) {
	owner := nodetest.NewOwner(licensing.Test)
	nodes := []*service.Service{nodetest.New(t, nodetest.OpenStore(t)), nodetest.New(t, nodetest.OpenStore(t))}
	order, _, err := nodes[0].CreateOrder(nodetest.Context(t), owner, nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
	var first atomic.Int32
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			for {
				got, replayed, err := nodes[i%2].ChangeOrder(nodetest.Context(t), owner, order.OrderNo,
					licensing.CancelOrder{}, nodetest.Once("k", "r"))
				if errors.Is(err, licensing.ErrRequestInProgress) {
					continue
				}
				if err != nil || got.Status(time.Now()) != licensing.OrderCanceled {
					t.Errorf("%+v, %v", got, err)
				}
				if !replayed {
					first.Add(1)
				}
				return
			}
		})
	}
	group.Wait()
	if first.Load() != 1 {
		t.Errorf("%d callers got an answer that is no replay", first.Load())
	}
}

// soldUnlimited makes an order of a product whose licenses have no limit, and pays it.
func soldUnlimited(t *testing.T, n *service.Service, db store.Store) licensing.Order {
	t.Helper()
	owner := nodetest.NewOwner(licensing.Test)
	ref := licensing.ProductRef(owner, "pro")
	product := &licensing.Product{ID: "pro", Owner: owner, Terms: licensing.Terms{KeyPrefix: "LIC"}, CreatedAt: n.Now()}
	if _, err := db.Commit(nodetest.Context(t),
		store.Change{Writes: []store.Write{{Ref: ref, Record: licensing.Record{Product: product}}}}); err != nil {
		t.Fatal(err)
	}
	order, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
	result, err := n.PayOrder(nodetest.Context(t), order, nodetest.SandboxPayment(order.OrderNo))
	nodetest.WantError(t, err, nil)
	return result.Order()
}

// TestRefundAgainstActivations refunds an order at either of two nodes while many activations of its license come to
// both. Once the refund was acknowledged, no activation succeeds.
func TestRefundAgainstActivations(t *testing.T) {
	for refunding := range 2 {
		stores := []store.Store{nodetest.OpenStore(t), nodetest.OpenStore(t)}
		nodes := []*service.Service{nodetest.New(t, stores[0]), nodetest.New(t, stores[1])}
		order := soldUnlimited(t, nodes[0], stores[0])
		var refunded atomic.Bool
		var accepted atomic.Int32
		warm := make(chan struct{})
		var group sync.WaitGroup
		for client := range 16 {
			group.Go(func() {
				for i := 0; ; i++ {
					after := refunded.Load()
					_, err := nodetest.Activate(nodetest.Context(t), nodes[client%2], order.LicenseKey,
						fmt.Sprint(client, "-", i%300))
					switch {
					case errors.Is(err, licensing.ErrLicenseRevoked):
						return
					case err == nil && after:
						t.Error("a device was activated after the refund was acknowledged")
						return
					case err == nil:
						if accepted.Add(1) == 200 {
							close(warm)
						}
					case after:
						t.Errorf("after the refund: %v", err)
						return
					}
				}
			})
		}
		<-warm
		result, err := nodes[refunding].RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
		for licensing.NotExecuted(err) { // it was lost too often
			result, err = nodes[refunding].RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
		}
		refunded.Store(true)
		if err != nil || new(result.Order()).Status(time.Now()) != licensing.OrderRefunded {
			t.Errorf("refund: %v, %+v", err, result.Order())
		}
		group.Wait()
		view, err := nodes[0].License(nodetest.Context(t), order.Owner, order.LicenseKey, store.DevicePage{Limit: 1})
		if err != nil || view.License.Status(time.Now()) != licensing.Revoked {
			t.Errorf("the license is %+v, %v", view, err)
		}
	}
}

// TestRefundThatAlwaysLoses lets another node change the license before each swap of a refund. All swaps of the refund
// are lost, and the node gives up after some of them, so that commands of the license go on. Later the refund is
// recorded.
func TestRefundThatAlwaysLoses(t *testing.T) {
	const many = 200
	plain := nodetest.OpenStore(t)
	rival := nodetest.New(t, plain)
	order := soldUnlimited(t, rival, plain)
	ctx, cancel := context.WithCancel(nodetest.Context(t))
	defer cancel()
	var swaps atomic.Int32
	n := nodetest.New(t,
		&storetest.Faulty{Store: nodetest.OpenStore(t), OnCommit: func(change store.Change) storetest.Fault {
			if len(change.Writes) == 3 {
				if swaps.Add(1) > many {
					cancel()
				}
				nodetest.MustActivate(t, rival, order.LicenseKey, fmt.Sprint("rival ", swaps.Load()))
			}
			return storetest.Fault{}
		}})
	_, err := n.RecordRefund(ctx, order, service.MadeRefund{})
	if !licensing.NotExecuted(err) || swaps.Load() > many {
		t.Errorf("after %d swaps that were lost: %v", swaps.Load(), err)
	}
	nodetest.MustActivate(t, n, order.LicenseKey, "afterwards")
	result, err := rival.RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
	if err != nil || result.Order().RefundedAt.IsZero() {
		t.Errorf("later: %v, %+v", err, result.Order())
	}
}

// TestRefundIsOneTransaction loses the answer to a refund, which the store has made or not. The order and the license
// change together, and the repeated request makes the refund.
func TestRefundIsOneTransaction(t *testing.T) {
	for _, made := range []bool{true, false} {
		plain := nodetest.OpenStore(t)
		n := nodetest.New(t, plain)
		order := soldUnlimited(t, n, plain)
		commits := 0
		failing := nodetest.New(t, &storetest.Faulty{Store: plain, OnCommit: func(change store.Change) storetest.Fault {
			if commits++; len(change.Writes) != 3 { // with the record of the refund
				t.Errorf("a change of %d records", len(change.Writes))
			}
			return storetest.Fault{Skip: !made, Say: licensing.ErrOutcomeUnknown}
		}})
		_, err := failing.RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
		nodetest.WantError(t, err, licensing.ErrOutcomeUnknown)
		check := func(want bool) {
			t.Helper()
			stored, err := n.Order(nodetest.Context(t), order.Owner, order.OrderNo)
			nodetest.WantError(t, err, nil)
			view, err := n.License(nodetest.Context(t), order.Owner, order.LicenseKey, store.DevicePage{Limit: 1})
			nodetest.WantError(t, err, nil)
			if stored.RefundedAt.IsZero() == want || view.License.RevokedAt.IsZero() == want {
				t.Errorf("made %v: refunded at %v, revoked at %v", made, stored.RefundedAt, view.License.RevokedAt)
			}
		}
		check(made)
		if commits != 1 {
			t.Errorf("%d commits", commits)
		}
		for range 2 {
			_, err = n.RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
			nodetest.WantError(t, err, nil)
			check(true)
		}
	}
}

// TestRefundWhoseLicenseIsRevoked: the license was revoked by hand before.
func TestRefundWhoseLicenseIsRevoked(t *testing.T) {
	db := nodetest.OpenStore(t)
	n := nodetest.New(t, db)
	order := soldUnlimited(t, n, db)
	target := licensing.Target{Key: order.LicenseKey}
	revoked, err := n.Do(nodetest.Context(t), licensing.LicenseRef(order.LicenseKey),
		licensing.RevokeLicense{Target: target})
	nodetest.WantError(t, err, nil)
	_, err = n.RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
	nodetest.WantError(t, err, nil)
	view, err := n.License(nodetest.Context(t), order.Owner, order.LicenseKey, store.DevicePage{Limit: 1})
	if err != nil || view.License != revoked.License {
		t.Errorf("the license is %+v, %v", view, err)
	}
}

// TestHeldRecords: a task locks an order and waits for the lock of its license. If its caller gives up then, the task
// changes nothing.
func TestHeldRecords(t *testing.T) {
	plain := nodetest.OpenStore(t)
	inCommit, goOn := make(chan struct{}), make(chan struct{})
	var stuck atomic.Bool
	n := nodetest.New(t, &storetest.Faulty{Store: plain, OnCommit: func(store.Change) storetest.Fault {
		if stuck.Swap(false) {
			close(inCommit)
			<-goOn
		}
		return storetest.Fault{}
	}})
	order := soldUnlimited(t, n, plain)
	stuck.Store(true)
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := nodetest.Activate(nodetest.Context(t), n, order.LicenseKey, "stuck"); err != nil {
			t.Error(err)
		}
	})
	<-inCommit
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := n.RecordRefund(ctx, order, service.MadeRefund{})
	nodetest.WantError(t, err, licensing.ErrUnavailable)
	close(goOn)
	group.Wait()
	stored, err := n.Order(nodetest.Context(t), order.Owner, order.OrderNo)
	if err != nil || !stored.RefundedAt.IsZero() {
		t.Errorf("the order is %+v, %v", stored, err)
	}
	if _, err := n.RecordRefund(nodetest.Context(t), order, service.MadeRefund{}); err != nil {
		t.Error(err)
	}
}

// TestRefundDuringAPayment records a refund of an order while another node gets the provider's confirmation: the
// store refuses the refund, or the refund also revokes the license.
func TestRefundDuringAPayment(t *testing.T) {
	plain := nodetest.OpenStore(t)
	n, owner := nodetest.New(t, plain), nodetest.NewOwner(licensing.Test)
	order, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
	loads := 0
	late := nodetest.New(t, &storetest.Faulty{Store: nodetest.OpenStore(t), OnLoad: func([]store.Want) error {
		if loads++; loads != 2 {
			return nil
		}
		// After it was read, and before it is swapped.
		_, err := n.PayOrder(nodetest.Context(t), order, nodetest.SandboxPayment(order.OrderNo))
		return err
	}})
	_, refused := late.RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
	if loads < 2 {
		_, err := n.PayOrder(nodetest.Context(t), order, nodetest.SandboxPayment(order.OrderNo))
		nodetest.WantError(t, err, nil)
	}
	stored, err := n.Order(nodetest.Context(t), owner, order.OrderNo)
	nodetest.WantError(t, err, nil)
	view, err := n.License(nodetest.Context(t), owner, stored.LicenseKey, store.DevicePage{Limit: 1})
	nodetest.WantError(t, err, nil)
	if stored.RefundedAt.IsZero() != view.License.RevokedAt.IsZero() {
		t.Errorf("refunded at %v, and its license revoked at %v (%v)", stored.RefundedAt, view.License.RevokedAt,
			refused)
	}
	nodetest.WantError(t, refused, invalidOrderState)
}
