package handlers_test

import (
	"strings"
	"testing"

	"licet/handlers"
	"licet/node/store"
)

// growing says of each route that changes something whether its requests are refused while the store is almost full.
// The other requests are refused later if their command would make the store grow; see licensing.Growth.
var growing = map[string]bool{
	"POST /v1/licenses/activate":                            false, // a bound device gets its answer
	"POST /v1/licenses/validate":                            false,
	"POST /v1/licenses/deactivate":                          false,
	"POST /v1/receipts":                                     false, // a bound device gets an answer
	"POST /v1/receipts/batch":                               false,
	"POST /v1/receipts/release":                             false,
	"POST /v1/trials":                                       false, // a device gets its license again
	"POST /v1/licenses":                                     true,
	"PATCH /v1/licenses/{license_key}":                      false, // a smaller device limit is no growth
	"POST /v1/licenses/{license_key}/suspend":               false,
	"POST /v1/licenses/{license_key}/reinstate":             false,
	"POST /v1/licenses/{license_key}/revoke":                false,
	"POST /v1/licenses/{license_key}/renew":                 false,
	"POST /v1/licenses/{license_key}/reissue":               false, // a key that leaked
	"DELETE /v1/licenses/{license_key}/devices/{device_id}": false,
	"PUT /v1/products/{product_id}":                         true,
	"DELETE /v1/products/{product_id}":                      false,
	"POST /v1/products/{product_id}/rollout":                true,
	"DELETE /v1/products/{product_id}/rollout":              false,
	"POST /v1/orders":                                       true,
	"POST /v1/orders/{order_no}/cancel":                     false,
	"POST /v1/orders/{order_no}/payments":                   false,
	"POST /v1/orders/{order_no}/refund":                     false,
	"POST /v1/orders/{order_no}/subscription/cancel":        false,
	"POST /v1/orders/{order_no}/subscription/resume":        false,
	"POST /v1/orders/{order_no}/subscription/change":        false,
	"POST /v1/orders/{order_no}/subscription/portal":        false, // stores nothing
	"PUT /v1/orders/{order_no}/sandbox_payment":             false, // like the pay page
	"PUT /v1/orders/{order_no}/sandbox":                     false,
	"POST /v1/redactions":                                   false,
	"POST /v1/webhook_endpoints":                            true,
	"PATCH /v1/webhook_endpoints/{endpoint_id}":             false, // an endpoint can be disabled
	"DELETE /v1/webhook_endpoints/{endpoint_id}":            false,
	"POST /v1/webhook_endpoints/{endpoint_id}/rotate":       false,
	"POST /v1/webhook_endpoints/{endpoint_id}/test":         false, // stores nothing
	"POST /v1/webhook_endpoints/{endpoint_id}/replay":       true,
	"PATCH /v1/account":                                     true,
	"PUT /v1/receipt_keys":                                  false, // only the first of an account
	"PUT /v1/receipt_keys/next":                             false, // a key that leaked
	"POST /v1/keys":                                         true,
	"DELETE /v1/keys/{key_id}":                              false,
	"POST /v1/keys/{key_id}/rotate":                         false,
	"POST /v1/callbacks/stripe/{account_id}/{mode}":         false, // money that was paid must count
	"POST /pay/{order_no}/{token}":                          false,
}

// TestReserveRefusesRoutes: while the store is almost full or full, requests that make it grow are refused before
// they are authenticated, and no other request is.
func TestReserveRefusesRoutes(t *testing.T) {
	t.Parallel()
	s := newService(t)
	variables := strings.NewReplacer("{license_key}", absentKey(), "{device_id}", "d", "{product_id}", "p",
		"{order_no}", "ord_0", "{endpoint_id}", "we_0", "{key_id}", "key_x", "{token}", "t")
	for _, space := range []store.Space{store.SpaceReserve, store.SpaceFull} {
		s.store.fill(space)
		for _, r := range handlers.Routes() {
			if r.Method == "GET" {
				continue
			}
			name := r.Method + " " + r.Pattern
			grows, listed := growing[name]
			if !listed {
				t.Errorf("%s: say whether its requests make the store grow", name)
			}
			got := s.send(r.Method, variables.Replace(r.Pattern), "lk_unknown", "{}")
			if refused := got.code == 50300; refused != grows {
				t.Errorf("%s while the store is %v: %s", name, space, got.body)
			}
			if !grows {
				continue
			}
			says := map[store.Space]string{store.SpaceReserve: "the store is almost full",
				store.SpaceFull: "the store is full"}
			if got.reason != "unavailable" || got.header.Get("Retry-After") == "" ||
				!strings.Contains(got.body, says[space]) {
				t.Errorf("%s while the store is %v: %v %s", name, space, got.header, got.body)
			}
		}
	}
}

// TestReserveClaimsNoKey: a refused request does not use its Idempotency-Key, and succeeds once there is space.
func TestReserveClaimsNoKey(t *testing.T) {
	t.Parallel()
	s := newService(t)
	order := func(amount string) answer {
		return s.send("POST", "/v1/orders", keyAll, `{"product_id":"editor","amount":`+amount+`,"currency":"USD"}`,
			"Idempotency-Key", "one")
	}
	s.store.fill(store.SpaceReserve)
	order("100").must(t, 50300)
	s.store.fill(store.SpaceFree)
	if made := order("200").must(t, 0); made.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the answer is of an earlier request: %s", made.body)
	}
}

// TestReserveOnTheOpenRoutes: end users of bound devices notice nothing.
func TestReserveOnTheOpenRoutes(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.license()
	s.activate(key, "bound").must(t, 0)
	s.store.fill(store.SpaceReserve)
	s.activate(key, "bound").must(t, 0)
	if refused := s.activate(key, "new").must(t, 50300); !strings.Contains(refused.body, "the store is almost full") {
		t.Errorf("the refusal does not say why: %s", refused.body)
	}
	valid := s.send("POST", "/v1/licenses/validate", "", `{"license_key":"`+key+`","device_id":"bound"}`).must(t, 0)
	if valid.data["valid"] != true {
		t.Errorf("validation: %s", valid.body)
	}
	s.send("GET", "/v1/licenses/"+key, keyAll, "").must(t, 0)
	s.store.fill(store.SpaceFree)
	s.activate(key, "new").must(t, 0)
}

// TestReadinessShowsSpace: a node is ready whatever space its store has, and says how much that is.
func TestReadinessShowsSpace(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, space := range []store.Space{store.SpaceFree, store.SpaceReserve, store.SpaceFull} {
		s.store.fill(space)
		if got := s.send("GET", "/readyz", "", "").must(t, 0).text("store_space"); got != space.String() {
			t.Errorf("store_space is %q while the store is %v", got, space)
		}
	}
}
