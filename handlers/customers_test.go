package handlers_test

import (
	"net/url"
	"testing"
)

// TestCustomersOfLicenses grants licenses to customers and lists them, also along with the license of an order.
func TestCustomersOfLicenses(t *testing.T) {
	t.Parallel()
	s := newService(t)
	grant := func(members string) string {
		t.Helper()
		a := s.send("POST", "/v1/licenses", keyAll, `{"product_id":"editor","quantity":1`+members+`}`).must(t, 0)
		return s.get(a.grantedKey()).must(t, 0).text("id")
	}
	ada := grant(`,"buyer_email":"Ada@example.com","customer_reference":"C-1"`)
	bob := grant(`,"buyer_email":"bob@example.com","customer_reference":"C-1"`)
	grant(``)
	order := s.send("POST", "/v1/orders", keyAll,
		`{"product_id":"editor","amount":0,"currency":"USD","buyer_email":"ada@example.com"}`).must(t, 0)
	sold := order.text("license_id")
	list := func(query string, want ...string) {
		t.Helper()
		found := map[string]bool{}
		for _, one := range s.send("GET", "/v1/licenses?"+query, keyAll, "").must(t, 0).data["licenses"].([]any) {
			found[one.(map[string]any)["id"].(string)] = true
		}
		for _, id := range want {
			if !found[id] {
				t.Errorf("%s does not list %s", query, id)
			}
		}
		if len(found) != len(want) {
			t.Errorf("%s lists %v, want %v", query, found, want)
		}
	}
	list("buyer_email="+url.QueryEscape("ADA@example.com"), ada, sold)
	list("customer_reference=C-1", ada, bob)
	list("customer_reference=c-1")
	list("customer_reference=C-1&buyer_email=bob@example.com", bob)
	list("buyer_email=ada@example.com&order_no="+order.text("order_no"), sold)
	list("customer_reference=C-1&order_no=" + order.text("order_no"))
	s.send("GET", "/v1/licenses?customer_reference=", keyAll, "").must(t, 42200)

	s.send("PATCH", "/v1/licenses/"+sold, keyAll, `{"buyer_email":"bob@example.com"}`).must(t, 42200)
	s.send("PATCH", "/v1/licenses/"+sold, keyAll, `{"buyer_email":null,"customer_reference":"C-2"}`).must(t, 0)
	list("buyer_email=ada@example.com&customer_reference=C-2", sold)

	done := s.send("POST", "/v1/redactions", keyAll, `{"buyer_email":"ada@example.com"}`).must(t, 0)
	if done.data["orders"] != 1.0 || done.data["licenses"] != 2.0 || done.data["complete"] != true {
		t.Errorf("redacted: %s", done.body)
	}
	list("buyer_email=ada@example.com")
	list("customer_reference=C-1", bob)
	list("customer_reference=C-2")
	for _, id := range []string{ada, sold} {
		if a := s.get(id).must(t, 0); a.data["buyer_email"] != nil || a.data["customer_reference"] != nil {
			t.Errorf("after the redaction: %s", a.body)
		}
	}
}
