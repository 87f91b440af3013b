package main

import (
	"fmt"
	"testing"
)

// TestReissue gives a license new keys: each ends the keys before it, except on bound devices during an overlap, also
// after a kill.
func TestReissue(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir())
	order := p.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":4900,"currency":"USD"}`).Data
	sold := p.want(t, 200, "PUT", "/v1/orders/"+order.text("order_no")+"/sandbox_payment", "").Data
	id, first := sold.text("license_id"), sold.text("license_key")
	activate := func(key, device string, code int) {
		t.Helper()
		r, err := p.activate(t.Context(), key, device)
		if err != nil || r.Code != code {
			t.Errorf("an activation is answered %d, want %d: %v %s", r.Code, code, err, r.body)
		}
	}
	reissue := func(path, body string) string {
		t.Helper()
		l := p.want(t, 200, "POST", "/v1/licenses/"+path+"/reissue", body).Data
		if l.text("id") != id || l.text("license_key") == first {
			t.Errorf("reissued %v", l)
		}
		return l.text("license_key")
	}
	activate(first, "laptop-1", 0)

	second := reissue(id, `{"overlap":"P1D","reason":"leaked"}`)
	activate(first, "laptop-1", 0)     // bound, during the overlap
	activate(first, "laptop-2", 40306) // not bound
	activate(second, "laptop-2", 0)
	for _, path := range []string{"/v1/orders/" + order.text("order_no"), "/v1/licenses/" + id, "/v1/licenses/" + first,
		"/v1/licenses/" + second} {
		if got := p.want(t, 200, "GET", path, "").Data; got.text("license_key") != second {
			t.Errorf("%s shows %s", path, got.text("license_key"))
		}
	}
	listed := p.want(t, 200, "GET", "/v1/orders", "").Data.list("orders")
	if len(listed) != 1 || listed[0].text("license_key") != second {
		t.Errorf("the list of orders has %v", listed)
	}

	for _, e := range p.want(t, 200, "GET", "/v1/orders/"+order.text("order_no")+"/events", "").Data.list("events") {
		data, _ := e["data"].(map[string]any)
		of, _ := data["order"].(map[string]any)
		if e.text("type") == "order.paid" && of["license_key"] != second {
			t.Errorf("the event shows %v", of)
		}
	}

	third := reissue(second, "")
	activate(first, "laptop-1", 40306) // the overlap has ended
	activate(second, "laptop-2", 40306)
	activate(third, "laptop-1", 0)
	validate := func(key string) reply {
		t.Helper()
		return p.want(t, 200, "POST", "/v1/licenses/validate",
			fmt.Sprintf(`{"license_key":%q,"device_id":"laptop-1"}`, key))
	}
	if v := validate(second).Data; v["valid"] != false || v.text("reason") != "license_key_replaced" {
		t.Errorf("an earlier key is %v", v)
	}
	if r := p.want(t, 403, "POST", "/v1/licenses/deactivate",
		fmt.Sprintf(`{"license_key":%q,"device_id":"laptop-1"}`, first)); r.Code != 40306 {
		t.Errorf("deactivated by an earlier key: %d", r.Code)
	}
	otherPrefix := "OTHER" + third[len("LIC"):]
	activate(otherPrefix, "laptop-1", 40401)

	p.kill()
	p = startProcess(t, p.dir)
	activate(third, "laptop-1", 0)
	activate(second, "laptop-1", 40306)

	// The same request under one Idempotency-Key makes one key.
	once := func() string {
		r, err := p.sendOnce(t.Context(), "/v1/licenses/"+id+"/reissue", "once", `{}`)
		if r.status != 200 { // sendOnce wants 201
			t.Fatalf("%v %s", err, r.body)
		}
		return r.Data.text("license_key")
	}
	if one, two := once(), once(); one != two {
		t.Error("a repeated request made another key")
	}
	for range 5 {
		third = reissue(id, "")
	}
	if r := p.want(t, 409, "POST", "/v1/licenses/"+id+"/reissue", ""); r.Code != 40908 {
		t.Errorf("a ninth key: %d", r.Code)
	}
	activate(third, "laptop-1", 0)
	l := p.want(t, 200, "GET", "/v1/licenses/"+id, "").Data
	if l["reissues"] != 8.0 || l["current_devices"] != 2.0 {
		t.Errorf("the license is %v", l)
	}
	events := p.want(t, 200, "GET", "/v1/licenses/"+id+"/events", "").Data.list("events")
	made := 0
	for _, e := range events {
		if e.text("type") == "license.reissued" {
			made++
		}
	}
	if made != 8 {
		t.Errorf("%d events of reissues", made)
	}
	orderPath := "/v1/orders/" + order.text("order_no")
	for what, o := range map[string]object{
		"paid again": p.want(t, 200, "PUT", orderPath+"/sandbox_payment", "").Data,
		"refunded":   p.want(t, 200, "POST", orderPath+"/refund", "").Data,
	} {
		if o.text("license_key") != third {
			t.Errorf("the order that is %s shows %s", what, o.text("license_key"))
		}
	}
	if r := p.want(t, 409, "POST", "/v1/licenses/"+id+"/reissue", ""); r.Code != 40903 {
		t.Errorf("a revoked license got a key: %d", r.Code)
	}

	// An external key ends too.
	brought := p.want(t, 201, "POST", "/v1/licenses",
		`{"product_id":"editor","quantity":1,"external_key":"OLD-1"}`).Data.list("licenses")[0]
	old := fmt.Sprintf(`{"license_key":"OLD-1","device_id":"pc","account_id":%q,"mode":"test"}`,
		brought.text("account_id"))
	p.want(t, 200, "POST", "/v1/licenses/activate", old)
	p.want(t, 200, "POST", "/v1/licenses/"+brought.text("id")+"/reissue", "")
	if r := p.want(t, 403, "POST", "/v1/licenses/activate", old); r.Code != 40306 {
		t.Errorf("an external key after a reissue: %d", r.Code)
	}
	if code := p.terminate(t); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	if got := runLicet(t, "store", "verify", "--data-dir", p.dir); got.code != exitOK {
		t.Errorf("%+v", got)
	}
}

// TestReissueOfLeases: a device gives back the lease that it took before a reissue with the key that it has, once. The
// replaced key ends no lease of the new key.
func TestReissueOfLeases(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir())
	p.want(t, 201, "PUT", "/v1/products/floating", `{"max_devices":2,"device_mode":"leased","lease_seconds":3600}`)
	granted := p.want(t, 201, "POST", "/v1/licenses", `{"product_id":"floating","quantity":1}`).Data.list("licenses")[0]
	first := granted.text("license_key")
	ask := func(path, key, device string, code int) reply {
		t.Helper()
		body := fmt.Sprintf(`{"license_key":%q,"device_id":%q}`, key, device)
		r, err := p.send(t.Context(), "POST", "/v1/licenses/"+path, body)
		if err != nil || r.Code != code {
			t.Fatalf("%s of %s is answered %d, want %d: %v %s", path, device, r.Code, code, err, r.body)
		}
		return r
	}
	ask("activate", first, "before", 0)
	second := p.want(t, 200, "POST", "/v1/licenses/"+granted.text("id")+"/reissue", "").Data.text("license_key")
	ask("activate", second, "after", 0)
	ask("activate", first, "before", 40306)
	ask("activate", second, "another", 40901)

	ask("deactivate", first, "after", 40306)
	if ask("deactivate", first, "before", 0).Data["removed"] != true {
		t.Error("the lease was not given back")
	}
	ask("deactivate", first, "before", 40306) // there is no lease left
	ask("activate", second, "another", 0)
}
