package main

import (
	"net/http"
	"path"
	"strings"
	"testing"

	"licet/internal/fakestripe"
)

// subscribe sells a subscription at Stripe, and returns the path of its order and of its license.
func (s *atStripe) subscribe() (order object, license string) {
	s.t.Helper()
	s.want(s.t, 201, "PUT", "/v1/products/cloud", `{"billing":{"interval":"P1M"}}`)
	s.want(s.t, 201, "PUT", "/v1/products/team", `{"billing":{"interval":"P1M"},"max_devices":25}`)
	order = s.want(s.t, 201, "POST", "/v1/orders", `{"product_id":"cloud","amount":900,"currency":"EUR"}`).Data
	pressed, err := s.press(s.t.Context(), order.text("pay_url"), "pay")
	if err != nil || pressed.status != http.StatusSeeOther {
		s.t.Fatalf("%v %d %s", err, pressed.status, pressed.body)
	}
	if err := s.fake.Pay(path.Base(pressed.header.Get("Location")), fakestripe.CardPays); err != nil {
		s.t.Fatal(err)
	}
	return order, "/v1/licenses/" + s.await("order.paid", order)["license_key"].(string)
}

// TestStripeSubscription: a shop changes what a subscription pays for, ends it and lets it renew, with the SDK's shapes
// and over HTTP.
func TestStripeSubscription(t *testing.T) {
	t.Parallel()
	s := startAtStripe(t)
	order, license := s.subscribe()
	at := "/v1/orders/" + order.text("order_no")
	change := func(verb, body string) map[string]any {
		t.Helper()
		now, _ := s.want(t, 200, "POST", at+"/subscription/"+verb, body).Data["subscription"].(map[string]any)
		return now
	}
	pays := func(what, product string, amount, devices float64) {
		t.Helper()
		now, _ := s.want(t, 200, "GET", at, "").Data["subscription"].(map[string]any)
		l := s.want(t, 200, "GET", license, "").Data
		if now["product_id"] != product || now["amount"] != amount || l["product_id"] != product ||
			l["max_devices"] != devices {
			t.Errorf("%s: %v, %v", what, now, l)
		}
	}
	ends := s.want(t, 200, "GET", license, "").Data.text("expires_at")
	invoices := func() int { return len(s.fake.IDs("invoice")) }

	s.fake.SetCard(s.fake.IDs("subscription")[0], fakestripe.CardDeclined)
	declined := s.want(t, 502, "POST", at+"/subscription/change", `{"product_id":"team","amount":3000,"at":"now"}`)
	if declined.Code != 50200 || !strings.Contains(declined.body, "nothing has changed") {
		t.Error(declined.body)
	}
	pays("declined", "cloud", 900, 3)
	s.fake.SetCard(s.fake.IDs("subscription")[0], fakestripe.CardPays)
	before := invoices()
	for range 2 {
		change("change", `{"product_id":"team","amount":3000,"at":"now"}`)
	}
	pays("upgraded", "team", 3000, 25)
	if s.await("order.payment_succeeded", order); invoices() != before+1 {
		t.Errorf("%d invoices of the difference, want 1", invoices()-before)
	}
	if now := s.want(t, 200, "GET", license, "").Data.text("expires_at"); now != ends {
		t.Errorf("the invoice of a difference has moved the end from %s to %s", ends, now)
	}

	if now := change("change", `{"amount":1800,"max_devices":6}`); now["planned_change"] == nil {
		t.Errorf("planned: %v", now)
	}
	pays("planned", "team", 3000, 25)
	refused := s.want(t, 409, "POST", at+"/subscription/change", `{"amount":9000,"at":"now"}`)
	if refused.Code != 40902 || !strings.Contains(refused.body, "first take that change back") {
		t.Error(refused.body)
	}
	if now := change("change", `{"amount":3000,"at":"period_end"}`); now["planned_change"] != nil {
		t.Errorf("taken back: %v", now)
	}
	small := s.want(t, 422, "POST", at+"/subscription/change", `{"amount":1}`)
	if !strings.Contains(small.body, "the least that Stripe charges in EUR") {
		t.Error(small.body)
	}

	if now := change("cancel", ""); now["cancel_at"] != now["current_period_end"] {
		t.Errorf("to end: %v", now)
	}
	if now := change("resume", ""); now["cancel_at"] != nil {
		t.Errorf("resumed: %v", now)
	}
	page := s.want(t, 200, "POST", at+"/subscription/portal", "").Data
	if !strings.HasPrefix(page.text("url"), s.fake.URL+"/p/session/") {
		t.Errorf("the page for the card is %v", page)
	}
	if now := change("cancel", `{"at":"now"}`); now["status"] != "canceled" {
		t.Errorf("ended: %v", now)
	}
}
