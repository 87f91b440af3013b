package main

import (
	"testing"
	"time"

	"licet/internal/fakestripe"
)

// TestStripeEvents: no callback about refunds and disputes arrives. The service finds them in Stripe's list of events:
// refunds in the dashboard, a refund of the service's own that fails after it was made, a dispute, and a lost dispute
// that the shop wins after all.
func TestStripeEvents(t *testing.T) {
	t.Parallel()
	s := startAtStripe(t)
	part, whole, failing := s.paid(fakestripe.CardPays), s.paid(fakestripe.CardPays), s.paid(fakestripe.CardRefundFails)
	disputed := s.paid(fakestripe.CardPays)
	s.fake.Delivered()
	s.fake.SetSending(fakestripe.Sending{Drop: 1000, Hide: 1000})
	s.want(t, 200, "POST", "/v1/orders/"+failing.text("order_no")+"/refund", "")
	for order, amount := range map[*object]int64{&part: 900, &whole: 4900} {
		if _, err := s.fake.RefundInDashboard(order.text("payment_reference"), amount); err != nil {
			t.Fatal(err)
		}
	}
	dispute, err := s.fake.Dispute(disputed.text("payment_reference"))
	if err != nil {
		t.Fatal(err)
	}
	s.fake.Decide(dispute, false)
	at := s.at
	from := func() { s.at = at } // the events of the orders come in any order
	s.fake.Advance(25 * time.Hour)
	s.awaitThat("order.refund_updated", part, func(o object) bool { return o["amount_refunded"] == 900.0 })
	from()
	s.await("order.refunded", whole)
	from()
	s.awaitThat("order.refund_updated", failing, func(o object) bool { return o["amount_refunded"] == 0.0 })
	from()
	if of := s.awaitEvent("order.disputed", disputed)["dispute"].(map[string]any); of["status"] != "lost" {
		t.Errorf("the dispute is %v", of)
	}
	s.fake.Decide(dispute, true)
	s.fake.Advance(time.Hour)
	if of := s.awaitEvent("order.disputed", disputed)["dispute"].(map[string]any); of["status"] != "won" {
		t.Errorf("the dispute is %v", of)
	}
}
