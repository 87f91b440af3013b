package payment_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
)

// subscribe makes an order of test mode for a product with billing each ten seconds, with a grace of five seconds. The
// buyer pays with a play.
func (c *theatre) subscribe(plays ...payment.Play) licensing.Order {
	c.t.Helper()
	_, _, err := c.node.PutProduct(c.ctx, licensing.PutProduct{
		ID: "cloud", Owner: owner, Terms: licensing.DefaultTerms(),
		Billing: licensing.Billing{Interval: licensing.Period{Clock: 10 * time.Second},
			Grace: licensing.Period{Clock: 5 * time.Second}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	o, _, err := c.node.CreateOrder(c.ctx, owner, service.NewOrder{ProductID: "cloud", Amount: 900, Currency: "EUR"})
	if err != nil {
		c.t.Fatal(err)
	}
	c.play(o, plays...)
	return c.order(o)
}

// after lets a time pass. Then two nodes sweep at the same time.
func (c *theatre) after(d time.Duration) {
	c.t.Helper()
	c.clock.advance(d)
	var group sync.WaitGroup
	for _, desk := range []*payment.Desk{c.desk, c.other} {
		group.Go(func() {
			if err := desk.AskSandboxDue(c.ctx); err != nil {
				c.t.Error(err)
			}
		})
	}
	group.Wait()
}

// renewed checks the status of a subscription, how many invoices are paid besides the payment of the order, and that
// the license ends with the paid period and the grace.
func (c *theatre) renewed(what string, o licensing.Order, status licensing.SubscriptionStatus, invoices int) {
	c.t.Helper()
	now := c.order(o)
	end := o.PaidAt.Add(time.Duration(invoices+1) * 10 * time.Second)
	view, err := c.node.License(c.ctx, owner, now.LicenseKey, store.DevicePage{Limit: 1})
	if err != nil || now.SubscriptionStatus != status || now.Invoices != invoices ||
		now.Invoiced != int64(900*invoices) || !now.PaidEnd.Equal(end) ||
		!view.License.ExpiresAt.Equal(end.Add(5*time.Second)) {
		c.t.Errorf("%s: the subscription is %s, %d invoices are paid, until %s, and the license ends at %s, %v; want "+
			"%s, %d, %s", what, now.SubscriptionStatus, now.Invoices, now.PaidEnd, view.License.ExpiresAt, err, status,
			invoices, end)
	}
	list, err := c.node.ListPayments(c.ctx, owner, o.OrderNo, store.Page{Limit: 200})
	if err != nil || len(list.Items) != invoices+1 {
		c.t.Errorf("%s: %d payments are listed, %v", what, len(list.Items), err)
	}
}

const (
	active, pastDue = licensing.SubscriptionActive, licensing.SubscriptionPastDue
	canceled        = licensing.SubscriptionCanceled
)

// TestSandboxSubscriptions: invoices of a subscription in the sandbox are paid by themselves at the end of each period,
// or are played. Each extends the license once.
func TestSandboxSubscriptions(t *testing.T) {
	c := inSandbox(t)
	plays := []payment.Play{payment.PlayInvoicePaid, payment.PlayInvoiceFailed, payment.PlayCancelSubscription}
	c.refused(c.create(), invalid, plays...)
	o := c.subscribe(payment.PlayPay)
	c.renewed("the payment of the order", o, active, 0)
	if offered := c.desk.Plays(o); len(offered) != 4 || offered[0] != payment.PlayInvoicePaid {
		t.Errorf("the page offers %q", offered)
	}
	c.after(9 * time.Second)
	c.renewed("before the end of the period", o, active, 0)
	c.after(2 * time.Second)
	c.renewed("the end of the period", o, active, 1)
	c.after(20 * time.Second)
	c.renewed("two periods without a sweep", o, active, 3)
	c.play(o, payment.PlayInvoicePaid)
	c.renewed("the next invoice is paid before its time", o, active, 4)
	c.after(9 * time.Second)
	c.renewed("the end of a period that is paid already", o, active, 4)

	c.play(o, payment.PlayInvoiceFailed, payment.PlayInvoiceFailed)
	c.renewed("the payment of an invoice fails", o, pastDue, 4)
	c.play(o, payment.PlayInvoicePaid)
	c.renewed("the invoice is paid after all", o, active, 5)
	c.play(o, payment.PlayCancelSubscription, payment.PlayCancelSubscription)
	c.after(time.Minute)
	c.renewed("the end", o, canceled, 5)
	c.refused(o, invalid, payment.PlayInvoicePaid, payment.PlayInvoiceFailed)
	if offered := c.desk.Plays(c.order(o)); len(offered) != 1 || offered[0] != payment.PlayRefundFails {
		t.Errorf("the page offers %q after the end", offered)
	}

	lapses := c.subscribe(payment.PlayCallbackTwice)
	c.renewed("a payment with two callbacks", lapses, active, 0)
	c.play(lapses, payment.PlayInvoiceFailed)
	c.after(21 * time.Second)
	c.renewed("the invoice was not paid in its period", lapses, canceled, 0)

	late := c.subscribe(payment.PlayPayLater)
	c.clock.advance(5 * time.Second)
	c.play(late, payment.PlayComplete)
	c.renewed("a payment that was pending", c.order(late), active, 0)

	refunded := c.subscribe(payment.PlayPay)
	if _, _, err := c.desk.Refund(c.ctx, owner, refunded.OrderNo, licensing.RequestRefund{}, nil); err != nil {
		t.Fatal(err)
	}
	c.after(time.Second)
	c.after(25 * time.Second)
	if now := c.order(refunded); now.SubscriptionStatus != canceled || now.Invoices != 0 || now.EndDue {
		t.Errorf("the subscription of a refunded order is %+v", now)
	}
	c.verify()
}

// TestSandboxRefundsFailOneByOne: while a refund of an invoice is to fail, no other refund can be made to fail, so the
// sandbox gives one answer about each.
func TestSandboxRefundsFailOneByOne(t *testing.T) {
	c := inSandbox(t)
	o := c.subscribe(payment.PlayPay)
	c.play(o, payment.PlayInvoicePaid, payment.PlayInvoicePaid, payment.PlayCancelSubscription)
	list, err := c.node.ListPayments(c.ctx, owner, o.OrderNo, store.Page{Limit: 10})
	if err != nil || len(list.Items) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, invoice := range list.Items[:2] {
		c.play(o, payment.PlayRefundFails)
		_, _, err := c.desk.RefundInvoice(c.ctx, owner, o.OrderNo, invoice.Reference, licensing.RequestReturn{}, nil)
		if now := c.order(o); err != nil || len(now.OpenReturns()) != 1 ||
			slices.Contains(c.desk.Plays(now), payment.PlayRefundFails) {
			t.Errorf("the refund is pending: %v, %+v", err, now)
		}
		c.refused(o, invalid, payment.PlayRefundFails)
		c.clock.advance(time.Hour)
		_ = c.desk.SendRefundsDue(c.ctx) // says that the refund has failed
		if now := c.order(o); len(now.OpenReturns()) != 0 || now.Returned != 0 {
			t.Errorf("the refund has failed: %+v", now)
		}
	}
	c.verify()
}

// TestSandboxKeepsTheChange: the sandbox tells which change of the amount was made and from when on, as Stripe does. So
// a change whose answer was lost is not recorded a period late.
func TestSandboxKeepsTheChange(t *testing.T) {
	c := inSandbox(t)
	o := c.subscribe(payment.PlayPay)
	sandbox := payment.Sandbox{Node: c.node}
	change := payment.Change{Amount: 500, Once: "chg_1"}
	first, err := sandbox.Change(c.ctx, o, change)
	if err != nil || first.Changed != "chg_1" || !first.ChangedFrom.Equal(o.PaidAt.Add(10*time.Second)) {
		t.Errorf("planned: %+v, %v", first, err)
	}
	c.after(12 * time.Second)
	again, err := sandbox.Change(c.ctx, o, change)
	if err != nil || again.Changed != "chg_1" || !again.ChangedFrom.Equal(first.ChangedFrom) {
		t.Errorf("in the next period: %+v, %v", again, err)
	}
	later, err := sandbox.Look(c.ctx, first.Object)
	if err != nil || later.Changed != "chg_1" || !later.ChangedFrom.Equal(first.ChangedFrom) {
		t.Errorf("looked at: %+v, %v", later, err)
	}
}
