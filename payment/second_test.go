package payment_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
)

// paidOutside returns an order whose buyer has begun a checkout, and that the shop has recorded as paid outside.
func (w *fixture) paidOutside(pay func(licensing.Order)) licensing.Order {
	w.t.Helper()
	o := w.create()
	pay(o)
	if _, _, err := w.node.RecordPayment(w.ctx, owner, o.OrderNo, service.OutsidePayment{
		Reference: "INV " + o.OrderNo, By: "key_1",
	}); err != nil {
		w.t.Fatal(err)
	}
	return o
}

// sentBack checks that the second payment of an order is recorded, and has gone back as a whole with one refund.
func (w *fixture) sentBack(what string, o licensing.Order) {
	w.t.Helper()
	now := w.now(o)
	due, sum := now.RefundsDue()
	if now.Status(w.node.Now()) != licensing.OrderPaid || now.PaidThrough() != licensing.ProviderOutside ||
		due || sum != 0 || now.AmountPaid() != 2*o.Amount || now.AmountRefunded() != o.Amount || now.Refunds != 0 {
		w.t.Errorf("%s: the order is %+v", what, now)
	}
	list, err := w.node.ListPayments(w.ctx, owner, o.OrderNo, store.Page{Limit: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	kinds := map[licensing.PaymentKind]int{}
	for _, p := range list.Items {
		kinds[p.Kind]++
		if p.Kind == licensing.KindOfSecond && p.Returned != o.Amount || p.Kind == licensing.KindOfInvoiceRefund &&
			(p.State != licensing.PaymentDone || p.Amount != o.Amount) {
			w.t.Errorf("%s: there is %+v", what, p)
		}
	}
	if len(list.Items) != 3 || kinds[licensing.KindOfSecond] != 1 || kinds[licensing.KindOfInvoiceRefund] != 1 {
		w.t.Errorf("%s: the payments are %+v", what, list.Items)
	}
	if w.revoked(o) {
		w.t.Errorf("%s: the license is revoked", what)
	}
}

// TestSecondPayment: a payment at the provider of an order that was paid outside goes back once, however many callbacks
// tell of it, and the license stays.
func TestSecondPayment(t *testing.T) {
	c := atTill(t)
	_, other := c.open(c.other, c.till)
	o := c.paidOutside(func(o licensing.Order) { c.pay(o) })
	ids := c.till.changeOpen(o.OrderNo, pays)
	var group sync.WaitGroup
	for _, desk := range []*payment.Desk{c.desk, other, c.desk, other} {
		group.Go(func() {
			object := payment.Object{Kind: payment.ObjectCheckout, ID: ids[0]}
			if err := desk.Called(c.ctx, owner, object); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	c.clock.advance(time.Hour)
	if err := c.desk.SendRefundsDue(c.ctx); err != nil { // what a try left that was overtaken
		t.Fatal(err)
	}
	c.sentBack("in the end", o)
	if numbers := c.till.numbers["pi_"+ids[0]]; len(numbers) != 1 {
		t.Errorf("it was sent back under %v", numbers)
	}
	c.verify()
}

// TestSecondPaymentAtCrashPoints kills a node at each step between the store and the provider, while it records a
// second payment. Another node sends the payment back, under one number.
func TestSecondPaymentAtCrashPoints(t *testing.T) {
	c := atTill(t)
	_, elsewhere := c.open(c.other, c.till)
	steps := 0
	for ; ; steps++ {
		o := c.paidOutside(func(o licensing.Order) { c.pay(o) })
		id := c.till.changeOpen(o.OrderNo, pays)[0]
		object := payment.Object{Kind: payment.ObjectCheckout, ID: id}
		f := &killSwitch{left: steps}
		c.till.kill = f
		_, desk := c.open(killableStore{c.store, f}, c.till)
		_ = desk.Called(c.ctx, owner, object)
		c.till.kill = nil
		if err := elsewhere.Called(c.ctx, owner, object); err != nil { // the callback comes again
			t.Error(err)
		}
		c.clock.advance(time.Hour)
		if err := elsewhere.SendRefundsDue(c.ctx); err != nil {
			t.Error(err)
		}
		c.sentBack(fmt.Sprint("killed at step ", steps), o)
		if numbers := c.till.numbers["pi_"+id]; len(numbers) != 1 {
			t.Errorf("killed at step %d: it was sent back under %v", steps, numbers)
		}
		if !f.dead() {
			break
		}
	}
	if steps < 6 {
		t.Errorf("there were %d steps", steps)
	}
	c.verify()
}

// TestSecondPaymentAtStripe: a second payment goes back after Stripe was down, and again if its refund fails later.
// What the shop sends back in Stripe's dashboard is not sent back again.
func TestSecondPaymentAtStripe(t *testing.T) {
	s := atStripe(t)
	second := func(card string) (o licensing.Order, intent string) {
		t.Helper()
		o = s.paidOutside(func(o licensing.Order) {
			if _, _, err := s.desk.Pay(s.ctx, o); err != nil {
				t.Fatal(err)
			}
		})
		checkout := s.order(o).Checkout
		if err := s.fake.Pay(checkout, card); err != nil {
			t.Fatal(err)
		}
		return o, s.fake.PaymentOf(checkout)
	}
	sweep := func() {
		t.Helper()
		s.advance(time.Hour)
		for _, sweep := range []func(context.Context) error{s.desk.AskCheckoutsDue, s.desk.SendRefundsDue} {
			if err := sweep(s.ctx); err != nil {
				t.Log(err) // while Stripe is down
			}
		}
	}

	var o licensing.Order
	var intent string
	for _, bySweep := range []bool{false, true} {
		o, intent = second(fakestripe.CardPays)
		failures := 3
		if bySweep {
			failures = 5
		}
		s.fake.Fail("POST", "/v1/refunds", fakestripe.Busy, failures)
		for range 3 { // Stripe must repeat the callback
			err := s.desk.Called(s.ctx, owner, payment.Object{Kind: payment.ObjectPayment, ID: intent})
			if licensing.ReasonOf(err) != licensing.ReasonProviderFailed {
				t.Errorf("while Stripe is down: %v", err)
			}
		}
		stored := s.order(o)
		if due, sum := stored.RefundsDue(); !due || sum != o.Amount {
			t.Errorf("the refund is due: %t, of %d", due, sum)
		}
		s.verify()
		if bySweep {
			for range 6 {
				sweep()
			}
		} else {
			s.fixtureCalled(payment.Object{Kind: payment.ObjectPayment, ID: intent})
		}
		s.sentBack("after Stripe was down", o)
	}

	o, intent = second(fakestripe.CardPays)
	part, err := s.fake.RefundInDashboard(intent, 40)
	if err != nil {
		t.Fatal(err)
	}
	s.fixtureCalled(payment.Object{Kind: payment.ObjectRefund, ID: part}) // before the callback of the payment
	for range 3 {
		sweep()
	}
	if now := s.order(o); now.AmountRefunded() != o.Amount || len(now.OpenReturns()) != 0 {
		t.Errorf("after a refund in the dashboard: %+v", now)
	}
	s.verify()

	o, intent = second(fakestripe.CardRefundFails)
	s.fixtureCalled(payment.Object{Kind: payment.ObjectPayment, ID: intent})
	first := s.fake.IDs("refund")
	s.advance(48 * time.Hour)
	s.fixtureCalled(payment.Object{Kind: payment.ObjectRefund, ID: first[len(first)-1]})
	now := s.order(o)
	if due, sum := now.RefundsDue(); !due || sum != o.Amount || now.AmountRefunded() != 0 {
		t.Errorf("after the refund has failed: %+v", now)
	}
	s.verify()
}

// TestRefundFailsAtOnceAtStripe: the refunds of a payment of a canceled order, of a second payment and of an invoice
// fail when Stripe makes them. The next try of the first two has another number; the shop may ask again for the last.
func TestRefundFailsAtOnceAtStripe(t *testing.T) {
	s := atStripe(t)
	sweep := func() {
		t.Helper()
		s.advance(time.Hour)
		if err := s.desk.SendRefundsDue(s.ctx); err != nil {
			t.Error(err)
		}
	}
	pay := func(o licensing.Order) {
		t.Helper()
		if _, _, err := s.desk.Pay(s.ctx, o); err != nil {
			t.Fatal(err)
		}
		if err := s.fake.Pay(s.order(o).Checkout, fakestripe.CardPays); err != nil {
			t.Fatal(err)
		}
	}
	failsAtOnce := func(report func()) {
		t.Helper()
		s.fake.FailRefunds(1)
		report()
		for _, id := range s.fake.IDs("refund") {
			s.fixtureCalled(payment.Object{Kind: payment.ObjectRefund, ID: id})
		}
		s.verify()
	}

	second := s.paidOutside(pay)
	failsAtOnce(func() {
		s.fixtureCalled(payment.Object{Kind: payment.ObjectCheckout, ID: s.order(second).Checkout})
	})
	sweep()

	canceled := s.create()
	pay(canceled)
	failsAtOnce(func() { // the payment was faster than the cancellation
		if _, err := s.desk.Cancel(s.ctx, s.order(canceled)); err != nil {
			t.Fatal(err)
		}
	})
	sweep()

	renewed, invoice := s.renewed(fakestripe.CardPays)
	refund := func() error {
		_, _, err := s.desk.RefundInvoice(s.ctx, owner, renewed.OrderNo, invoice.Reference, licensing.RequestReturn{},
			nil)
		return err
	}
	s.fake.FailRefunds(1)
	if err := refund(); licensing.ReasonOf(err) != licensing.ReasonProviderFailed {
		t.Errorf("the refund of the invoice fails: %v", err)
	}
	if err := refund(); err != nil {
		t.Error(err)
	}
	for _, o := range []licensing.Order{second, canceled, renewed} {
		now, states := s.order(o), map[licensing.PaymentState]int{}
		list, err := s.node.ListPayments(s.ctx, owner, o.OrderNo, store.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			if p.Kind == licensing.KindOfRefund || p.Kind == licensing.KindOfInvoiceRefund {
				states[p.State]++
			}
		}
		due, _ := now.RefundsDue()
		if due || now.AmountRefunded() != o.Amount || states[licensing.PaymentFailed] != 1 ||
			states[licensing.PaymentDone] != 1 {
			t.Errorf("the refunds are %v of the order %+v", states, now)
		}
	}
	s.verify()
}

// fixtureCalled delivers a callback to two nodes.
func (s *subscriber) fixtureCalled(object payment.Object) { s.fixture.called(object, s.desk, s.other) }

// TestTooManySecondPayments: the provider must repeat the callback of a payment for whose refund the order has no room.
func TestTooManySecondPayments(t *testing.T) {
	c := atTill(t)
	o := c.paidOutside(func(licensing.Order) {})
	const room = 32
	for n := range room + 1 {
		err := c.node.RecordSecond(c.ctx, c.now(o), licensing.Payment{
			Provider: licensing.ProviderStripe, Reference: fmt.Sprint("pi_", n), Amount: o.Amount, Currency: o.Currency,
		})
		if errors.Is(err, licensing.ErrUnavailable) != (n == room) {
			t.Errorf("payment %d: %v", n, err)
		}
	}
	c.verify()
	for range 2 {
		c.clock.advance(time.Hour)
		if err := c.desk.SendRefundsDue(c.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if now := c.now(o); now.AmountRefunded() != room*o.Amount || len(now.OpenReturns()) != 0 {
		t.Errorf("the order is %+v", now)
	}
	c.verify()
}

// TestSecondPaymentMisfit: the provider repeats the callback about a refund of ours that is of more than is left of a
// second payment. A refund in the dashboard that does not fit is reported, and its callback is not repeated.
func TestSecondPaymentMisfit(t *testing.T) {
	w := newFixture(t)
	c := newDashboard(w.bank)
	_, desk := w.open(w.store, c)
	o := w.paid()
	paid := licensing.Payment{Provider: o.PaidThrough(), Reference: "second_" + o.OrderNo, Amount: o.Amount,
		Currency: o.Currency, PaidAt: w.node.Now()}
	if err := w.node.RecordSecond(w.ctx, o, paid); err != nil {
		t.Fatal(err)
	}
	for i, number := range []string{licensing.RefundNumber(paid.Reference), "", "ref_lost"} {
		object := payment.Object{Kind: payment.ObjectRefund, ID: fmt.Sprint("re_", i)}
		c.mu.Lock()
		c.refunds[object.ID] = payment.State{Object: object, OrderNo: o.OrderNo, Refund: number,
			Payment: paid.Reference, Outcome: payment.OutcomeDone, Amount: o.Amount, Currency: o.Currency}
		c.mu.Unlock()
		err := desk.Called(w.ctx, owner, object)
		if ours := number == "ref_lost"; errors.Is(err, licensing.ErrRefundMisfit) != ours || (err != nil) != ours {
			t.Errorf("the callback about %s, number %q: %v", object.ID, number, err)
		}
		if now := w.now(o); now.Returned != o.Amount || len(now.OpenReturns()) != 0 {
			t.Errorf("after %s: %+v with %+v", object.ID, now, now.OpenReturns())
		}
	}
	w.verify()
}
