package handlers_test

import (
	"strings"
	"testing"
	"time"
)

func TestValidation(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, c := range []struct {
		status  string
		members string
		reason  any
	}{
		{"not_activated", `"device_id":"d1"`, "device_not_bound"},
		{"activated", `"device_id":"d1"`, nil},
		{"activated", `"device_id":"d1","product_id":"editor","account_id":"acct_acme","mode":"test"`, nil},
		{"activated", `"device_id":"d1","product_id":null,"unknown":[1]`, nil},
		{"activated", `"device_id":"D1"`, "device_not_bound"},
		{"activated", `"device_id":"d1","product_id":"viewer"`, "product_mismatch"},
		{"suspended", `"device_id":"d1"`, "license_suspended"},
		{"suspended", `"device_id":"d2"`, "license_suspended"},
		{"suspended", `"device_id":"d1","product_id":"viewer"`, "product_mismatch"},
		{"revoked", `"device_id":"d1"`, "license_revoked"},
		{"expired", `"device_id":"d1"`, "license_expired"},
	} {
		s := newService(t)
		key := s.licenseThatIs(c.status)
		for _, credentials := range []string{"", keyAll} {
			w := validation(key, c.members)
			w.key = credentials
			a := s.sendWire(w).must(t, 0)
			if a.data["reason"] != c.reason || a.data["valid"] != (c.reason == nil) || a.text("status") != c.status {
				t.Errorf("%s, %s: %s", c.status, c.members, a.body)
			}
			for _, member := range []string{"license_key", "product_id", "account_id", "mode", "device_id",
				"max_devices", "current_devices", "expires_at"} {
				if _, there := a.data[member]; !there {
					t.Errorf("%s, %s: no %s: %s", c.status, c.members, member, a.body)
				}
			}
			if a.header.Get("Access-Control-Allow-Origin") != "*" {
				t.Error("scripts of web pages may not read the response")
			}
		}
	}
	key := s.licenseThatIs("activated")
	for _, w := range []wire{
		validation(key, `"device_id":"d1","account_id":"acct_other"`),
		validation(key, `"device_id":"d1","mode":"live"`),
		validation(absentKey(), `"device_id":"d1"`),
	} {
		s.sendWire(w).must(t, 40401)
	}
	stranger := validation(key, `"device_id":"d1"`)
	stranger.key = keyOther
	s.sendWire(stranger).must(t, 40401)
	stranger.key = keyRevoked
	s.sendWire(stranger).must(t, 40100)
}

// TestBadSelfService: invalid requests of end users are refused and change nothing.
func TestBadSelfService(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"self_service_deactivation":true`).must(t, 0)
	key := s.licenseThatIs("activated")
	before := s.get(key).body
	for _, path := range []string{"/v1/licenses/validate", "/v1/licenses/deactivate"} {
		for _, c := range []struct {
			body   string
			code   int
			fields string
		}{
			{``, 40000, ""},
			{`{`, 40000, ""},
			{`[]`, 40000, ""},
			{`{"license_key":1}`, 40000, "license_key"},
			{`{"license_key":"` + key + `","device_id":1}`, 40000, "device_id"},
			{`{"license_key":"` + key + `","device_id":"d1","device_id":"d1"}`, 40000, "device_id"},
			{`{"license_key":"` + key + `","device_id":"d1"}x`, 40000, ""},
			{`{"license_key":"x","device_id":"d1"}`, 40001, ""},
			{`{"license_key":"x"}`, 40001, ""},
			{`{"license_key":"` + key + `"}`, 42200, "device_id"},
			{`{"device_id":"d1"}`, 42200, "license_key"},
			{`{}`, 42200, "license_key device_id"},
			{`{"license_key":null,"device_id":null}`, 42200, "license_key device_id"},
			{`{"license_key":"` + key + `","device_id":""}`, 42200, "device_id"},
			{`{"license_key":"` + key + `","device_id":"a\u0007"}`, 42200, "device_id"},
			{`{"license_key":"` + key + `","device_id":"` + strings.Repeat("ü", 256) + `"}`, 42200, "device_id"},
			{`{"license_key":"` + absentKey() + `","device_id":""}`, 42200, "device_id"},
			{`{"license_key":"` + absentKey() + `","device_id":"d1"}`, 40401, ""},
			{`{"x":"` + strings.Repeat("x", 16<<10) + `"}`, 41300, ""},
		} {
			a := s.send("POST", path, "", c.body)
			if a.code != c.code || strings.Join(a.fieldNames(), " ") != c.fields {
				t.Errorf("%s %s: %s, want %d %s", path, cut(c.body), a.body, c.code, c.fields)
			}
		}
		s.send("GET", path, "", "").must(t, 40500)
	}
	s.sendWire(validation(key, `"device_id":"d1","product_id":"","account_id":"","mode":""`)).must(t, 42200)
	if after := s.get(key).body; after != before {
		t.Errorf("the license was %s\nand is %s", before, after)
	}
}

func TestDeactivation(t *testing.T) {
	t.Parallel()
	s := newService(t)
	deactivate := func(key, device string) answer {
		t.Helper()
		return s.sendWire(deactivation(key, `"device_id":"`+device+`","more":1`))
	}
	// A license keeps the terms that its product had when the license was issued.
	before := s.license()
	s.activate(before, "d1").must(t, 0)
	s.product("editor", `"self_service_deactivation":true,"removals_per_month":2`).must(t, 0)
	key := s.license()
	s.product("editor", ``).must(t, 0)
	after := s.license()
	s.activate(after, "d1").must(t, 0)
	for _, other := range []string{before, after} {
		if a := deactivate(other, "d1").must(t, 40305); a.reason != "self_service_not_allowed" {
			t.Errorf("answered %s", a.body)
		}
		deactivate(other, "not-bound").must(t, 40305)
	}

	removed := func(device string, want bool, left int) {
		t.Helper()
		a := deactivate(key, device).must(t, 0)
		if a.data["removed"] != want || a.data["current_devices"] != float64(left) || a.text("device_id") != device ||
			a.text("license_key") != key {
			t.Errorf("%s: %s", device, a.body)
		}
	}
	usedUp := func(device string) {
		t.Helper()
		a := deactivate(key, device).must(t, 40305)
		details, _ := a.raw["error"].(map[string]any)["details"].(map[string]any)
		if details["removals_per_month"] != 2.0 {
			t.Errorf("%s: %s", device, a.body)
		}
	}
	for _, d := range []string{"d1", "d2", "d3"} {
		s.activate(key, d).must(t, 0)
	}
	removed("nowhere", false, 3)
	removed("d1", true, 2)
	removed("d1", false, 2)
	removed("d2", true, 1)
	usedUp("d3")
	removed("d1", false, 1)
	s.change(key, "suspend", "").must(t, 0)
	usedUp("d3")
	s.clock.advance(29*24*time.Hour + 20*time.Hour + 55*time.Minute) // to January 31, 23:59:05 UTC
	usedUp("d3")
	s.clock.advance(time.Minute)
	removed("d3", true, 0) // in every state of the license
	// Removals by the shop are unlimited, and don't count for the user.
	s.change(key, "reinstate", "").must(t, 0)
	for range 3 {
		s.activate(key, "d4").must(t, 0)
		s.send("DELETE", "/v1/licenses/"+key+"/devices/d4", keyAll, "").must(t, 0)
	}
	s.activate(key, "d4").must(t, 0)
	removed("d4", true, 0)
}
