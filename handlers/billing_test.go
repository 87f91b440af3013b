package handlers_test

import (
	"strings"
	"testing"

	"licet/licensing"
)

// TestBilling: what a product with billing, and an order for it, can't have.
func TestBilling(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, terms := range []string{
		`"billing":{"interval":""}`, `"billing":{"interval":"PT9S"}`, `"billing":{"interval":"P4Y"}`, `"billing":{"interval":"P1M","grace":"P2Y"}`,
		`"billing":{"grace":"P1D"}`, `"billing":{"interval":"P1M"},"validity":"P1Y"`,
	} {
		s.product("cloud", terms).must(t, 42200)
	}
	for sent, want := range map[string]string{
		`{}`: `"trial":{},"receipt"`, `{"interval":"P1M"}`: `"billing":{"interval":"P1M","grace":"P3D"}`,
		`{"interval":"PT10S","grace":"PT5S"}`: `"billing":{"interval":"PT10S","grace":"PT5S"}`,
		`{"interval":"P1Y","grace":"PT0S"}`:   `"billing":{"interval":"P1Y","grace":"PT0S"}`,
	} {
		if got := s.product("cloud", `"billing":`+sent).must(t, 0).body; !strings.Contains(got, want) {
			t.Errorf("the product with the billing %s is shown as %s", sent, got)
		}
	}
	s.product("cloud", `"billing":{"interval":"P1M"}`).must(t, 0)
	for _, members := range []string{
		`"amount":900,"quantity":2`, `"amount":0`, `"amount":900,"payment_provider":"outside"`,
	} {
		s.send("POST", "/v1/orders", keyAll, `{"product_id":"cloud","currency":"EUR",`+members+`}`).must(t, 42200)
	}
	number := s.send("POST", "/v1/orders", keyAll, `{"product_id":"cloud","currency":"EUR","amount":900,"quantity":1}`).
		must(t, 0).text("order_no")
	s.send("POST", "/v1/orders/"+number+"/payments", keyAll, `{"reference":"INV-1"}`).must(t, 40902)
	s.send("PUT", "/v1/orders/"+number+"/sandbox_payment", keyAll, "").must(t, 0)
	paid, err := s.node.Order(t.Context(), licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}, number)
	if err != nil || paid.PaidEnd.IsZero() || !paid.Subscribed() {
		t.Errorf("%+v, %v", paid, err)
	}
}

// subscribed returns the path of an order that has a subscription in the sandbox.
func (s *fixture) subscribed() string {
	s.t.Helper()
	s.product("cloud", `"billing":{"interval":"P1M"}`).must(s.t, 0)
	made := s.send("POST", "/v1/orders", keyAll, `{"product_id":"cloud","currency":"EUR","amount":900}`).must(s.t, 0)
	s.pay(made)
	return "/v1/orders/" + made.text("order_no")
}

// TestSubscriptionChange: a subscription is changed at once, and with its next period.
func TestSubscriptionChange(t *testing.T) {
	t.Parallel()
	s := newService(t)
	order := s.subscribed()
	path := order + "/subscription/change"
	s.product("team", `"billing":{"interval":"P1M"},"max_devices":25`).must(t, 0)
	license := s.send("GET", order, keyAll, "").must(t, 0).text("license_key")
	f := func(body, product string, amount float64, devices float64, planned bool, headers ...string) {
		t.Helper()
		got := s.send("POST", path, keyAll, body, headers...).must(t, 0)
		now := got.data["subscription"].(map[string]any)
		l := s.send("GET", "/v1/licenses/"+license, keyAll, "").must(t, 0)
		if now["product_id"] != product || now["amount"] != amount || (now["planned_change"] != nil) != planned ||
			l.data["product_id"] != product || l.data["max_devices"] != devices ||
			got.data["product_id"] != "cloud" || got.data["amount"] != 900.0 {
			t.Errorf("%s: %s, %s", body, got.body, l.body)
		}
	}
	f(`{"product_id":"team","amount":3000,"at":"now"}`, "team", 3000, 25, false, "Idempotency-Key", "change-1")
	f(`{"amount":1800,"max_devices":6,"at":"now"}`, "team", 1800, 6, false)
	f(`{"product_id":"team","amount":3000,"at":"now"}`, "team", 1800, 6, false, "Idempotency-Key", "change-1")
	f(`{"product_id":"cloud","amount":900}`, "team", 1800, 6, true)
	s.send("POST", path, keyAll, `{"amount":5000,"at":"now"}`).must(t, 40902)
	f(`{"amount":1800,"at":"period_end"}`, "team", 1800, 6, false)
	s.send("POST", path, keyAll, `{"product_id":"none","amount":1}`).must(t, 40404)
	for _, body := range []string{`{}`, `{"amount":0}`, `{"amount":1,"at":"soon"}`, `{"amount":1,"product_id":""}`,
		`{"amount":1,"max_devices":-1}`} {
		s.send("POST", path, keyAll, body).must(t, 42200)
	}
	s.send("POST", order+"/subscription/cancel", keyAll, `{"at":"now"}`).must(t, 0)
	s.send("POST", path, keyAll, `{"amount":5000}`).must(t, 40902)
}

// TestSubscriptionRoutes: a subscription is canceled, resumed and canceled again. A repeated request changes nothing.
func TestSubscriptionRoutes(t *testing.T) {
	t.Parallel()
	s := newService(t)
	path := s.subscribed() + "/subscription/"
	f := func(verb, body, status string, ends bool, headers ...string) {
		t.Helper()
		got := s.send("POST", path+verb, keyAll, body, headers...).must(t, 0)
		now := got.data["subscription"].(map[string]any)
		if now["status"] != status || (now["cancel_at"] != nil) != ends {
			t.Errorf("%s %s: %s", verb, body, got.body)
		}
	}
	f("cancel", "", "active", true, "Idempotency-Key", "cancel-1")
	f("cancel", "{}", "active", true)
	f("resume", "", "active", false)
	f("cancel", "", "active", false, "Idempotency-Key", "cancel-1")
	f("cancel", `{"at":"period_end"}`, "active", true)
	f("cancel", `{"at":"now"}`, "canceled", true)
	f("cancel", "", "canceled", true)
	s.send("POST", path+"resume", keyAll, "").must(t, 40902)
	s.send("POST", path+"cancel", keyAll, `{"at":""}`).must(t, 42200)
	s.send("POST", path+"portal", keyAll, "").must(t, 40904)
}
