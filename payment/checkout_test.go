package payment_test

import (
	"sync"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
)

// counter is a service whose orders are paid at a till.
type counter struct {
	*fixture
	till *till
}

func atTill(t *testing.T) *counter {
	t.Helper()
	w := newFixture(t)
	c := &counter{w, newTill(w.clock.now)}
	w.node, w.desk = w.open(w.store, c.till)
	return c
}

// order reads an order.
func (c *counter) order(o licensing.Order) licensing.Order {
	c.t.Helper()
	stored, err := c.node.Order(c.ctx, owner, o.OrderNo)
	if err != nil {
		c.t.Fatal(err)
	}
	return stored
}

// status checks the status of an order and whether anything about its checkout remains to be asked.
func (c *counter) status(what string, o licensing.Order, want licensing.OrderStatus, open bool) licensing.Order {
	c.t.Helper()
	stored := c.order(o)
	if got := stored.Status(c.node.Now()); got != want || stored.CheckoutOpen() != open {
		c.t.Errorf("%s: the order is %s, and its checkout is open: %t; want %s, %t", what, got, stored.CheckoutOpen(),
			want, open)
	}
	return stored
}

// pay presses Pay on the pay page, and returns where the customer pays.
func (c *counter) pay(o licensing.Order) string {
	c.t.Helper()
	_, redirect, err := c.desk.Pay(c.ctx, c.order(o))
	if err != nil {
		c.t.Fatal(err)
	}
	return redirect
}

// called delivers a callback about a checkout.
func (c *counter) called(id string) {
	c.t.Helper()
	if err := c.desk.Called(c.ctx, owner, payment.Object{Kind: payment.ObjectCheckout, ID: id}); err != nil {
		c.t.Fatal(err)
	}
}

// TestCheckoutOnce: many presses of Pay on two nodes lead to one checkout, and callbacks pay the order once.
func TestCheckoutOnce(t *testing.T) {
	c := atTill(t)
	_, other := c.open(c.other, c.till)
	o := c.create()
	urls := make([]string, 16)
	var group sync.WaitGroup
	for i := range urls {
		group.Go(func() {
			desk := c.desk
			if i%2 == 1 {
				desk = other
			}
			var err error
			if _, urls[i], err = desk.Pay(c.ctx, o); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, url := range urls {
		if url == "" || url != urls[0] {
			t.Errorf("one press leads to %q, another to %q", url, urls[0])
		}
	}
	if len(c.till.sessions) != 1 {
		t.Errorf("there are %d checkouts", len(c.till.sessions))
	}
	c.status("with a checkout", o, licensing.OrderUnpaid, true)
	for _, id := range c.till.changeOpen(o.OrderNo, pays) {
		for range 4 {
			group.Go(func() { c.called(id) })
		}
	}
	group.Wait()
	paid := c.status("paid", o, licensing.OrderPaid, false)
	if paid.LicenseKey.IsZero() || paid.PaidThrough() != licensing.ProviderStripe || paid.Payment == "" {
		t.Errorf("the paid order is %+v", paid)
	}
	if url := c.pay(o); url != "" {
		t.Errorf("Pay leads the customer who has paid to %q", url)
	}
}

// TestCheckoutAttemptsFollow: the next checkout comes only after the last one is over, or can't be made.
func TestCheckoutAttemptsFollow(t *testing.T) {
	c := atTill(t)
	o := c.create()
	c.till.spent = 2
	first := c.pay(o)
	if stored := c.order(o); first == "" || stored.Attempt != 3 {
		t.Errorf("after two attempts without a checkout, Pay leads to %q, and the order is %+v", first, stored)
	}
	if again := c.pay(o); again != first {
		t.Errorf("the second press leads to %q, not to %q", again, first)
	}
	c.till.changeOpen(o.OrderNo, func(s *session) { s.Outcome = payment.OutcomePending })
	if url := c.pay(o); url != "" {
		t.Errorf("while the payment is on its way, Pay leads to %q", url)
	}
	if now, pending := c.desk.Check(c.ctx, c.order(o)); !pending || now.Status(c.node.Now()) != licensing.OrderUnpaid {
		t.Errorf("while the payment is on its way, Check says %t, and the order is %+v", pending, now)
	}
	for _, s := range c.till.sessions {
		s.Outcome = payment.OutcomeFailed
		c.called(s.ID)
	}
	c.status("the payment has failed", o, licensing.OrderUnpaid, false)
	if second := c.pay(o); second == "" || second == first || c.till.open(o.OrderNo) != 1 {
		t.Errorf("after a failed payment, Pay leads to %q", second)
	}
	// The payment of the first attempt is canceled at last: that says nothing about the second checkout.
	for _, s := range c.till.sessions {
		if s.Outcome == payment.OutcomeFailed {
			s.Outcome, s.Payment = payment.OutcomeEnded, "pi_first"
		}
	}
	if err := c.desk.Called(c.ctx, owner, payment.Object{Kind: payment.ObjectPayment, ID: "pi_first"}); err != nil {
		t.Fatal(err)
	}
	c.status("the first payment is canceled", o, licensing.OrderUnpaid, true)
	c.till.spent = 100
	hopeless := c.create()
	if _, _, err := c.desk.Pay(c.ctx, hopeless); licensing.ReasonOf(err) != licensing.ReasonProviderFailed {
		t.Errorf("a provider that makes no checkout: %v", err)
	}
}

// TestCheckoutEnds: a canceled order and an order that is paid outside leave no checkout in which a customer can pay.
// If the customer was faster, the payment of a canceled order goes back.
func TestCheckoutEnds(t *testing.T) {
	c := atTill(t)
	canceled := c.create()
	c.pay(canceled)
	if _, err := c.desk.Cancel(c.ctx, canceled); err != nil {
		t.Fatal(err)
	}
	c.status("canceled", canceled, licensing.OrderCanceled, false)
	if n := c.till.open(canceled.OrderNo); n != 0 {
		t.Errorf("%d checkouts of the canceled order are open", n)
	}

	late := c.create()
	c.pay(late)
	c.till.changeOpen(late.OrderNo, pays)
	if _, err := c.desk.Cancel(c.ctx, late); err != nil {
		t.Fatal(err)
	}
	back := c.status("canceled after the payment", late, licensing.OrderRefunded, false)
	if c.till.refunded[back.Payment] != back.Amount {
		t.Errorf("refunded are %v", c.till.refunded)
	}

	outside := c.create()
	c.pay(outside)
	if _, _, err := c.node.RecordPayment(c.ctx, owner, outside.OrderNo,
		service.OutsidePayment{Reference: "INV-1"}); err != nil {
		t.Fatal(err)
	}
	if err := c.desk.AskCheckoutsDue(c.ctx); err != nil {
		t.Fatal(err)
	}
	c.status("paid outside", outside, licensing.OrderPaid, false)
	if n := c.till.open(outside.OrderNo); n != 0 {
		t.Errorf("%d checkouts of the order that was paid outside are open", n)
	}
}

// TestCallbacksLost: without any callback, a sweep finds payments, also those of orders that have expired meanwhile,
// and checkouts that are over.
func TestCallbacksLost(t *testing.T) {
	c := atTill(t)
	sweep := func() {
		t.Helper()
		if err := c.desk.AskCheckoutsDue(c.ctx); err != nil {
			t.Fatal(err)
		}
	}
	paid, late, left := c.create(), c.create(), c.create()
	for _, o := range []licensing.Order{paid, late, left} {
		c.pay(o)
	}
	c.till.changeOpen(paid.OrderNo, pays)
	sweep()
	c.status("before its time", paid, licensing.OrderUnpaid, true)
	c.clock.advance(2 * time.Minute)
	sweep()
	c.status("paid", paid, licensing.OrderPaid, false)
	c.till.changeOpen(late.OrderNo, pays)
	c.clock.advance(25 * time.Hour) // orders expire after a day
	c.till.changeOpen(left.OrderNo, func(s *session) { s.Outcome = payment.OutcomeEnded })
	c.till.down = errDown
	if err := c.desk.AskCheckoutsDue(c.ctx); err == nil {
		t.Error("the provider is down, and the sweep has nothing to say")
	}
	sweep() // the failed questions are put off
	c.till.down = nil
	c.clock.advance(20 * time.Second)
	if err := c.node.RecordOrderEnds(c.ctx); err != nil { // which are due before the put off questions
		t.Fatal(err)
	}
	sweep()
	if o := c.status("paid late", late, licensing.OrderPaid, false); !o.Late {
		t.Error("the order is not late")
	}
	c.status("left", left, licensing.OrderExpired, false)
	sweep() // nothing is due
}

// TestMisfits: a payment with another amount, currency or mode than the order changes nothing, and neither does a
// callback about a foreign object.
func TestMisfits(t *testing.T) {
	c := atTill(t)
	for name, spoil := range map[string]func(*session){
		"amount":   func(s *session) { s.Amount-- },
		"currency": func(s *session) { s.Currency = "EUR" },
		"mode":     func(s *session) { s.Live = true },
	} {
		o := c.create()
		c.pay(o)
		for _, id := range c.till.changeOpen(o.OrderNo, func(s *session) { pays(s); spoil(s) }) {
			c.called(id)
			c.called(id)
		}
		c.status(name, o, licensing.OrderUnpaid, false)
		list, err := c.node.ListPayments(c.ctx, owner, o.OrderNo, store.Page{Limit: 10})
		if err != nil || len(list.Items) != 1 || list.Items[0].Kind != licensing.KindOfUnmatched ||
			(list.Items[0].Amount == 100 && list.Items[0].Currency == "USD") != (name == "mode") {
			t.Errorf("%s: the payments are %+v, %v", name, list.Items, err)
		}
	}
	c.verify()
	for _, orderNo := range []string{"", "ord_other", licensing.NewOrderNo(owner, "01HZZZZZZZZZZZZZZZZZZZZZZZ")} {
		c.till.sessions["foreign"] = &session{State: payment.State{
			Object:  payment.Object{Kind: payment.ObjectCheckout, ID: "cs_foreign"},
			OrderNo: orderNo, Outcome: payment.OutcomeDone, Payment: "pi_foreign",
		}}
		c.called("cs_foreign")
	}
	c.called("cs_unknown")
	// A checkout of another owner: the order is not the owner's of the route.
	o := c.create()
	c.pay(o)
	foreign := licensing.Owner{AccountID: "acct_other", Mode: licensing.Test}
	for _, id := range c.till.changeOpen(o.OrderNo, pays) {
		object := payment.Object{Kind: payment.ObjectCheckout, ID: id}
		if err := c.desk.Called(c.ctx, foreign, object); err != nil {
			t.Error(err)
		}
	}
	c.status("called for another owner", o, licensing.OrderUnpaid, true)
}

// TestCheckoutSurvivesKills kills the node at each step between the press of Pay and the recorded payment. The next
// node leads the customer to the one open checkout, and a sweep finds the payment.
func TestCheckoutSurvivesKills(t *testing.T) {
	w := atTill(t)
	for steps := 0; ; steps++ {
		o := w.create()
		kill := &killSwitch{left: steps}
		w.till.kill = kill
		_, dying := w.open(killableStore{w.store, kill}, w.till)
		_, _, err := dying.Pay(w.ctx, o)
		w.till.kill = nil
		survived := !kill.dead()
		if !survived && err == nil {
			t.Errorf("killed at step %d, and the customer has an answer", steps)
		}
		if url := w.pay(o); url == "" || w.till.open(o.OrderNo) != 1 {
			t.Errorf("killed at step %d: Pay leads to %q, and %d checkouts are open", steps, url,
				w.till.open(o.OrderNo))
		}
		w.till.changeOpen(o.OrderNo, pays)
		w.clock.advance(2 * time.Minute)
		w.till.kill = &killSwitch{left: steps}
		_, dying = w.open(killableStore{w.store, w.till.kill}, w.till)
		_ = dying.AskCheckoutsDue(w.ctx)
		survived = survived && !w.till.kill.dead()
		w.till.kill = nil
		if err := w.desk.AskCheckoutsDue(w.ctx); err != nil {
			t.Fatal(err)
		}
		if now := w.order(o); now.Status(w.node.Now()) != licensing.OrderPaid {
			w.clock.advance(2 * time.Hour)
			if err := w.desk.AskCheckoutsDue(w.ctx); err != nil {
				t.Fatal(err)
			}
		}
		w.status("in the end", o, licensing.OrderPaid, false)
		if survived {
			return
		}
	}
}
