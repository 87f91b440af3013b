package handlers_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestProducts(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const path = "/v1/products/editor"
	s.send("GET", path, keyAll, "").must(t, 40404)
	s.send("DELETE", path, keyAll, "").must(t, 40404)

	first := s.product("editor", `"name":"Editor","max_devices":7`).must(t, 0)
	if first.status != http.StatusCreated || first.text("key_prefix") != "LIC" || first.data["validity"] != nil ||
		first.text("validity_from") != "issue" ||
		first.data["self_service_deactivation"] != false || first.data["removals_per_month"] != 0.0 {
		t.Errorf("first: %d %s", first.status, first.body)
	}
	s.clock.advance(time.Hour)
	again := s.product("editor", `"name":"Editor","max_devices":7`).must(t, 0)
	if again.status != http.StatusOK || again.body != first.body {
		t.Errorf("again: %d %s", again.status, again.body)
	}
	// A PUT replaces the whole description: missing members get their defaults.
	less := s.product("editor", `"validity":"P1Y"`).must(t, 0)
	if less.status != http.StatusOK || less.data["name"] != nil || less.data["max_devices"] != 3.0 ||
		less.text("validity") != "P1Y" ||
		less.text("created_at") != first.text("created_at") {
		t.Errorf("with fewer members: %s", less.body)
	}
	if got := s.send("GET", path, keyAll, "").must(t, 0); got.body != less.body {
		t.Errorf("a lookup answers %s", got.body)
	}
	if gone := s.send("DELETE", path, keyAll, "").must(t, 0); gone.data["deleted"] != true ||
		gone.text("product_id") != "editor" {
		t.Errorf("deleted: %s", gone.body)
	}
	s.send("GET", path, keyAll, "").must(t, 40404)
	s.send("DELETE", path, keyAll, "").must(t, 40404)
	if anew := s.product("editor", ``).must(t, 0); anew.status != http.StatusCreated ||
		anew.text("created_at") == first.text("created_at") {
		t.Errorf("created again: %d %s", anew.status, anew.body)
	}
}

// TestProductsTouchLaterLicenses changes and removes a product under a license
// and an order.
func TestProductsTouchLaterLicenses(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"key_prefix":"ONE","max_devices":1,"validity":"P1Y"`).must(t, 0)
	key := s.license()
	unpaid := s.order("5")
	before := s.get(key).must(t, 0)
	if !strings.HasPrefix(key, "ONE-") || before.data["max_devices"] != 1.0 ||
		before.text("expires_at") != "2031-01-02T03:04:05.678Z" {
		t.Errorf("issued: %s", before.body)
	}
	s.product("editor", `"key_prefix":"TWO","max_devices":2,"validity":"P1M","validity_from":"activation"`).must(t, 0)
	if after := s.get(key); after.body != before.body {
		t.Errorf("the license was %s\nand is %s", before.body, after.body)
	}
	later := s.license()
	if shown := s.get(later); !strings.HasPrefix(later, "TWO-") || shown.data["max_devices"] != 2.0 ||
		shown.data["expires_at"] != nil {
		t.Errorf("issued later: %s", shown.body)
	}
	if a := s.activate(later, "d1").must(t, 0); a.text("expires_at") != "2030-02-02T03:04:05.678Z" {
		t.Errorf("activated: %s", a.body)
	}
	s.send("DELETE", "/v1/products/editor", keyAll, "").must(t, 0)
	if after := s.get(key); after.body != before.body {
		t.Errorf("the license was %s\nand is %s", before.body, after.body)
	}
	s.pay(unpaid)
	if paid := s.sendWire(s.lookup(unpaid)).must(t, 0); !strings.HasPrefix(paid.text("license_key"), "ONE-") {
		t.Errorf("an order of a deleted product: %s", paid.body)
	}
}

// TestLiveProducts: live orders and grants need a product that exists.
func TestLiveProducts(t *testing.T) {
	t.Parallel()
	s := newService(t)
	order := wire{method: "POST", path: "/v1/orders", key: keyLive,
		body: `{"product_id":"editor","amount":0,"currency":"USD"}`}
	grant := wire{method: "POST", path: "/v1/licenses", key: keyLive, body: `{"product_id":"editor","quantity":1}`}
	s.product("editor", ``).must(t, 0) // in test mode
	for _, w := range []wire{order, grant} {
		s.sendWire(w).must(t, 40404)
	}
	s.send("GET", "/v1/products/editor", keyLive, "").must(t, 40404)
	s.send("PUT", "/v1/products/editor", keyLive, `{"key_prefix":"LIVE"}`).must(t, 0)
	for _, w := range []wire{order, grant} {
		s.sendWire(w).must(t, 0)
	}
	s.send("DELETE", "/v1/products/editor", keyLive, "").must(t, 0)
	for _, w := range []wire{order, grant} {
		s.sendWire(w).must(t, 40404)
	}
	s.send("GET", "/v1/products/editor", keyAll, "").must(t, 0)
	// In test mode, the first order for a product creates the product.
	s.order("0")
	made := s.send("POST", "/v1/orders", keyAll, `{"product_id":"made-along","amount":1,"currency":"USD"}`).must(t, 0)
	if p := s.send("GET", "/v1/products/made-along", keyAll, "").must(t,
		0); p.text("created_at") != made.text("created_at") {
		t.Errorf("the product that the order created: %s", p.body)
	}
}

// TestBadProducts: a refused request changes nothing.
func TestBadProducts(t *testing.T) {
	t.Parallel()
	s := newService(t)
	before := s.product("editor", `"name":"Editor"`).must(t, 0).body
	for _, c := range []struct {
		body   string
		code   int
		fields string
	}{
		{``, 40000, ""},
		{`{`, 40000, ""},
		{`[]`, 40000, ""},
		{`{"colour":"red"}`, 40000, "colour"},
		{`{"product_id":"editor"}`, 40000, "product_id"},
		{`{"name":1}`, 40000, "name"},
		{`{"key_prefix":1}`, 40000, "key_prefix"},
		{`{"max_devices":"3"}`, 40000, "max_devices"},
		{`{"max_devices":3.0}`, 40000, "max_devices"},
		{`{"validity":1}`, 40000, "validity"},
		{`{"validity_from":true}`, 40000, "validity_from"},
		{`{"self_service_deactivation":"true"}`, 40000, "self_service_deactivation"},
		{`{"self_service_deactivation":1}`, 40000, "self_service_deactivation"},
		{`{"removals_per_month":true}`, 40000, "removals_per_month"},
		{`{"metadata":[]}`, 40000, "metadata"},
		{`{"name":"a","name":"b"}`, 40000, "name"},
		{`{"name":"a\nb"}`, 42200, "name"},
		{`{"name":"` + strings.Repeat("ü", 256) + `"}`, 42200, "name"},
		{`{"key_prefix":""}`, 42200, "key_prefix"},
		{`{"key_prefix":"A"}`, 42200, "key_prefix"},
		{`{"key_prefix":"ABCDEFGHI"}`, 42200, "key_prefix"},
		{`{"key_prefix":"abc"}`, 42200, "key_prefix"},
		{`{"key_prefix":"A-B"}`, 42200, "key_prefix"},
		{`{"max_devices":-1}`, 42200, "max_devices"},
		{`{"max_devices":1000001}`, 42200, "max_devices"},
		{`{"validity":""}`, 42200, "validity"},
		{`{"validity":"1Y"}`, 42200, "validity"},
		{`{"validity":"P0D"}`, 42200, "validity"},
		{`{"validity":"P1001Y"}`, 42200, "validity"},
		{`{"validity":"P0.5Y"}`, 42200, "validity"},
		{`{"validity_from":""}`, 42200, "validity_from"},
		{`{"validity_from":"Issue"}`, 42200, "validity_from"},
		{`{"removals_per_month":-1}`, 42200, "removals_per_month"},
		{`{"removals_per_month":1000001}`, 42200, "removals_per_month"},
		{`{"metadata":{"":1}}`, 42200, "metadata"},
		{`{"metadata":` + membersOf(51) + `}`, 42200, "metadata"},
		{`{"name":"\u0000","key_prefix":"a","max_devices":-1,"validity":"x","validity_from":"x","removals_per_month":-1,"metadata":{"":1}}`, 42200,
			"name key_prefix max_devices validity validity_from removals_per_month metadata"},
	} {
		a := s.send("PUT", "/v1/products/editor", keyAll, c.body)
		if a.code != c.code || strings.Join(a.fieldNames(), " ") != c.fields {
			t.Errorf("%s: %s, want %d %s", cut(c.body), a.body, c.code, c.fields)
		}
	}
	for _, id := range []string{"a%20b", "a%2Fb", strings.Repeat("x", 65), "%C3%A9", "%00", "%FF"} {
		if a := s.send("PUT", "/v1/products/"+id, keyAll, `{}`).must(t, 42200); a.fields["product_id"] == "" {
			t.Errorf("%s: %s", id, a.body)
		}
		s.send("GET", "/v1/products/"+id, keyAll, "").must(t, 40404)
		s.send("DELETE", "/v1/products/"+id, keyAll, "").must(t, 40404)
	}
	s.send("PUT", "/v1/products/a%20b", keyAll, `{"colour":1}`).must(t, 40000) // JSON before fields
	s.send("POST", "/v1/products/editor", keyAll, `{}`).must(t, 40500)
	s.send("PUT", "/v1/products/editor", keyReadOnly, `{}`).must(t, 40300)
	s.send("GET", "/v1/products/editor", keyReadOnly, "").must(t, 40300)
	s.send("DELETE", "/v1/products/editor", keyReadOnly, "").must(t, 40300)
	if after := s.send("GET", "/v1/products/editor", keyAll, "").must(t, 0).body; after != before {
		t.Errorf("the product was %s\nand is %s", before, after)
	}
	for _, good := range []string{
		`{}`, `{"name":""}`,
		`{"name":null,"key_prefix":null,"max_devices":null,"validity":null,"validity_from":null,"self_service_deactivation":null,"removals_per_month":null,"metadata":null}`,
		`{"name":"` + strings.Repeat("ü", 255) + `"}`, `{"key_prefix":"A1"}`, `{"key_prefix":"ABCDEFG8"}`,
		`{"max_devices":0}`, `{"max_devices":1000000}`,
		`{"validity":"PT1S"}`, `{"validity":"P1000Y"}`, `{"validity_from":"activation"}`, `{"removals_per_month":1}`,
		`{"metadata":` + membersOf(50) + `}`,
	} {
		s.send("PUT", "/v1/products/editor", keyAll, good).must(t, 0)
	}
}
