package main

import (
	"strings"
	"testing"
)

// TestMainJob walks from an order to an activated and removed device.
func TestMainJob(t *testing.T) {
	p := shared(t)
	p.want(t, 200, "GET", "/livez", "")
	p.want(t, 200, "GET", "/readyz", "")

	order := p.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":4900,"currency":"usd",
		"description":"Editor, one year","buyer_email":"buyer@example.com","metadata":{"cart":"c-17"}}`).Data
	if order.text("status") != "unpaid" || order.number("amount") != 4900 || order.text("currency") != "USD" {
		t.Fatalf("the new order is %v", order)
	}
	orderNo, payURL := order.text("order_no"), order.text("pay_url")
	if !strings.HasPrefix(payURL, p.url+"/pay/"+orderNo+"/") {
		t.Fatalf("the pay URL is %s", payURL)
	}
	unpaid := p.want(t, 200, "GET", "/v1/orders/"+orderNo, "").Data
	if unpaid["license_key"] != nil || unpaid["paid_at"] != nil {
		t.Errorf("an unpaid order answers %v", unpaid)
	}

	page := p.get(t, payURL)
	if page.status != 200 || !strings.Contains(page.body, "Editor, one year") || !strings.Contains(page.body, "49.00") {
		t.Errorf("the pay page: status %d\n%s", page.status, page.body)
	}
	p.want(t, 200, "PUT", "/v1/orders/"+orderNo+"/sandbox_payment", "")

	order = p.want(t, 200, "GET", "/v1/orders/"+orderNo, "").Data
	key := order.text("license_key")
	if order.text("status") != "paid" || order.text("paid_at") == "" || order["pay_url"] != nil ||
		!strings.HasPrefix(key, "LIC-") {
		t.Fatalf("the paid order is %v", order)
	}
	if result := p.get(t, payURL); result.status != 200 ||
		!strings.Contains(result.body, key) {
		t.Errorf("the result page: status %d\n%s", result.status, result.body)
	}

	open := api{url: p.url, client: p.client}
	activation := open.want(t, 200, "POST", "/v1/licenses/activate",
		`{"license_key":"`+strings.ToLower(key)+`","device_id":"laptop/1","device_name":"My laptop"}`).Data
	if activation.text("license_key") != key || activation.text("status") != "activated" ||
		activation.text("device_id") != "laptop/1" || activation.number("current_devices") != 1 ||
		activation.number("max_devices") != 3 {
		t.Fatalf("the activation is %v", activation)
	}

	license := p.want(t, 200, "GET", "/v1/licenses/"+key, "").Data
	devices := license.list("devices")
	if license.text("order_no") != orderNo || license.text("activated_at") != activation.text("activated_at") ||
		len(devices) != 1 || devices[0].text("device_id") != "laptop/1" ||
		devices[0].text("device_name") != "My laptop" {
		t.Fatalf("the license is %v", license)
	}

	for i, want := range []bool{true, false} {
		removal := p.want(t, 200, "DELETE", "/v1/licenses/"+key+"/devices/laptop%2F1", "").Data
		if removal["removed"] != want || removal.number("current_devices") != 0 {
			t.Errorf("removal %d answers %v", i+1, removal)
		}
	}
	license = p.want(t, 200, "GET", "/v1/licenses/"+key, "").Data
	if license.text("status") != "not_activated" || len(license.list("devices")) != 0 ||
		license.text("activated_at") != activation.text("activated_at") {
		t.Errorf("after the removal the license is %v", license)
	}
}

func TestFreeOrderIsPaidAtOnce(t *testing.T) {
	p := shared(t)
	order := p.want(t, 201, "POST", "/v1/orders", `{"product_id":"trial","amount":0,"currency":"EUR"}`).Data
	if order.text("status") != "paid" || order["pay_url"] != nil {
		t.Fatalf("the order is %v", order)
	}
	key := p.want(t, 200, "GET", "/v1/orders/"+order.text("order_no"), "").Data.text("license_key")
	license := p.want(t, 200, "GET", "/v1/licenses/"+key, "").Data
	if license.text("product_id") != "trial" || license.text("order_no") != order.text("order_no") {
		t.Errorf("its license is %v", license)
	}
}

func TestCanceledOrderThatIsPaidAfterAllIsRefunded(t *testing.T) {
	p := shared(t)
	order := p.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":100,"currency":"JPY"}`).Data
	path := "/v1/orders/" + order.text("order_no")
	p.want(t, 200, "POST", path+"/cancel", "")
	order = p.want(t, 200, "PUT", path+"/sandbox_payment", "").Data
	if order.text("status") != "refunded" || order["license_key"] != nil || order.text("canceled_at") == "" ||
		order.text("refunded_at") == "" {
		t.Errorf("the order is %v", order)
	}
}

func TestGrant(t *testing.T) {
	p := shared(t)
	granted := p.want(t, 201, "POST", "/v1/licenses",
		`{"product_id":"editor","quantity":40,"max_devices":1}`).Data.list("licenses")
	keys := map[string]bool{}
	for _, license := range granted {
		keys[license.text("license_key")] = true
		if license["order_no"] != nil || license.number("max_devices") != 1 ||
			license.text("status") != "not_activated" {
			t.Fatalf("a granted license is %v", license)
		}
	}
	if len(keys) != 40 {
		t.Fatalf("%d different keys, want 40", len(keys))
	}
	key := granted[39].text("license_key")
	if r, err := p.activate(t.Context(), key, "one"); err != nil || r.status != 200 {
		t.Fatalf("first device: %v %s", err, r.body)
	}
	r, err := p.activate(t.Context(), key, "two")
	if err != nil || r.status != 409 || r.Code != 40901 || r.Error.Details["max_devices"] != 1 ||
		r.Error.Details["current_devices"] != 1 {
		t.Errorf("second device: %v %s", err, r.body)
	}
}

// TestManyPaymentsMakeOneLicense pays an order fifty times at once.
func TestManyPaymentsMakeOneLicense(t *testing.T) {
	p := shared(t)
	order := p.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":4900,"currency":"USD"}`).Data
	replies := make([]reply, 50)
	errs := make([]error, len(replies))
	atOnce(len(replies), func(i int) { replies[i], errs[i] = p.pay(t.Context(), order.text("order_no")) })

	key := p.want(t, 200, "GET", "/v1/orders/"+order.text("order_no"), "").Data.text("license_key")
	for i, r := range replies {
		if errs[i] != nil || r.status != 200 {
			t.Fatalf("payment %d: status %d, %v: %s", i, r.status, errs[i], r.body)
		}
		if r.Data.text("license_key") != key {
			t.Errorf("payment %d returned another license", i)
		}
	}
	if license := p.want(t, 200, "GET", "/v1/licenses/"+key,
		"").Data; license.text("order_no") != order.text("order_no") {
		t.Errorf("the license is %v", license)
	}
}
