package handlers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"licet/handlers"
	"licet/internal/nodetest"
	"licet/node/service"
)

// TestLeases: devices of a product with leases take, renew and give back leases; answers count leases that have not
// lapsed.
func TestLeases(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.leased()
	post := func(route, device, more string) answer {
		return s.send("POST", "/v1/licenses/"+route, "",
			fmt.Sprintf(`{"license_key":%q,"device_id":%q%s}`, key, device, more))
	}
	want := func(what string, a answer, seconds, devices float64) {
		t.Helper()
		end := ""
		if seconds > 0 {
			end = s.clock.Now().Add(time.Duration(seconds) * time.Second).UTC().Format("2006-01-02T15:04:05.000Z")
		}
		left, _ := a.data["lease_remaining_seconds"].(float64)
		if a.text("lease_expires_at") != end || left != seconds || a.data["current_devices"] != devices {
			t.Errorf("%s: %s", what, a.body)
		}
	}
	want("the first", post("activate", "a", "").must(t, 0), 600, 1)
	want("borrowed", post("activate", "b", `,"lease_seconds":3600`).must(t, 0), 3600, 2)
	post("activate", "c", "").must(t, 40901)
	s.clock.advance(74 * time.Second)
	want("renewed too early", post("activate", "a", "").must(t, 0), 526, 2)
	s.clock.advance(time.Second)
	want("renewed", post("validate", "a", "").must(t, 0), 600, 2)
	post("activate", "a", `,"lease_seconds":29`).must(t, 42200)
	s.clock.advance(600 * time.Second)
	want("lapsed", post("validate", "a", "").must(t, 0), 0, 1)
	post("activate", "c", "").must(t, 40901)
	if got := s.get(key).must(t, 0); strings.Contains(got.body, `"device_id":"a"`) ||
		got.data["current_devices"] != 1.0 || got.data["lease_seconds"] != 600.0 ||
		got.data["max_lease_seconds"] != 86400.0 || got.text("device_mode") != "leased" {
		t.Errorf("a look-up shows %s", got.body)
	}
	s.clock.advance(5 * time.Second)
	want("a lapsed slot", post("activate", "c", "").must(t, 0), 600, 2)
	want("more than the longest", post("activate", "c", `,"lease_seconds":86401`).must(t, 0), 86400, 2)
	if given := post("deactivate", "c", "").must(t, 0); given.data["removed"] != true {
		t.Error(given.body)
	}
	s.clock.advance(time.Hour)
	if got := s.get(key).must(t, 0); got.text("status") != "not_activated" || got.text("activated_at") == "" {
		t.Errorf("without leases: %s", got.body)
	}
	for status, count := range map[string]int{"not_activated": 1, "activated": 0} { // no sweep has run yet
		got := s.send("GET", "/v1/licenses?product_id=render&status="+status, keyAll, "").must(t, 0)
		if licenses := got.data["licenses"].([]any); len(licenses) != count {
			t.Errorf("%s without leases: %s", status, got.body)
		}
	}
	s.send("PATCH", "/v1/licenses/"+key, keyAll, `{"max_devices":0}`).must(t, 42200)
	s.send("POST", "/v1/licenses", keyAll, `{"product_id":"render","quantity":1,"max_devices":10001}`).must(t, 42200)
}

// TestLeasesByWrongClock: a node whose clock is not known to agree answers requests that take a lease, or say how long
// a lease lasts, with 50300, to be tried again. Trials with leases are such requests.
func TestLeasesByWrongClock(t *testing.T) {
	t.Parallel()
	comparison := nodetest.NewComparison(new(nodetest.Clock).Source)
	s := newService(t, func(_ *handlers.Config, c *service.Config) { c.Clocks = comparison })
	key := s.leased()
	s.product("editor", `"max_devices":2,"device_mode":"leased","lease_seconds":600,`+
		`"trial":{"validity":"P7D","per":"device"}`).must(t, 0)
	body := fmt.Sprintf(`{"license_key":%q,"device_id":"a"}`, key)
	ask := func(code int) {
		t.Helper()
		for _, a := range []answer{
			s.send("POST", "/v1/licenses/activate", "", body), s.trial("", `"account_id":"acct_acme","device_id":"pc"`),
			s.send("POST", "/v1/licenses/validate", "", body),
		} {
			a.must(t, code)
			if left, _ := a.data["lease_remaining_seconds"].(float64); code == 0 && left != 600 || code != 0 &&
				(a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "clock")) {
				t.Error(a.body)
			}
		}
	}
	nodetest.CompareWith(comparison, 0, 0)
	ask(0)
	nodetest.CompareWith(comparison, 9*24*time.Hour) // of two nodes that differ, nothing shows which is right
	ask(50300)
	s.get(key).must(t, 0)
	s.send("POST", "/v1/licenses/deactivate", "", body).must(t, 0)
	nodetest.CompareWith(comparison, 0, 0)
	s.send("POST", "/v1/licenses/activate", "", body).must(t, 0)
}

// TestLeaseOfTrial: a trial of a product with leases takes its first lease for the length that the request asks for, as
// an activation does.
func TestLeaseOfTrial(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"max_devices":2,"device_mode":"leased","lease_seconds":600,"max_lease_seconds":86400,`+
		`"trial":{"validity":"P7D","per":"device"}`).must(t, 0)
	for _, c := range []struct {
		members string
		seconds float64
	}{
		{`"device_id":"a"`, 600},
		{`"device_id":"b","lease_seconds":3600`, 3600},
		{`"device_id":"c","lease_seconds":86401`, 86400},
		{`"device_id":"c","lease_seconds":600`, 86400}, // an end never moves back
	} {
		got := s.trial("", `"account_id":"acct_acme",`+c.members).must(t, 0)
		if got.data["lease_remaining_seconds"] != c.seconds {
			t.Errorf("%s: %s", c.members, got.body)
		}
	}
	s.trial("", `"account_id":"acct_acme","device_id":"d","lease_seconds":29`).must(t, 42200)
}

// TestLeaseTerms: a product has all terms of leases, or none.
func TestLeaseTerms(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const leased = `"device_mode":"leased","lease_seconds":`
	for members, want := range map[string]string{
		leased + `600`: leased + `600,"max_lease_seconds":600`,
		leased + `30,"max_lease_seconds":2592000`: leased + `30,"max_lease_seconds":2592000`,
		`"device_mode":"bound"`:                   `"bound","lease_seconds":null,"max_lease_seconds":null`,
		`"device_mode":"leased"`:                  `"field":"lease_seconds"`,
		`"lease_seconds":600`:                     `"field":"lease_seconds"`,
		`"max_lease_seconds":600`:                 `"field":"max_lease_seconds"`,
		leased + `29`:                             `"field":"lease_seconds"`,
		leased + `600,"max_lease_seconds":599`:    `"field":"max_lease_seconds"`,
		leased + `600,"max_devices":0`:            `"field":"max_devices"`,
		leased + `600,"max_devices":10001`:        `"field":"max_devices"`,
		`"device_mode":"floating"`:                `"field":"device_mode"`,
	} {
		if got := s.product("render", members); !strings.Contains(got.body, want) {
			t.Errorf("%s: %s", members, got.body)
		}
	}
}
