package handlers_test

import (
	"strings"
	"testing"
)

func TestMainJob(t *testing.T) {
	s := newService(t)
	made := s.order("4900")
	if made.status != 201 || made.text("status") != "unpaid" {
		t.Fatalf("order: %s", made.body)
	}
	if !strings.HasPrefix(made.text("pay_url"), publicURL+"/pay/") {
		t.Fatalf("pay_url %q is not public", made.text("pay_url"))
	}
	s.pay(made)
	order := s.send("GET", "/v1/orders/"+made.text("order_no"), keyAll, "").must(t, 0)
	key := order.text("license_key")
	if order.text("status") != "paid" || key == "" || order.data["pay_url"] != nil {
		t.Fatalf("order: %s", order.body)
	}
	activated := s.activate(strings.ToLower(key), "device 1/2").must(t, 0)
	if activated.text("license_key") != key || activated.text("status") != "activated" {
		t.Fatalf("activation: %s", activated.body)
	}
	license := s.send("GET", "/v1/licenses/"+key, keyAll, "").must(t, 0)
	if license.data["current_devices"] != 1.0 {
		t.Fatalf("license: %s", license.body)
	}
	removed := s.send("DELETE", "/v1/licenses/"+key+"/devices/device%201%2F2", keyAll, "").must(t, 0)
	if removed.data["removed"] != true || removed.data["current_devices"] != 0.0 {
		t.Fatalf("removal: %s", removed.body)
	}
}
