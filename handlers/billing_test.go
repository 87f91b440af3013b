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
