package payment_test

import (
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
)

// TestPlanLaterAnswerLost: a change for the next period whose answer is lost, and which is recorded only after that
// period has begun and is paid, is of that period: so are the license and the record of the invoice.
func TestPlanLaterAnswerLost(t *testing.T) {
	for what, find := range map[string]func(*subscriber, licensing.Order){
		"a callback of the invoice": func(s *subscriber, _ licensing.Order) { s.calledAboutInvoices() },
		"a callback of the subscription": func(s *subscriber, o licensing.Order) {
			s.called(payment.ObjectSubscription, o.Subscription)
		},
		"a sweep": func(s *subscriber, _ licensing.Order) {
			if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
				s.t.Error(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := atStripe(t)
			s.team()
			o := s.subscribe()
			s.fake.Fail("POST", "/v1/subscriptions/"+o.Subscription, fakestripe.After, 1)
			_, _, err := s.desk.ChangePlan(s.ctx, owner, o.OrderNo,
				service.NewPlan{ProductID: "team", Amount: 3000, Later: true}, nil)
			if licensing.ReasonOf(err) != licensing.ReasonProviderFailed || !s.order(o).Change.Later {
				t.Fatalf("the answer is lost: %v, %+v", err, s.order(o).Change)
			}
			s.advance(32 * 24 * time.Hour)
			find(s, o)
			now := s.pays("renewed", o, "team", 3000, 25)
			if now.ChangeDue() || now.Next != nil || now.Invoiced != 3000 {
				t.Errorf("renewed: %+v", now)
			}
			list, err := s.node.ListPayments(s.ctx, owner, o.OrderNo, store.Page{Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range list.Items {
				if want := map[int64]string{900: "cloud", 3000: "team"}[p.Amount]; p.ProductID != want {
					t.Errorf("the payment of %d is of %q, want %q", p.Amount, p.ProductID, want)
				}
			}
			s.verify()
		})
	}
}
