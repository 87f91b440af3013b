package payment_test

import (
	"errors"
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

// TestSubscriptionChangeOfDeadNode: if Stripe is down, or the node dies before it asks Stripe, a sweep makes the change
// that was requested last.
func TestSubscriptionChangeOfDeadNode(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	s.fake.Fail("POST", "/v1/subscriptions/"+o.Subscription, fakestripe.Busy, 1)
	_, err := s.change(s.desk, o, licensing.ChangeEnd, nil)
	if licensing.ReasonOf(err) != licensing.ReasonProviderFailed || s.order(o).Change.Kind != licensing.ChangeEnd {
		t.Errorf("while Stripe is down: %v, %+v", err, s.order(o))
	}
	for _, kind := range []licensing.ChangeKind{licensing.ChangeResume, licensing.ChangeEnd} {
		request := licensing.ChangeSubscription{Change: licensing.SubscriptionChange{Kind: kind}}
		if _, err := s.node.Do(s.ctx, licensing.OrderRef(owner, o.OrderNo), request); err != nil {
			t.Fatal(err)
		}
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
