package payment_test

import (
	"context"
	"testing"
	"time"

	"licet/licensing"
	"licet/payment"
)

// overtaken is a provider whose next answer about a subscription comes after something else has happened.
type overtaken struct {
	payment.Provider
	by func()
}

func (p *overtaken) Look(ctx context.Context, object payment.Object) (payment.State, error) {
	state, err := p.Provider.Look(ctx, object)
	if by := p.by; object.Kind == payment.ObjectSubscription && by != nil {
		p.by = nil
		by()
	}
	return state, err
}

// TestEndDuringQuestion: a whole refund that is recorded while another node asks about the subscription ends the
// subscription at once. The answer, which says that the subscription is active, does not put off the end.
func TestEndDuringQuestion(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	provider := &overtaken{s.provider, func() {
		if _, _, err := s.desk.Refund(s.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); err != nil {
			t.Errorf("the refund returns %v", err)
		}
	}}
	_, desk := s.open(s.fixture.other, provider)
	s.clock.advance(2 * time.Minute) // after that, the sweep asks about a subscription that has begun
	if err := desk.AskCheckoutsDue(s.ctx); err != nil {
		t.Fatal(err)
	}
	if provider.by != nil {
		t.Error("the sweep has not asked about the subscription")
	}
	o = s.order(o)
	if o.RefundedAt.IsZero() || o.SubscriptionStatus != licensing.SubscriptionCanceled || o.ChangeDue() {
		t.Errorf("the order is %+v", o)
	}
	if states := s.fake.Subscriptions(); states[o.OrderNo] != "canceled" {
		t.Errorf("at Stripe, the subscription is %q", states[o.OrderNo])
	}
	s.verify()
}
