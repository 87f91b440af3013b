package handlers_test

import (
	"slices"
	"testing"
	"time"

	"licet/licensing"
)

// paymentOf is a request that records an outside payment of an order.
func (s *fixture) paymentOf(made answer, reference string) wire {
	return wire{method: "POST", path: "/v1/orders/" + made.text("order_no") + "/payments", key: keyAll,
		body: `{"reference":"` + reference + `"}`}
}

func (s *fixture) payOutside(made answer, reference string) answer {
	s.t.Helper()
	return s.sendWire(s.paymentOf(made, reference))
}

// TestOutsidePaymentByState: an outside payment pays an unpaid or expired order, and no other.
func TestOutsidePaymentByState(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]int{"unpaid": 0, "expired": 0, "canceled": 40902, "paid": 40902,
		"refunded": 40902} {
		s := newService(t)
		made := s.bring(state)
		s.clock.advance(time.Second)
		a := s.payOutside(made, "INV-1").must(t, want)
		if want != 0 {
			continue
		}
		if a.text("status") != "paid" || a.text("license_key") == "" || a.data["late"] != (state == "expired") ||
			a.text("payment_provider") != "outside" || a.text("payment_reference") != "INV-1" ||
			a.data["pay_url"] != nil {
			t.Errorf("%s: %s", state, a.body)
		}
		again := s.payOutside(made, "INV-1").must(t, 0)
		if again.body != a.body {
			t.Errorf("again: %s\nfirst: %s", again.body, a.body)
		}
		s.payOutside(made, "INV-2").must(t, 40902)
		refunded := s.changeOrder(made, "refund", "").must(t, 0)
		again = s.payOutside(made, "INV-1").must(t, 0)
		if refunded.text("status") != "refunded" || again.text("status") != "refunded" {
			t.Errorf("%s: %s, and then %s", state, refunded.body, again.body)
		}
	}
}

// TestLiveOrderPaidOutside: without a payment provider, a live order is paid and refunded by the shop itself.
func TestLiveOrderPaidOutside(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.send("PUT", "/v1/products/editor", keyLive, "{}").must(t, 0)
	create := func(provider string) answer {
		return s.send("POST", "/v1/orders", keyLive, `{"product_id":"editor","amount":5,"currency":"USD"`+provider+`}`)
	}
	create("").must(t, 40904)
	made := create(`,"payment_provider":"outside"`).must(t, 0)
	if made.data["pay_url"] != nil || made.text("payment_provider") != "outside" ||
		made.data["payment_reference"] != nil {
		t.Errorf("made %s", made.body)
	}
	path := "/v1/orders/" + made.text("order_no")
	paid := s.send("POST", path+"/payments", keyLive, `{"reference":"PO-7"}`).must(t, 0)
	if paid.text("status") != "paid" || paid.text("license_key") == "" {
		t.Errorf("paid %s", paid.body)
	}
	refunded := s.send("POST", path+"/refund", keyLive, "").must(t, 0)
	if refunded.text("status") != "refunded" || refunded.data["refund_due"] != false {
		t.Errorf("refunded %s", refunded.body)
	}
}

// TestOutsideOrderInSandbox: the sandbox takes no money that goes to the shop itself.
func TestOutsideOrderInSandbox(t *testing.T) {
	t.Parallel()
	s := newService(t)
	made := s.send("POST", "/v1/orders", keyAll,
		`{"product_id":"editor","amount":5,"currency":"USD","payment_provider":"outside"}`).must(t, 0)
	s.send("PUT", "/v1/orders/"+made.text("order_no")+"/sandbox_payment", keyAll, "").must(t, 40904)
	s.send("POST", "/v1/orders", keyAll,
		`{"product_id":"editor","amount":0,"currency":"USD","payment_provider":"outside"}`).must(t, 42200)
}

// TestMoneyScopes: the scope orders neither records payments nor refunds them.
func TestMoneyScopes(t *testing.T) {
	t.Parallel()
	for _, scope := range append(licensing.ScopeForms(), "*") {
		s := newService(t)
		text := testKey("scoped")
		s.store.addKey(text, licensing.APIKey{Owner: licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test},
			Scopes: []string{scope}})
		path := "/v1/orders/" + s.order("5").text("order_no")
		for _, c := range []struct{ needed, path, body string }{
			{"orders:payments", path + "/payments", `{"reference":"INV-1"}`}, {"orders:refunds", path + "/refund", ""},
			{"orders:subscriptions", path + "/subscription/cancel", ""},
			{"orders:subscriptions", path + "/subscription/resume", ""},
			{"orders:subscriptions", path + "/subscription/change", `{"amount":1}`},
			{"orders:subscriptions", path + "/subscription/portal", ""},
		} {
			allowed := slices.Contains([]string{"*", c.needed}, scope)
			if a := s.send("POST", c.path, text, c.body); (a.code == 40300) == allowed {
				t.Errorf("%s with the scope %s: %s", c.path, scope, a.body)
			}
		}
	}
}
