package payment_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/payment"
)

// deaf is a provider that answers no question about a subscription while it is told so.
type deaf struct {
	payment.Provider
	on    atomic.Bool
	asked atomic.Int64 // how many questions had no answer
}

func (p *deaf) Look(ctx context.Context, object payment.Object) (payment.State, error) {
	if object.Kind == payment.ObjectSubscription && p.on.Load() {
		p.asked.Add(1)
		return payment.State{}, errDown
	}
	return p.Provider.Look(ctx, object)
}

// TestFailedQuestionsArePutOff: a sweep that asks about a subscription in vain asks again after growing pauses, and
// meanwhile the refund of the same order goes on.
func TestFailedQuestionsArePutOff(t *testing.T) {
	s := atStripe(t)
	o := s.subscribeWith(fakestripe.CardRefundFails)
	provider := &deaf{Provider: s.provider}
	_, desk := s.open(s.store, provider)
	s.clock.advance(2 * time.Minute) // after that, the sweep asks about a subscription that has begun
	provider.on.Store(true)
	var pauses []time.Duration
	for range 10 {
		before, asked := s.order(o), provider.asked.Load()
		if err := desk.AskCheckoutsDue(s.ctx); err == nil || provider.asked.Load() != asked+1 {
			t.Fatalf("the sweep asked %d times and returned %v", provider.asked.Load()-asked, err)
		}
		if err := desk.AskCheckoutsDue(s.ctx); err != nil || provider.asked.Load() != asked+1 {
			t.Fatalf("the next sweep asked %d times and returned %v", provider.asked.Load()-asked-1, err)
		}
		put := s.order(o)
		if put.AskAt.Equal(before.AskAt) {
			t.Fatalf("the question is put off from %s to %s", before.AskAt, put.AskAt)
		}
		pauses = append(pauses, put.AskAt.Sub(s.node.Now()).Round(15*time.Second))
		s.advance(put.AskAt.Sub(s.node.Now()) + time.Second)
	}
	if pauses[0] != 15*time.Second || pauses[1] != 30*time.Second || pauses[9] != time.Hour {
		t.Errorf("the pauses are %v", pauses)
	}
	if _, _, _, err := s.node.RequestRefund(s.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.node.TryRefund(s.ctx, o, false); err != nil { // of a node that died before it asked
		t.Fatal(err)
	}
	s.advance(time.Minute)
	if o = s.order(o); o.Due().Kind != licensing.DueCheckout {
		t.Fatalf("no question is due before the refund: %+v", o.Due())
	}
	if err := desk.AskCheckoutsDue(s.ctx); err == nil {
		t.Error("the question has an answer")
	}
	if err := desk.SendRefundsDue(s.ctx); err != nil {
		t.Fatal(err)
	}
	if o = s.order(o); o.RefundedAt.IsZero() {
		t.Errorf("behind a failing question, the order is not refunded: %+v", o)
	}
	provider.on.Store(false)
	s.advance(2 * time.Hour)
	if err := desk.AskCheckoutsDue(s.ctx); err != nil {
		t.Fatal(err)
	}
	if o = s.order(o); o.AskFailures != 0 || o.SubscriptionStatus != licensing.SubscriptionCanceled {
		t.Errorf("after an answer, the order is %+v", o)
	}
}
