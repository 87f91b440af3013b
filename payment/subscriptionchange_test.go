package payment_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/payment"
	"licet/payment/stripe"
)

// change changes the subscription of an order at a desk.
func (s *subscriber) change(
	desk *payment.Desk, o licensing.Order, kind licensing.ChangeKind, once *node.Once,
) (licensing.Order, error) {
	now, _, err := desk.ChangeSubscription(s.ctx, owner, o.OrderNo,
		licensing.ChangeSubscription{Change: licensing.SubscriptionChange{Kind: kind}}, once)
	return now, err
}

// changed changes the subscription of an order four times at two nodes at once, and returns the order after that.
func (s *subscriber) changed(o licensing.Order, kind licensing.ChangeKind) licensing.Order {
	s.t.Helper()
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			if _, err := s.change([]*payment.Desk{s.desk, s.other}[i%2], o, kind, nil); err != nil {
				s.t.Error(err)
			}
		})
	}
	group.Wait()
	return s.order(o)
}

// TestSubscriptionEndsWithPeriod: the shop ends a subscription with its period, lets it renew, and ends it again.
func TestSubscriptionEndsWithPeriod(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	if now := s.changed(o, licensing.ChangeEnd); !now.CancelAt.Equal(o.PaidEnd) || now.ChangeDue() ||
		now.SubscriptionStatus != licensing.SubscriptionActive {
		t.Errorf("to end: %+v", now)
	}
	if now := s.changed(o, licensing.ChangeResume); !now.CancelAt.IsZero() || now.ChangeDue() {
		t.Errorf("resumed: %+v", now)
	}
	s.advance(32 * 24 * time.Hour)
	s.called(payment.ObjectSubscription, o.Subscription)
	s.balanced("renewed", o, 2)
	s.changed(o, licensing.ChangeEnd)
	s.advance(40 * 24 * time.Hour)
	s.called(payment.ObjectSubscription, o.Subscription)
	if now := s.balanced("ended", o, 2); now.SubscriptionStatus != licensing.SubscriptionCanceled {
		t.Errorf("ended: %+v", now)
	}
	if _, err := s.change(s.desk, o, licensing.ChangeEnd, nil); err != nil {
		t.Errorf("to end an ended subscription: %v", err)
	}
	if _, err := s.change(s.desk, o, licensing.ChangeResume, nil); !errors.Is(err, licensing.ErrSubscriptionOver) {
		t.Errorf("to resume an ended subscription: %v", err)
	}
}

// TestSubscriptionEndsNow: the shop ends a subscription at once. The license keeps the time that is paid for.
func TestSubscriptionEndsNow(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	s.changed(o, licensing.ChangeEnd)
	if now := s.changed(o, licensing.ChangeEndNow); now.SubscriptionStatus != licensing.SubscriptionCanceled ||
		now.ChangeDue() || !now.AskAt.IsZero() {
		t.Errorf("%+v", now)
	}
	s.advance(40 * 24 * time.Hour)
	s.balanced("ended", o, 1)
	if n := len(s.fake.IDs("invoice")); n != 1 {
		t.Errorf("the buyer got %d invoices", n)
	}
}

// TestSubscriptionChangeOfDeadNode: if Stripe is down, or the node dies before it asks Stripe, a sweep makes the
// change. A later request first completes the open one: a copy of that which arrives late at Stripe undoes nothing.
func TestSubscriptionChangeOfDeadNode(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	s.fake.Fail("POST", "/v1/subscriptions/"+o.Subscription, fakestripe.Busy, 1)
	_, err := s.change(s.desk, o, licensing.ChangeEnd, nil)
	if licensing.ReasonOf(err) != licensing.ReasonProviderFailed || s.order(o).Change.Kind != licensing.ChangeEnd {
		t.Errorf("while Stripe is down: %v, %+v", err, s.order(o))
	}
	ended := payment.Change{End: payment.EndOfPeriod, Once: s.order(o).Change.Number}
	if _, err := s.change(s.other, o, licensing.ChangeResume, nil); err != nil {
		t.Fatal(err)
	}
	if state, err := s.provider.Change(s.ctx, o, ended); err != nil || !state.CancelAt.IsZero() {
		t.Errorf("a late copy of the first request: %v, %+v", err, state)
	}
	s.fake.Fail("POST", "/v1/subscriptions/"+o.Subscription, fakestripe.Before, 1)
	if _, err := s.change(s.desk, o, licensing.ChangeEnd, nil); err == nil {
		t.Error("Stripe has failed")
	}
	s.advance(2 * time.Minute)
	if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
		t.Fatal(err)
	}
	if now := s.order(o); !now.CancelAt.Equal(o.PaidEnd) || now.ChangeDue() {
		t.Errorf("after the sweep: %+v", now)
	}
}

// TestSubscriptionChangeOnce: a repeated request with the same Idempotency-Key does not undo a later change.
func TestSubscriptionChangeOnce(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	once := &node.Once{Hash: "cancel-000000001"}
	if _, err := s.change(s.desk, o, licensing.ChangeEnd, once); err != nil {
		t.Fatal(err)
	}
	s.changed(o, licensing.ChangeResume)
	now, replayed, err := s.other.ChangeSubscription(s.ctx, owner, o.OrderNo,
		licensing.ChangeSubscription{Change: licensing.SubscriptionChange{Kind: licensing.ChangeEnd}}, once)
	if err != nil || !replayed || !now.CancelAt.IsZero() {
		t.Errorf("replayed %t, %v, %+v", replayed, err, now)
	}
}

// TestSubscriptionChangeAgain: a request repeats the open change of another request, and Stripe is down. The same
// request again, with its own Idempotency-Key, makes the change.
func TestSubscriptionChangeAgain(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	s.fake.Fail("POST", "/v1/subscriptions/"+o.Subscription, fakestripe.Busy, 2)
	again := &node.Once{Hash: "cancel-000000002"}
	for _, once := range []*node.Once{{Hash: "cancel-000000001"}, again} {
		_, err := s.change(s.desk, o, licensing.ChangeEnd, once)
		if licensing.ReasonOf(err) != licensing.ReasonProviderFailed {
			t.Errorf("while Stripe is down: %v", err)
		}
	}
	if now, err := s.change(s.other, o, licensing.ChangeEnd, again); err != nil || !now.CancelAt.Equal(o.PaidEnd) {
		t.Errorf("again: %v, %+v", err, now)
	}
}

// TestSubscriptionChangeRefused: Stripe has no such subscription any more.
func TestSubscriptionChangeRefused(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	provider := stripe.New(stripe.Config{
		Secrets: func() stripe.Secrets { return stripe.Secrets{Key: fakeKey} }, Client: stripe.NewClient(s.fake.URL),
		Clock: s.fake.Now,
	})
	if _, err := provider.Change(s.ctx, o, payment.Change{End: payment.EndNow}); err != nil {
		t.Fatal(err)
	}
	_, err := s.change(s.desk, o, licensing.ChangeResume, nil)
	now := s.order(o)
	if licensing.ReasonOf(err) != licensing.ReasonProviderFailed || now.ChangeDue() ||
		now.SubscriptionStatus != licensing.SubscriptionCanceled {
		t.Errorf("%v, %+v", err, now)
	}
	unpaid, _, err := s.node.CreateOrder(s.ctx, owner,
		service.NewOrder{ProductID: "cloud", Amount: 900, Currency: "EUR"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.change(s.desk, unpaid, licensing.ChangeEnd, nil); !errors.Is(err, licensing.ErrNotSubscribed) {
		t.Errorf("an order without a subscription: %v", err)
	}
}

// plan changes what the subscription of an order pays for at both desks at once.
func (s *subscriber) plan(o licensing.Order, in service.NewPlan) licensing.Order {
	s.t.Helper()
	var group sync.WaitGroup
	for _, desk := range []*payment.Desk{s.desk, s.other} {
		group.Go(func() {
			if _, _, err := desk.ChangePlan(s.ctx, owner, o.OrderNo, in, nil); err != nil {
				s.t.Error(err)
			}
		})
	}
	group.Wait()
	return s.order(o)
}

// calledAboutInvoices delivers callbacks about all invoices.
func (s *subscriber) calledAboutInvoices() {
	s.t.Helper()
	for _, id := range s.fake.IDs("invoice") {
		s.called(payment.ObjectInvoice, id)
	}
}

// pays checks what a subscription pays for, and what its license has.
func (s *subscriber) pays(what string, o licensing.Order, product string, amount int64, devices int) licensing.Order {
	s.t.Helper()
	now, l := s.order(o), s.license(o)
	if p, a := now.Pays(); p != product || a != amount || l.ProductID != product || l.MaxDevices != devices {
		s.t.Errorf("%s: the subscription pays %d for %q, and the license has %d devices of %q; want %d for %q and %d",
			what, a, p, l.MaxDevices, l.ProductID, amount, product, devices)
	}
	return now
}

// team makes a product that is billed as "cloud" is, for 25 devices.
func (s *subscriber) team() {
	s.t.Helper()
	terms := licensing.DefaultTerms()
	terms.MaxDevices = 25
	_, _, err := s.node.PutProduct(s.ctx, licensing.PutProduct{ID: "team", Owner: owner, Terms: terms,
		Billing: licensing.Billing{Interval: licensing.Period{Months: 1}}})
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestPlanNow: a change at once charges the difference once, extends nothing, and changes the license at once. A change
// to a lower amount is a credit for the next invoices.
func TestPlanNow(t *testing.T) {
	s := atStripe(t)
	s.team()
	o := s.subscribe()
	end := s.license(o).ExpiresAt
	s.plan(o, service.NewPlan{ProductID: "team", Amount: 3000})
	now := s.pays("changed", o, "team", 3000, 25)
	s.called(payment.ObjectSubscription, o.Subscription)
	if now.ChangeDue() || !now.PaidEnd.Equal(o.PaidEnd) || !s.license(o).ExpiresAt.Equal(end) {
		t.Errorf("after the change: %+v", now)
	}
	if got := len(s.fake.IDs("invoice")); got != 2 {
		t.Errorf("%d invoices, want the first and the difference", got)
	}
	s.calledAboutInvoices()
	five := 5
	s.plan(o, service.NewPlan{Amount: 1000, MaxDevices: &five})
	s.pays("changed again", o, "team", 1000, 5)
	s.advance(32 * 24 * time.Hour)
	s.calledAboutInvoices()
	now = s.pays("renewed", o, "team", 1000, 5)
	if kept := s.fake.Kept(o.OrderNo); kept != o.Amount+now.Invoiced {
		t.Errorf("the buyer has paid %d cents, and the records say %d", kept, o.Amount+now.Invoiced)
	}
	if !now.PaidEnd.After(o.PaidEnd) || s.license(o).ExpiresAt.Before(now.PaidEnd) {
		t.Errorf("renewed: %+v", now)
	}
	s.verify()
}

// TestPlanLater: a planned change takes effect with the first invoice of its period, and may be taken back before.
func TestPlanLater(t *testing.T) {
	s := atStripe(t)
	s.team()
	o := s.subscribe()
	_, sold := o.Pays()
	devices := s.license(o).MaxDevices
	later := service.NewPlan{ProductID: "team", Amount: 3000, Later: true}
	s.plan(o, later)
	if now := s.pays("planned", o, "cloud", sold, devices); now.Next == nil || !now.Next.From.Equal(o.PaidEnd) {
		t.Errorf("planned: %+v", now)
	}
	_, _, err := s.desk.ChangePlan(s.ctx, owner, o.OrderNo, service.NewPlan{Amount: 5000}, nil)
	if !errors.Is(err, licensing.ErrPlanned) {
		t.Errorf("a change at once while another is planned: %v", err)
	}
	if now := s.plan(o, service.NewPlan{Amount: sold, Later: true}); now.Next != nil {
		t.Errorf("taken back: %+v", now)
	}
	s.plan(o, later)
	s.advance(32 * 24 * time.Hour)
	s.calledAboutInvoices()
	if now := s.pays("renewed", o, "team", 3000, 25); now.Next != nil || now.Invoiced != 3000 {
		t.Errorf("renewed: %+v", now)
	}
	s.verify()
}

// TestPlanRefused: what a subscription can't be changed to, and a declined card, which changes nothing.
func TestPlanRefused(t *testing.T) {
	s := atStripe(t)
	s.team()
	o := s.subscribe()
	_, _, err := s.node.PutProduct(s.ctx, licensing.PutProduct{ID: "yearly", Owner: owner,
		Terms: licensing.DefaultTerms(), Billing: licensing.Billing{Interval: licensing.Period{Years: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[service.NewPlan]licensing.Reason{
		{ProductID: "yearly", Amount: 3000}: licensing.ReasonInvalidField,
		{ProductID: "none", Amount: 3000}:   licensing.ReasonProductNotFound,
	} {
		if _, _, err := s.desk.ChangePlan(s.ctx, owner, o.OrderNo, in, nil); licensing.ReasonOf(err) != want {
			t.Errorf("%+v: %v, want %s", in, err, want)
		}
	}
	s.fake.SetCard(o.Subscription, fakestripe.CardDeclined)
	in := service.NewPlan{ProductID: "team", Amount: 3000}
	keys := make([]*node.Once, 3)
	for i := range keys {
		keys[i] = &node.Once{Hash: fmt.Sprintf("declined-%07d", i), Fingerprint: [32]byte{byte(i)}}
	}
	declined := func(what string) {
		t.Helper()
		for i, once := range keys {
			_, replayed, err := []*payment.Desk{s.desk, s.other}[i%2].ChangePlan(s.ctx, owner, o.OrderNo, in, once)
			if licensing.ReasonOf(err) != licensing.ReasonProviderFailed || replayed {
				t.Errorf("%s: replayed %t, %v", what, replayed, err)
			}
		}
	}
	declined("with a declined card")
	declined("repeated under its key")
	if now := s.pays("declined", o, "cloud", o.Amount, s.license(o).MaxDevices); now.ChangeDue() {
		t.Errorf("declined: %+v", now)
	}
	s.fake.SetCard(o.Subscription, fakestripe.CardPays)
	s.plan(o, in)
	s.pays("with another card", o, "team", 3000, 25)
	declined("repeated after a later change")
	s.verify()
}

// TestPlanOfDeadNode: a change that a node has asked for before it died, or not, is made once by a sweep.
func TestPlanOfDeadNode(t *testing.T) {
	for what, fault := range map[string]fakestripe.Fault{
		"busy": fakestripe.Busy, "bad gateway": fakestripe.BadGateway, "500 before": fakestripe.Before,
		"500 after": fakestripe.After,
	} {
		t.Run(what, func(t *testing.T) {
			s := atStripe(t)
			s.team()
			o := s.subscribe()
			s.fake.Fail("POST", "/v1/subscriptions/"+o.Subscription, fault, 1)
			in := service.NewPlan{ProductID: "team", Amount: 3000}
			_, _, err := s.desk.ChangePlan(s.ctx, owner, o.OrderNo, in, nil)
			if licensing.ReasonOf(err) != licensing.ReasonProviderFailed ||
				s.order(o).Change.Kind != licensing.ChangePlan {
				t.Errorf("%v, %+v", err, s.order(o).Change)
			}
			if _, err := s.change(s.desk, o, licensing.ChangeEnd, nil); !errors.Is(err, licensing.ErrPlanChanging) {
				t.Errorf("to end it meanwhile: %v", err)
			}
			s.advance(2 * time.Minute)
			if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
				t.Fatal(err)
			}
			if now := s.pays("after the sweep", o, "team", 3000, 25); now.ChangeDue() {
				t.Errorf("after the sweep: %+v", now)
			}
			if got := len(s.fake.IDs("invoice")); got != 2 {
				t.Errorf("%d invoices, want the first and one difference", got)
			}
		})
	}
}

// TestPlanOfEndedSubscription: if the order is refunded while a change is open, the buyer is charged no more.
func TestPlanOfEndedSubscription(t *testing.T) {
	s := atStripe(t)
	s.team()
	o := s.subscribe()
	s.fake.Fail("POST", "/v1/subscriptions/"+o.Subscription, fakestripe.Busy, 1)
	_, _, _ = s.desk.ChangePlan(s.ctx, owner, o.OrderNo, service.NewPlan{ProductID: "team", Amount: 3000}, nil)
	_, err := s.change(s.desk, o, licensing.ChangeEndNow, nil)
	if licensing.ReasonOf(err) != licensing.ReasonProviderFailed {
		t.Errorf("the open change is not refused: %v", err)
	}
	now := s.pays("ended", o, "cloud", o.Amount, s.license(o).MaxDevices)
	if kept := s.fake.Kept(o.OrderNo); now.ChangeDue() || kept != o.Amount ||
		now.SubscriptionStatus != licensing.SubscriptionCanceled {
		t.Errorf("%+v, %d cents", now, kept)
	}
}

// TestSubscriptionPortal: a link to Stripe's page for cards, for the order's own account alone.
func TestSubscriptionPortal(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	first, err := s.desk.Portal(s.ctx, owner, o.OrderNo)
	if err != nil || !strings.HasPrefix(first, s.fake.URL) {
		t.Errorf("%q, %v", first, err)
	}
	s.fake.Fail("POST", "/v1/billing_portal/sessions", fakestripe.Busy, 1)
	if _, err := s.desk.Portal(s.ctx, owner, o.OrderNo); licensing.ReasonOf(err) != licensing.ReasonProviderFailed {
		t.Errorf("while Stripe is down: %v", err)
	}
	foreign := licensing.Owner{AccountID: "acct_other", Mode: owner.Mode}
	if url, err := s.desk.Portal(s.ctx, foreign, o.OrderNo); !errors.Is(err, licensing.ErrOrderNotFound) {
		t.Errorf("another account gets %q, %v", url, err)
	}
}

// TestSandboxPortal: the sandbox has no page for cards.
func TestSandboxPortal(t *testing.T) {
	c := inSandbox(t)
	if _, err := c.desk.Portal(c.ctx, owner, c.create().OrderNo); !errors.Is(err, licensing.ErrNotSubscribed) {
		t.Errorf("an order without a subscription: %v", err)
	}
	o := c.subscribe(payment.PlayPay)
	if _, err := c.desk.Portal(c.ctx, owner, o.OrderNo); !errors.Is(err, licensing.ErrNoPortal) {
		t.Errorf("in the sandbox: %v", err)
	}
}

// TestSandboxSubscriptionChanges: the shop ends subscriptions in the sandbox, and lets them renew.
func TestSandboxSubscriptionChanges(t *testing.T) {
	c := inSandbox(t)
	change := func(o licensing.Order, kind licensing.ChangeKind) licensing.Order {
		t.Helper()
		now, _, err := c.desk.ChangeSubscription(c.ctx, owner, o.OrderNo,
			licensing.ChangeSubscription{Change: licensing.SubscriptionChange{Kind: kind}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	o := c.subscribe(payment.PlayPay)
	if now := change(o, licensing.ChangeEnd); !now.CancelAt.Equal(now.PaidEnd) {
		t.Errorf("to end: %+v", now)
	}
	if now := change(o, licensing.ChangeResume); !now.CancelAt.IsZero() {
		t.Errorf("resumed: %+v", now)
	}
	c.after(11 * time.Second)
	c.renewed("after it was resumed", o, active, 1)
	change(o, licensing.ChangeEnd)
	c.after(11 * time.Second)
	c.renewed("the end", o, canceled, 1)
	other := c.subscribe(payment.PlayPay)
	change(other, licensing.ChangeEndNow)
	c.after(11 * time.Second)
	c.renewed("ended at once", other, canceled, 0)
	c.verify()
}
