package payment_test

import (
	"errors"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/node/service"
	"licet/payment"
)

// TestMovedFromProvider: an owner of test mode has another provider now, or none. Orders of the earlier provider keep
// no sweep busy forever: a refund is withdrawn, and a checkout and a subscription end. No pass of questions fails.
func TestMovedFromProvider(t *testing.T) {
	for name, now := range map[string]payment.Provider{"another provider": newBank(), "no provider": nil} {
		t.Run(name, func(t *testing.T) {
			s := atStripe(t)
			checkout, subscribed, refunded := s.checkout(), s.subscribe(), s.sold()
			s.fake.Fail("POST", "/v1/refunds", fakestripe.BadGateway, 1)
			if _, _, err := s.desk.Refund(s.ctx, owner, refunded.OrderNo, licensing.RequestRefund{}, nil); err == nil {
				t.Fatal("the payment is refunded")
			}
			_, desk := s.open(s.store, now)
			if now == nil {
				desk = payment.NewDesk(s.node, nil)
			}
			sweeps, failed := 0, 0
			for busy := true; busy; sweeps++ {
				if sweeps > 100 {
					t.Fatalf("after %d sweeps: %+v\n%+v\n%+v", sweeps, checkout.Due(), subscribed.Due(), refunded.Due())
				}
				s.advance(25 * time.Hour)
				if err := errors.Join(s.node.RecordOrderEnds(s.ctx), desk.AskCheckoutsDue(s.ctx)); err != nil {
					t.Fatal(err)
				}
				for range 2 { // the second pass finds nothing to try
					if err := desk.SendRefundsDue(s.ctx); errors.Is(err, licensing.ErrPaymentNotConfigured) {
						failed++
					} else if err != nil {
						t.Fatal(err)
					}
				}
				checkout, subscribed, refunded = s.order(checkout), s.order(subscribed), s.order(refunded)
				busy = checkout.CheckoutOpen() || subscribed.SubscriptionStatus == licensing.SubscriptionActive ||
					refunded.RefundDue
			}
			if sweeps < 50 || failed < 50 || failed > sweeps {
				t.Errorf("the service gives up after %d sweeps, of which %d found a due refund", sweeps, failed)
			}
			if !refunded.RefundedAt.IsZero() || refunded.Refunded != 0 {
				t.Errorf("the refund at the earlier provider: %+v", refunded)
			}
			for what, o := range map[string]licensing.Order{"checkout": checkout, "subscription": subscribed,
				"refund": refunded} {
				if due := o.Due(); due.Kind == licensing.DueCheckout || due.Kind == licensing.DueRefund {
					t.Errorf("the order with the %s is due: %+v", what, due)
				}
			}
			s.verify()
		})
	}
}

// TestMovedLive: in live mode, the service waits for an earlier provider until 30 days after the end of a checkout. If
// the provider is set up again by then, the service finds the payment.
func TestMovedLive(t *testing.T) {
	w := newFixture(t)
	live := licensing.Owner{AccountID: owner.AccountID, Mode: licensing.Live}
	till := newTill(w.clock.now)
	before := payment.NewDesk(w.node, payment.ForMode(licensing.Live, till))
	after := payment.NewDesk(w.node, nil)
	if _, _, err := w.node.PutProduct(w.ctx, licensing.PutProduct{ID: "pro", Owner: live,
		Terms: licensing.DefaultTerms()}); err != nil {
		t.Fatal(err)
	}
	checkout := func() licensing.Order {
		t.Helper()
		o, _, err := w.node.CreateOrder(w.ctx, live, service.NewOrder{ProductID: "pro", Amount: 100, Currency: "USD"})
		if err == nil {
			_, _, err = before.Pay(w.ctx, o)
		}
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	pass := func(days int) {
		t.Helper()
		for range days * 24 {
			w.clock.advance(time.Hour)
			if err := errors.Join(w.node.RecordOrderEnds(w.ctx), after.AskCheckoutsDue(w.ctx)); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func(o licensing.Order) licensing.Order {
		t.Helper()
		o, err := w.node.Order(w.ctx, live, o.OrderNo)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	paid, left := checkout(), checkout()
	till.changeOpen(paid.OrderNo, func(s *session) {
		pays(s)
		s.Live = true
	})
	pass(29)
	for _, o := range []licensing.Order{read(paid), read(left)} {
		if !o.CheckoutOpen() {
			t.Errorf("after 29 days, the service has given up: %+v", o)
		}
	}
	w.clock.advance(25 * time.Hour)
	if err := before.AskCheckoutsDue(w.ctx); err != nil {
		t.Fatal(err)
	}
	if o := read(paid); o.PaidAt.IsZero() {
		t.Errorf("the provider is set up again, and the order is %+v", o)
	}
	moved := checkout()
	pass(40)
	if o := read(moved); o.CheckoutOpen() || o.Due().Kind == licensing.DueCheckout {
		t.Errorf("after 40 days: %+v", o)
	}
	w.verify()
}
