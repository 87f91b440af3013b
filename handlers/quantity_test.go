package handlers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/handlers/limits"
)

// keysOf returns the license_keys of an order.
func (a answer) keysOf() (keys []string) {
	for _, key := range a.data["license_keys"].([]any) {
		keys = append(keys, key.(string))
	}
	return keys
}

// TestOrderQuantity orders, pays and looks up licenses by the dozen.
func TestOrderQuantity(t *testing.T) {
	t.Parallel()
	s := newService(t)
	made, _ := s.payable(`,"quantity":75`)
	if made.data["quantity"] != 75.0 || made.data["licenses_issued"] != 0.0 || len(made.keysOf()) != 0 {
		t.Errorf("made %s", made.body)
	}
	order := "/v1/orders/" + made.text("order_no")
	paid := s.send("PUT", order+"/sandbox_payment", keyAll, "").must(t, 0)
	keys := paid.keysOf()
	if paid.data["licenses_issued"] != 75.0 || len(keys) != 75 || keys[0] != paid.text("license_key") {
		t.Errorf("paid %s", paid.body)
	}
	if got := s.send("GET", order, keyAll, "").must(t, 0); !slices.Equal(got.keysOf(), keys) {
		t.Errorf("looked up %s", got.body)
	}
	listed := s.list("/v1/licenses", "licenses", "license_key", "order_no="+made.text("order_no"), 20)
	if !slices.Equal(listed, keys) {
		t.Errorf("%d licenses are listed, and not in their order", len(listed))
	}
	orders := s.send("GET", "/v1/orders", keyAll, "").must(t, 0).data["orders"].([]any)
	if o := orders[0].(map[string]any); o["license_keys"] != nil || o["licenses_issued"] != 75.0 {
		t.Errorf("the list has %v", o)
	}
	s.activate(keys[74], "laptop").must(t, 0)
	reissued := s.change(keys[40], "reissue", "").must(t, 0).text("license_key")
	if got := s.send("GET", order, keyAll, "").must(t, 0).keysOf(); got[40] != reissued || got[41] != keys[41] {
		t.Errorf("after a reissue, key 40 is %s, want %s", got[40], reissued)
	}
	refunded := s.send("POST", order+"/refund", keyAll, "").must(t, 0)
	if refunded.data["licenses_issued"] != 75.0 {
		t.Errorf("refunded %s", refunded.body)
	}
	s.activate(keys[74], "laptop").must(t, 40301)
	revoked := s.list("/v1/licenses", "licenses", "id", "status=revoked&order_no="+made.text("order_no"), 100)
	if len(revoked) != 75 {
		t.Errorf("%d licenses are revoked", len(revoked))
	}
}

// TestOrderQuantityRefused refuses numbers out of range, and a number along with a trial.
func TestOrderQuantityRefused(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for members, code := range map[string]int{
		`"quantity":0`: 42200, `"quantity":1001`: 42200, `"quantity":-1`: 42200, `"quantity":null`: 0,
		`"quantity":1`: 0, `"quantity":"2"`: 40000, `"quantity":2.0`: 40000,
		`"quantity":2,"upgrade_of":"` + s.license() + `"`: 42200,
	} {
		s.send("POST", "/v1/orders", keyAll,
			`{"product_id":"editor","amount":4900,"currency":"USD",`+members+`}`).must(t, code)
	}
	free := s.send("POST", "/v1/orders", keyAll,
		`{"product_id":"editor","amount":0,"currency":"USD","quantity":1000}`).must(t, 0)
	if keys := free.keysOf(); len(keys) != 1000 || free.data["licenses_issued"] != 1000.0 {
		t.Errorf("a free order for 1000 licenses has %d keys", len(keys))
	}
}

// TestPayPageOfMany shows all keys of an order for some licenses, and only the number of many.
func TestPayPageOfMany(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for quantity, shown := range map[int]bool{3: true, 20: true, 21: false, 40: false} {
		made, path := s.payable(fmt.Sprintf(`,"quantity":%d`, quantity))
		if page := s.send("GET", path, "", "").mustPage(t, 200); !strings.Contains(page.body,
			fmt.Sprintf("<dd>%d</dd>", quantity)) {
			t.Errorf("the page of an unpaid order for %d licenses does not say so:\n%s", quantity, page.body)
		}
		s.press(made, "pay")
		page := s.send("GET", path, "", "").mustPage(t, 200)
		keys := s.send("GET", "/v1/orders/"+made.text("order_no"), keyAll, "").must(t, 0).keysOf()
		if len(keys) != quantity {
			t.Errorf("%d keys, want %d", len(keys), quantity)
		}
		for _, key := range keys {
			if strings.Contains(page.body, key) != shown {
				t.Errorf("%d keys: the page shows key %s: %v, want %v", quantity, key, !shown, shown)
			}
		}
		if many := strings.Contains(page.body, fmt.Sprintf("Your %d license keys", quantity)); many == shown {
			t.Errorf("%d keys: the page says how many: %v", quantity, many)
		}
	}
}

// TestOrderQuantityCounts takes as many tokens for an order for many licenses as for a grant of as many.
func TestOrderQuantityCounts(t *testing.T) {
	t.Parallel()
	left := func(path, request string) (remaining int) {
		s := newService(t, limited(limits.Config{Account: limits.Rate{Count: 10_000, Per: 10_000 * time.Hour}})...)
		s.license()
		s.send("POST", path, keyAll, request).must(t, 0)
		state := s.send("GET", "/v1/orders", keyAll, "").must(t, 0).header.Get("RateLimit")
		if _, err := fmt.Sscanf(state, `"account";r=%d;`, &remaining); err != nil {
			t.Fatalf("%q: %v", state, err)
		}
		return remaining
	}
	for _, quantity := range []int{1, 100, 1000} {
		granted := left("/v1/licenses", fmt.Sprintf(`{"product_id":"editor","quantity":%d}`, quantity))
		ordered := left("/v1/orders",
			fmt.Sprintf(`{"product_id":"editor","amount":5,"currency":"EUR","quantity":%d}`, quantity))
		if ordered < granted-10 || ordered > granted+10 {
			t.Errorf("after an order for %d licenses, %v tokens are left, after a grant %v", quantity, ordered, granted)
		}
	}
}
