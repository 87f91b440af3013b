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

// TestIssueWithRefund: an open refund of a part of the payment does not stop the issue of the licenses, and no license
// is usable during a dispute, whatever becomes of an open refund.
func TestIssueWithRefund(t *testing.T) {
	const quantity = store.MaxNewLicenses + 8
	w := newFixture(t)
	c := &court{newDashboard(w.bank), true}
	_, slow := w.open(unissuing{w.store}, c)
	node, desk := w.open(w.other, c)
	for name, test := range map[string]struct {
		amount   int64
		disputed bool
		ends     payment.Outcome
		issued   int // while the refund is pending
		licenses licensing.Status
	}{
		"a part":                      {30, false, payment.OutcomeDone, quantity, licensing.NotActivated},
		"a part that fails":           {30, false, payment.OutcomeFailed, quantity, licensing.NotActivated},
		"whole":                       {0, false, payment.OutcomeDone, store.MaxNewLicenses, licensing.Revoked},
		"whole, fails":                {0, false, payment.OutcomeFailed, store.MaxNewLicenses, licensing.NotActivated},
		"a part, disputed":            {30, true, payment.OutcomeDone, quantity, licensing.Suspended},
		"a part that fails, disputed": {30, true, payment.OutcomeFailed, quantity, licensing.Suspended},
		"whole, disputed":             {0, true, payment.OutcomeDone, quantity, licensing.Revoked},
		"whole, fails, disputed":      {0, true, payment.OutcomeFailed, quantity, licensing.Suspended},
	} {
		o, _, err := w.node.CreateOrder(w.ctx, owner,
			service.NewOrder{ProductID: "pro", Amount: 100, Currency: "USD", Quantity: quantity})
		if err == nil {
			o, _, err = slow.Pay(w.ctx, o)
		}
		w.bank.next = []answer{{state: payment.OutcomePending}, {state: test.ends}}
		if err == nil {
			_, _, err = desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{Amount: test.amount}, nil)
		}
		if now := w.now(o); err != nil || !now.RefundPending || now.Issued() != store.MaxNewLicenses {
			t.Fatalf("%s: %+v, %v", name, now, err)
		}
		w.verify()
		if test.disputed {
			w.called(c.rule(o, 100, payment.OutcomeOpen), desk)
		}
		sweep := func() {
			t.Helper()
			if err := node.IssueLicensesDue(w.ctx); err != nil {
				t.Error(err)
			}
			w.verify()
		}
		sweep()
		if now := w.now(o); now.Issued() != test.issued {
			t.Errorf("%s: %d licenses are issued while the refund is pending", name, now.Issued())
		}
		w.clock.advance(time.Hour)
		if err := desk.SendRefundsDue(w.ctx); err != nil && test.ends == payment.OutcomeDone {
			t.Errorf("%s: %v", name, err)
		}
		sweep()
		now := w.now(o)
		if got := w.licenses(o); now.RefundDue || !slices.Equal(got, []licensing.Status{test.licenses}) ||
			now.Issued() != quantity && now.RefundedAt.IsZero() {
			t.Errorf("%s: %d licenses are %v, refund due: %t", name, now.Issued(), got, now.RefundDue)
		}
		if test.disputed {
			w.called(c.rule(o, 100, payment.OutcomeWon), desk)
			want := licensing.NotActivated
			if test.licenses == licensing.Revoked {
				want = licensing.Revoked
			}
			if got := w.licenses(o); !slices.Equal(got, []licensing.Status{want}) {
				t.Errorf("%s: after the dispute, the licenses are %v", name, got)
			}
			w.verify()
		}
	}
}

// TestDisputeOfTheShopsLaterLicense: a license of an order for several that the shop has suspended stays so after the
// dispute, although the dispute suspends and reinstates the other licenses.
func TestDisputeOfTheShopsLaterLicense(t *testing.T) {
	w := newFixture(t)
	c := &court{newDashboard(w.bank), true}
	_, desk := w.open(w.store, c)
	for _, at := range []int{1, 11} { // after the first license, and in another transaction than index 1
		o := w.paidFor(12)
		keys, err := w.node.OrderKeys(w.ctx, &o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.node.Do(w.ctx, licensing.LicenseRef(keys[at]), licensing.SuspendLicense{
			Target: licensing.Target{Key: keys[at]}, Reason: "fraud"}); err != nil {
			t.Fatal(err)
		}
		for _, s := range []struct {
			says   payment.Outcome
			others licensing.Status
		}{{payment.OutcomeOpen, licensing.Suspended}, {payment.OutcomeWon, licensing.NotActivated}} {
			w.called(c.rule(o, 100, s.says), desk)
			for i, key := range keys {
				view, err := w.node.License(w.ctx, owner, key, store.DevicePage{Limit: 1})
				if err != nil {
					t.Fatal(err)
				}
				l, want := &view.License, s.others
				if i == at {
					want = licensing.Suspended
				}
				if got := l.Status(w.node.Now()); got != want || (l.StateReason == "fraud") != (i == at) {
					t.Errorf("the dispute is %s: license %d is %s (%s), want %s", s.says, i, got, l.StateReason, want)
				}
			}
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
