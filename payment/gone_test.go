package payment_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/node/service"
	"licet/payment"
	"licet/payment/stripe"
)

// otherKey is the key of another account at Stripe.
const otherKey = "sk_test_other0123456789"

// withKey returns a shop whose service uses the key in use.
func withKey(t *testing.T, inUse *atomic.Value) *subscriber {
	t.Helper()
	inUse.Store(fakeKey)
	s := atStripe(t, func(cfg *stripe.Config) {
		cfg.Secrets = func() stripe.Secrets { return stripe.Secrets{Key: inUse.Load().(string)} }
	})
	s.fake.AddKey(otherKey)
	return s
}

// checkout returns an order with an open checkout.
func (s *subscriber) checkout() licensing.Order {
	s.t.Helper()
	o := s.create()
	if _, _, err := s.desk.Pay(s.ctx, o); err != nil {
		s.t.Fatal(err)
	}
	return s.order(o)
}

// sold returns an order that is paid.
func (s *subscriber) sold() licensing.Order {
	s.t.Helper()
	o := s.checkout()
	if err := s.fake.Pay(o.Checkout, fakestripe.CardPays); err != nil {
		s.t.Fatal(err)
	}
	s.called(payment.ObjectCheckout, o.Checkout)
	return s.order(o)
}

// TestKeyOfAnotherAccount: with the key of another account, Stripe knows nothing that the service has made. No order
// changes, however long that lasts, the requests of the shop fail, and once the key is right again all money is found.
func TestKeyOfAnotherAccount(t *testing.T) {
	var inUse atomic.Value
	s := withKey(t, &inUse)
	paid, subscribed, refunded, disputed := s.checkout(), s.subscribe(), s.sold(), s.sold()
	dispute, err := s.fake.Dispute(disputed.Payment)
	if err != nil {
		t.Fatal(err)
	}
	s.called(payment.ObjectDispute, dispute)
	if err := s.fake.Pay(paid.Checkout, fakestripe.CardPays); err != nil {
		t.Fatal(err)
	}
	inUse.Store(otherKey)
	s.advance(2 * time.Minute)
	for range 30 {
		if err := s.desk.AskCheckoutsDue(s.ctx); !errors.Is(err, payment.ErrUnknownObject) {
			t.Fatalf("the sweep returns %v", err)
		}
		s.advance(time.Hour + time.Minute)
	}
	_, _, payFailed := s.desk.Pay(s.ctx, s.order(paid))
	_, portalFailed := s.desk.Portal(s.ctx, owner, subscribed.OrderNo)
	_, _, changeFailed := s.desk.ChangeSubscription(s.ctx, owner, subscribed.OrderNo,
		licensing.ChangeSubscription{Change: licensing.SubscriptionChange{Kind: licensing.ChangeEnd}}, nil)
	_, _, refundFailed := s.desk.Refund(s.ctx, owner, refunded.OrderNo, licensing.RequestRefund{}, nil)
	for name, err := range map[string]error{"press Pay": payFailed, "portal": portalFailed, "change": changeFailed,
		"refund": refundFailed} {
		if licensing.ReasonOf(err) != licensing.ReasonProviderFailed || !errors.Is(err, payment.ErrUnknownObject) ||
			errors.Is(err, payment.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.desk.SendRefundsDue(s.ctx); err != nil { // not due yet
		t.Error(err)
	}
	if o := s.order(paid); !o.CheckoutOpen() || o.Attempt != 1 {
		t.Errorf("the paid checkout is over: %+v", o)
	}
	if o := s.order(subscribed); o.SubscriptionStatus != licensing.SubscriptionActive || !o.ChangeDue() {
		t.Errorf("the subscription: %+v", o)
	}
	if o := s.order(refunded); !o.RefundDue || !o.RefundedAt.IsZero() {
		t.Errorf("the refund: %+v", o)
	}
	inUse.Store(fakeKey)
	s.fake.Decide(dispute, false)
	s.advance(25 * time.Hour)
	if err := errors.Join(s.node.RecordOrderEnds(s.ctx), s.desk.AskCheckoutsDue(s.ctx),
		s.desk.SendRefundsDue(s.ctx)); err != nil {
		t.Error(err)
	}
	if o := s.order(paid); o.PaidAt.IsZero() {
		t.Errorf("the paid checkout is not found: %+v", o)
	}
	if o := s.order(subscribed); o.CancelAt.IsZero() || o.ChangeDue() {
		t.Errorf("the subscription does not end: %+v", o)
	}
	for what, o := range map[string]licensing.Order{"refund": s.order(refunded), "lost dispute": s.order(disputed)} {
		if o.RefundedAt.IsZero() || o.RefundDue {
			t.Errorf("the %s is not found: %+v", what, o)
		}
	}
	s.verify()
}

// TestDeletedTestData: what the shop has deleted at Stripe keeps no sweep busy forever. A refund is withdrawn, and a
// checkout and a subscription end.
func TestDeletedTestData(t *testing.T) {
	var inUse atomic.Value
	s := withKey(t, &inUse)
	checkout, subscribed, refunded := s.checkout(), s.subscribe(), s.sold()
	inUse.Store(otherKey)
	if _, _, err := s.desk.Refund(s.ctx, owner, refunded.OrderNo, licensing.RequestRefund{}, nil); err == nil {
		t.Fatal("the payment is refunded")
	}
	sweeps := 0
	for busy := true; busy; sweeps++ {
		if sweeps > 100 {
			t.Fatalf("after %d sweeps: %+v\n%+v\n%+v", sweeps, checkout.Due(), subscribed.Due(), refunded.Due())
		}
		if err := s.node.RecordOrderEnds(s.ctx); err != nil {
			t.Fatal(err)
		}
		_, _ = s.desk.AskCheckoutsDue(s.ctx), s.desk.SendRefundsDue(s.ctx)
		s.advance(25 * time.Hour)
		checkout, subscribed, refunded = s.order(checkout), s.order(subscribed), s.order(refunded)
		busy = checkout.CheckoutOpen() || subscribed.SubscriptionStatus == licensing.SubscriptionActive ||
			refunded.RefundDue
	}
	if sweeps < 50 {
		t.Errorf("the service gives up after %d sweeps", sweeps)
	}
	if err := errors.Join(s.desk.AskCheckoutsDue(s.ctx), s.desk.SendRefundsDue(s.ctx)); err != nil {
		t.Error(err)
	}
	if !refunded.RefundedAt.IsZero() || refunded.Refunded != 0 {
		t.Errorf("the refund of a deleted payment: %+v", refunded)
	}
	s.verify()
}

// forgetful is a provider that knows none of its checkouts.
type forgetful struct{ *till }

func (forgetful) Look(context.Context, payment.Object) (payment.State, error) {
	return payment.State{}, payment.ErrUnknownObject
}

// TestLiveCheckoutsAreNotGone: in live mode a provider deletes nothing, so no number of failures ends a checkout. After
// some time, the sweep asks once a day.
func TestLiveCheckoutsAreNotGone(t *testing.T) {
	w := newFixture(t)
	live := licensing.Owner{AccountID: owner.AccountID, Mode: licensing.Live}
	desk := payment.NewDesk(w.node, payment.ForMode(licensing.Live, forgetful{newTill(w.clock.now)}))
	if _, _, err := w.node.PutProduct(w.ctx, licensing.PutProduct{ID: "pro", Owner: live,
		Terms: licensing.DefaultTerms()}); err != nil {
		t.Fatal(err)
	}
	o, _, err := w.node.CreateOrder(w.ctx, live, service.NewOrder{ProductID: "pro", Amount: 100, Currency: "USD"})
	if err == nil {
		_, _, err = desk.Pay(w.ctx, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for range 40 * 24 {
		w.clock.advance(time.Hour)
		if err := w.node.RecordOrderEnds(w.ctx); err != nil {
			t.Fatal(err)
		}
		if err := desk.AskCheckoutsDue(w.ctx); errors.Is(err, payment.ErrUnknownObject) {
			asked++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if o, err = w.node.Order(w.ctx, live, o.OrderNo); err != nil || !o.CheckoutOpen() || o.AskFailures != asked {
		t.Errorf("after %d questions: %+v, %v", asked, o, err)
	}
	if asked < 60 || asked > 120 {
		t.Errorf("%d questions in 40 days", asked)
	}
}
