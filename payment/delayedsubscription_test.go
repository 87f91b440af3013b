package payment_test

import (
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/payment"
)

// TestDelayedFirstPayment: the first payment of a subscription that takes days is on its way, and then pays the order
// or fails. After a failure nothing of the attempt is left at Stripe, and the buyer can pay again.
func TestDelayedFirstPayment(t *testing.T) {
	s := atStripe(t)
	for _, byCallback := range []bool{true, false} {
		paid, failed := s.subscribeWith(fakestripe.BankPays), s.subscribeWith(fakestripe.BankFails)
		for _, o := range []licensing.Order{paid, failed} {
			if now, pending := s.desk.Check(s.ctx, o); !pending || !now.PaidAt.IsZero() || !now.CheckoutOpen() {
				t.Errorf("at once: pending %t, %+v", pending, now)
			}
		}
		s.advance(3*24*time.Hour + time.Minute)
		for _, o := range []licensing.Order{paid, failed} {
			if byCallback {
				s.called(payment.ObjectCheckout, o.Checkout)
			}
		}
		if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.node.RecordOrderEnds(s.ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
			t.Fatal(err)
		}
		if paid = s.balanced("paid", paid, 1); !paid.Subscribed() ||
			paid.SubscriptionStatus != licensing.SubscriptionActive {
			t.Errorf("after the payment: %+v", paid)
		}
		if failed = s.order(failed); failed.CheckoutOpen() || !failed.PaidAt.IsZero() {
			t.Errorf("after the failure: %+v", failed)
		}
		if states := s.fake.Subscriptions(); states[failed.OrderNo] != "incomplete_expired" ||
			states[paid.OrderNo] != "active" {
			t.Errorf("the subscriptions are %v", states)
		}
	}
	s.verify()
}
