package handlers_test

import (
	"net/url"
	"strings"
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

// TestRedactByReference removes what a shop stores with the licenses of a customer whom it knows by a reference: of
// granted licenses, and of a license with an order. The order keeps its buyer.
func TestRedactByReference(t *testing.T) {
	t.Parallel()
	s := newService(t)
	order := s.send("POST", "/v1/orders", keyAll,
		`{"product_id":"pro","amount":0,"currency":"USD","buyer_email":"ada@example.com"}`).must(t, 0)
	sold := order.text("license_id")
	s.send("PATCH", "/v1/licenses/"+sold, keyAll, `{"customer_reference":"C-1","metadata":{"seat":"4"}}`).must(t, 0)
	grant := func(members string) string {
		t.Helper()
		body := `{"product_id":"pro","quantity":1,` + members + `}`
		return s.send("POST", "/v1/licenses", keyAll, body).must(t, 0).grantedKey()
	}
	bob := grant(`"customer_reference":"C-1","buyer_email":"bob@example.com"`)
	noted := grant(`"customer_reference":"C-1","metadata":{"seat":"5"}`)
	other := grant(`"customer_reference":"c-1"`)
	for body, field := range map[string]string{
		`{}`: "buyer_email", `{"buyer_email":"ada@example.com","customer_reference":"C-1"}`: "buyer_email",
		`{"customer_reference":""}`: "customer_reference", `{"customer_reference":null}`: "buyer_email",
		`{"customer_reference":"` + strings.Repeat("x", 65) + `"}`: "customer_reference",
	} {
		if got := s.send("POST", "/v1/redactions", keyAll, body).must(t, 42200); !strings.Contains(got.body, field) {
			t.Errorf("%s: %s", body, got.body)
		}
	}
	for _, want := range []float64{3, 0} {
		done := s.send("POST", "/v1/redactions", keyAll, `{"customer_reference":"C-1"}`).must(t, 0)
		if done.data["orders"] != 0.0 || done.data["licenses"] != want || done.data["complete"] != true {
			t.Errorf("redacted, want %v licenses: %s", want, done.body)
		}
	}
	for _, id := range []string{bob, noted, sold} {
		a := s.get(id).must(t, 0)
		if a.data["customer_reference"] != nil || strings.Contains(a.body, "bob@") || strings.Contains(a.body, "seat") {
			t.Errorf("after the redaction: %s", a.body)
		}
	}
	a := s.send("GET", "/v1/orders/"+order.text("order_no"), keyAll, "").must(t, 0)
	if a.data["buyer_email"] != "ada@example.com" {
		t.Errorf("the order: %s", a.body)
	}
	if a := s.get(other); a.data["customer_reference"] != "c-1" {
		t.Errorf("another customer's license: %s", a.body)
	}
}
