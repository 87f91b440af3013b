package payment_test

import (
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/payment"
)

// TestRefundOfSecondSubscription: the record of a payment with which a buyer has begun a second subscription is found
// when the shop refunds the payment in Stripe's dashboard, or when the buyer disputes the payment. The order's own
// subscription stays.
func TestRefundOfSecondSubscription(t *testing.T) {
	s := atStripe(t)
	second := func() (licensing.Order, string) {
		t.Helper()
		o := s.subscribe()
		again := o
		again.Attempt, again.Checkout = o.Attempt+1, ""
		step, err := s.provider.Begin(s.ctx, again)
		if err == nil {
			err = s.fake.Pay(step.Checkout, fakestripe.CardPays)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.fake.Fail("POST", "/v1/refunds", fakestripe.Busy, 1)
		err = s.desk.Called(s.ctx, owner, payment.Object{Kind: payment.ObjectCheckout, ID: step.Checkout})
		if licensing.ReasonOf(err) != licensing.ReasonProviderFailed {
			t.Errorf("while Stripe makes no refund: %v", err)
		}
		if now := s.order(o); len(now.OpenReturns()) != 1 {
			t.Fatalf("the second payment is not due to go back: %+v", now)
		}
		ledger := s.fake.Ledger()
		return o, ledger[len(ledger)-1].Payment
	}

	o, intent := second()
	part, err := s.fake.RefundInDashboard(intent, 40)
	if err != nil {
		t.Fatal(err)
	}
	s.fixtureCalled(payment.Object{Kind: payment.ObjectRefund, ID: part})
	for range 3 {
		s.advance(time.Hour)
		if err := s.desk.SendRefundsDue(s.ctx); err != nil {
			t.Error(err)
		}
	}
	if now := s.order(o); now.AmountRefunded() != o.Amount || len(now.OpenReturns()) != 0 || now.Refunds != 0 ||
		now.SubscriptionStatus != licensing.SubscriptionActive {
		t.Errorf("after a refund in the dashboard: %+v", now)
	}

	o, intent = second()
	dispute := s.dispute(intent)
	s.advance(time.Hour)
	_ = s.desk.SendRefundsDue(s.ctx) // says that Stripe refuses the refund, while the dispute is open
	s.decide(dispute, false)
	if now := s.order(o); now.AmountRefunded() != o.Amount || len(now.OpenReturns()) != 0 ||
		now.SubscriptionStatus != licensing.SubscriptionActive || !now.RefundedAt.IsZero() {
		t.Errorf("after a lost dispute: back %d, returns %+v, sub %s, refunded %s", now.AmountRefunded(),
			now.OpenReturns(), now.SubscriptionStatus, now.RefundedAt)
	}
	s.verify()
}
