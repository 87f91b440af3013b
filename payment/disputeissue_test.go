package payment_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
)

// unissuing is the store of a node that issues no licenses of an order after its payment.
type unissuing struct{ store.Store }

func (s unissuing) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	for _, w := range change.Writes {
		o, issued := w.Record.Order, len(w.Record.Issued)
		if o != nil && issued > 0 && o.LicensesIssued > issued {
			return store.Outcome{}, licensing.ErrUnavailable
		}
	}
	return s.Store.Commit(ctx, change)
}

// TestDisputeWhileIssuing: a dispute that comes before the order has all its licenses suspends the others, too.
func TestDisputeWhileIssuing(t *testing.T) {
	w := newFixture(t)
	c := &court{newDashboard(w.bank), true}
	_, slow := w.open(unissuing{w.store}, c)
	node, desk := w.open(w.other, c)
	const quantity = store.MaxNewLicenses + 8
	o, _, err := w.node.CreateOrder(w.ctx, owner,
		service.NewOrder{ProductID: "pro", Amount: 100, Currency: "USD", Quantity: quantity})
	if err == nil {
		o, _, err = slow.Pay(w.ctx, o)
	}
	if err != nil || !o.Issuing() {
		t.Fatalf("the payment has issued %d licenses: %v", o.Issued(), err)
	}
	for _, s := range []struct {
		says     payment.Outcome
		licenses licensing.Status
	}{{payment.OutcomeOpen, licensing.Suspended}, {payment.OutcomeWon, licensing.NotActivated}} {
		w.called(c.rule(o, 100, s.says), desk)
		if err := node.IssueLicensesDue(w.ctx); err != nil {
			t.Fatal(err)
		}
		now := w.now(o)
		if got := w.licenses(o); !slices.Equal(got, []licensing.Status{s.licenses}) || now.Issued() != quantity {
			t.Errorf("the dispute is %s: %d licenses are %v", s.says, now.Issued(), got)
		}
	}
	w.verify()
}

// TestManyDisputes: an order names at most eight open disputes. The licenses stay suspended until the last one ends,
// also if the order did not name it at first. A sweep asks about it.
func TestManyDisputes(t *testing.T) {
	w := newFixture(t)
	c := &court{newDashboard(w.bank), true}
	_, desk := w.open(w.store, c)
	for _, quantity := range []int{1, 3} {
		o := w.paidFor(quantity)
		rule := func(n int, outcome payment.Outcome) payment.Object {
			return c.ruleAbout(fmt.Sprint("du_", o.OrderNo, n), o, 10, outcome)
		}
		is := func(what string, want licensing.Status, open int) {
			t.Helper()
			now := w.now(o)
			if got := w.licenses(o); !slices.Equal(got, []licensing.Status{want}) || len(now.OpenDisputes()) != open {
				t.Errorf("%d licenses, %s: they are %v, and the order names %v", quantity, what, got,
					now.OpenDisputes())
			}
			w.verify()
		}
		const last = licensing.MaxOpenDisputes + 2
		for n := range last {
			w.called(rule(n, payment.OutcomeOpen), desk)
		}
		is("all are open", licensing.Suspended, licensing.MaxOpenDisputes)
		w.called(rule(last-1, payment.OutcomeWon), desk) // which the order does not name
		for n := range licensing.MaxOpenDisputes {
			w.called(rule(n, payment.OutcomeWon), desk)
			is(fmt.Sprint(n, " is won"), licensing.Suspended, licensing.MaxOpenDisputes-n)
		}
		rule(licensing.MaxOpenDisputes, payment.OutcomeWon) // the callback is lost
		w.clock.advance(25 * time.Hour)
		if err := desk.AskCheckoutsDue(w.ctx); err != nil {
			t.Error(err)
		}
		is("a sweep has asked about the last one", licensing.NotActivated, 0)
	}
}
