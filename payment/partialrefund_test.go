package payment_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
	"licet/payment"
)

// refunds returns the records of an order's refunds, the oldest first: their amounts and states.
func (w *fixture) refunds(o licensing.Order) (amounts []int64, states []licensing.PaymentState) {
	w.t.Helper()
	list, err := w.node.ListPayments(w.ctx, owner, o.OrderNo, store.Page{Limit: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range slices.Backward(list.Items) {
		if p.Kind == licensing.KindOfRefund {
			amounts, states = append(amounts, p.Amount), append(states, p.State)
		}
	}
	return amounts, states
}

// TestPartialRefunds refunds parts of a payment, with and without an Idempotency-Key, until nothing is left.
func TestPartialRefunds(t *testing.T) {
	w := newFixture(t)
	o, key := w.paid(), w.once()
	refund := func(amount int64) (licensing.Order, error) {
		got, _, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{Amount: amount}, nil)
		return got, err
	}
	for i := range 3 {
		got, replayed, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{Amount: 30}, key)
		if err != nil || replayed != (i > 0) || got.RefundedAmount() != 30 || got.Refundable() != 70 {
			t.Fatalf("part %d: %+v, replayed %v, %v", i, got, replayed, err)
		}
	}
	if _, err := refund(71); licensing.ReasonOf(err) != licensing.ReasonInvalidField {
		t.Errorf("more than is left: %v", err)
	}
	if got, err := refund(30); err != nil || got.RefundedAmount() != 60 {
		t.Errorf("another part: %+v, %v", got, err)
	}
	view, err := w.node.License(w.ctx, owner, o.LicenseKey, store.DevicePage{Limit: 1})
	if now := w.now(o); err != nil || !view.License.RevokedAt.IsZero() ||
		now.Status(w.node.Now()) != licensing.OrderPaid {
		t.Errorf("after two parts, the license is %+v, %v", view.License, err)
	}
	for range 2 {
		if got, err := refund(0); err != nil || got.RefundedAmount() != 100 {
			t.Errorf("the rest: %+v, %v", got, err)
		}
	}
	w.check("refunded in parts", o, licensing.OrderRefunded)
	if amounts, _ := w.refunds(o); !slices.Equal(amounts, []int64{30, 30, 40}) {
		t.Errorf("the records are of %v", amounts)
	}
	if sent := slices.Sorted(maps.Values(w.bank.sent)); !slices.Equal(sent, []int64{30, 30, 40}) {
		t.Errorf("the bank has sent %v", sent)
	}
	w.verify()
}

// TestPartialRefundFails: while a refund is not confirmed, no other one begins. A refused part is refused again under
// its key, since only a new request may refund.
func TestPartialRefundFails(t *testing.T) {
	w := newFixture(t)
	o, key := w.paid(), w.once()
	refund := func(amount int64) error {
		_, _, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{Amount: amount}, key)
		return err
	}
	w.bank.next = []answer{{says: payment.ErrRefused}}
	for range 2 {
		if err := refund(30); !errors.Is(err, providerFailed) {
			t.Errorf("the bank has refused, and Refund says: %v", err)
		}
	}
	key = w.once()
	w.bank.next = []answer{{says: errDown}}
	if err := refund(40); !errors.Is(err, providerFailed) {
		t.Errorf("the bank is down, and Refund says: %v", err)
	}
	state := &licensing.Error{Reason: licensing.ReasonInvalidOrderState}
	for _, amount := range []int64{0, 10} {
		if _, _, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{Amount: amount},
			nil); !errors.Is(err, state) {
			t.Errorf("a refund of %d along with another one: %v", amount, err)
		}
	}
	if now := w.now(o); now.OpenRefund() != 40 || now.Refundable() != 60 {
		t.Errorf("the order is %+v", now)
	}
	if err := refund(40); err != nil {
		t.Errorf("the refund under its key: %v", err)
	}
	if amounts, _ := w.refunds(o); !slices.Equal(amounts, []int64{40}) || len(w.bank.sent) != 1 {
		t.Errorf("the records are of %v, the bank has sent %v", amounts, w.bank.sent)
	}
	w.verify()
}

// TestPendingRefund: the license stays until the provider has sent the money. A refund that fails then leaves the order
// as it was.
func TestPendingRefund(t *testing.T) {
	w := newFixture(t)
	_, elsewhere := w.open(w.other, w.bank)
	for name, c := range map[string]struct {
		amount int64
		ends   payment.Outcome
		want   licensing.OrderStatus
	}{
		"whole":             {0, payment.OutcomeDone, licensing.OrderRefunded},
		"whole, fails":      {0, payment.OutcomeFailed, licensing.OrderPaid},
		"a part":            {30, payment.OutcomeDone, licensing.OrderPaid},
		"a part that fails": {30, payment.OutcomeFailed, licensing.OrderPaid},
	} {
		o := w.paid()
		w.bank.next = []answer{{state: payment.OutcomePending}, {state: payment.OutcomePending}, {state: c.ends}}
		got, _, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{Amount: c.amount}, nil)
		if err != nil || !got.RefundDue || !got.RefundPending || got.OpenRefund() == 0 ||
			got.Status(w.node.Now()) != licensing.OrderPaid {
			t.Errorf("%s: at once %+v, %v", name, got, err)
		}
		if _, states := w.refunds(o); !slices.Equal(states, []licensing.PaymentState{licensing.PaymentPending}) {
			t.Errorf("%s: the records are %v", name, states)
		}
		for range 2 {
			w.clock.advance(time.Hour)
			_ = elsewhere.SendRefundsDue(w.ctx) // says that the bank has refused, if so
		}
		now := w.now(o)
		want := map[payment.Outcome]licensing.PaymentState{payment.OutcomeDone: licensing.PaymentDone,
			payment.OutcomeFailed: licensing.PaymentFailed}[c.ends]
		if _, states := w.refunds(o); now.RefundDue || now.Status(w.node.Now()) != c.want ||
			!slices.Equal(states, []licensing.PaymentState{want}) {
			t.Errorf("%s: in the end %+v, records %v", name, now, states)
		}
		view, err := w.node.License(w.ctx, owner, o.LicenseKey, store.DevicePage{Limit: 1})
		if revoked := !view.License.RevokedAt.IsZero(); err != nil || revoked != (c.want == licensing.OrderRefunded) {
			t.Errorf("%s: the license is revoked: %v, %v", name, revoked, err)
		}
	}
	w.verify()
}

// TestWholeRefundEnds: the shop refunds all that is left of a payment, and until the provider has sent the money, the
// shop gets other money of the payment back. The refund ends the order, and revokes its licenses.
func TestWholeRefundEnds(t *testing.T) {
	w := newFixture(t)
	c := &court{newDashboard(w.bank), true}
	_, desk := w.open(w.store, c)
	for _, quantity := range []int{1, 3} {
		for name, test := range map[string]struct {
			before, meanwhile func(licensing.Order) payment.Object
		}{
			"an earlier refund fails": {
				func(o licensing.Order) payment.Object {
					return c.set(o, "re_"+o.OrderNo, "", 40, payment.OutcomeDone)
				},
				func(o licensing.Order) payment.Object {
					return c.set(o, "re_"+o.OrderNo, "", 40, payment.OutcomeFailed)
				},
			},
			"a lost dispute is won": {
				func(o licensing.Order) payment.Object { return c.rule(o, 40, payment.OutcomeLost) },
				func(o licensing.Order) payment.Object { return c.rule(o, 40, payment.OutcomeWon) },
			},
		} {
			o := w.paidFor(quantity)
			w.called(test.before(o), desk)
			w.bank.next = []answer{{state: payment.OutcomePending}, {state: payment.OutcomeDone}}
			request := licensing.RequestRefund{}
			if _, _, err := desk.Refund(w.ctx, owner, o.OrderNo, request, nil); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if now := w.now(o); now.OpenRefund() != 60 || now.RefundedAmount() != 40 || !now.RefundEnds {
				t.Errorf("%s: before the end: %+v", name, now)
			}
			w.called(test.meanwhile(o), desk)
			if now := w.now(o); now.OpenRefund() != 60 || now.RefundedAmount() != 0 {
				t.Errorf("%s: the shop has its money back: %+v", name, now)
			}
			w.verify()
			w.clock.advance(time.Hour)
			if err := desk.SendRefundsDue(w.ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			now := w.now(o)
			if got := w.licenses(o); now.RefundedAt.IsZero() || now.RefundedAmount() != 60 || now.RefundDue ||
				now.RefundEnds || !slices.Equal(got, []licensing.Status{licensing.Revoked}) {
				t.Errorf("%s: the licenses are %v of %+v", name, got, now)
			}
			w.verify()
			again, _, err := desk.Refund(w.ctx, owner, o.OrderNo, request, nil)
			if err != nil || again.RefundedAmount() != 100 {
				t.Errorf("%s: the rest: %+v, %v", name, again, err)
			}
			w.verify()
		}
	}
}
