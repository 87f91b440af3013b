package payment_test

import (
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
)

// TestSubscriptionChangesBeforeItsPayment: a callback about a subscription that comes before the payment is recorded
// changes nothing. A sweep asks about the subscription a minute after the payment is recorded.
func TestSubscriptionChangesBeforeItsPayment(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	s.fake.SetCard(o.Subscription, fakestripe.CardDeclined)
	s.fake.Renew(o.Subscription)
	for _, wait := range []time.Duration{0, time.Minute} {
		s.advance(wait)
		if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if now := s.order(o); now.SubscriptionStatus != licensing.SubscriptionPastDue || now.AskAt.IsZero() {
		t.Errorf("%+v", now)
	}
	s.verify()
}
