package handlers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestGrace: after the end of a license, its bound devices go on until the end of the grace; answers say so.
func TestGrace(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.graced()
	post := func(route, device string, code int) answer {
		t.Helper()
		return s.send("POST", "/v1/licenses/"+route, "",
			fmt.Sprintf(`{"license_key":%q,"device_id":%q}`, key, device)).must(t, code)
	}
	end := s.clock.Now().AddDate(0, 0, 17).UTC().Format("2006-01-02T15:04:05.000Z")
	want := func(what string, a answer, grace bool, status string) {
		t.Helper()
		if a.data["grace"] != grace || a.text("grace_ends_at") != end || a.text("status") != status {
			t.Errorf("%s: %s", what, a.body)
		}
	}
	want("at first", post("activate", "a", 0), false, "activated")
	s.clock.advance(10 * 24 * time.Hour)
	for _, when := range []string{"after the end", "once the end is recorded"} {
		want(when, post("activate", "a", 0), true, "expired")
		valid := post("validate", "a", 0)
		if want(when, valid, true, "expired"); valid.data["valid"] != true || valid.data["reason"] != nil {
			t.Errorf("%s: %s", when, valid.body)
		}
		post("activate", "b", 40303)
		invalid := post("validate", "b", 0)
		if want(when, invalid, false, "expired"); invalid.text("reason") != "license_expired" {
			t.Errorf("%s: %s", when, invalid.body)
		}
		s.clock.advance(time.Hour)
		s.giveNotices()
		if err := s.node.RecordLicenseEnds(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if l := s.get(key).must(t, 0); l.text("status") != "expired" || l.text("grace_ends_at") != end {
		t.Error(l.body)
	}
	s.change(key, "suspend", `{}`).must(t, 0)
	post("activate", "a", 40302)
	s.change(key, "reinstate", `{}`).must(t, 0)
	s.clock.advance(7 * 24 * time.Hour)
	post("activate", "a", 40303)
	if got := post("validate", "a", 0); got.data["valid"] != false || got.data["grace"] != false {
		t.Error(got.body)
	}
	s.change(key, "renew", `{"extend":"P1D"}`).must(t, 0)
	post("activate", "b", 0)
	s.clock.advance(2 * 24 * time.Hour)
	if got := post("activate", "b", 0); got.data["grace"] != true {
		t.Error(got.body)
	}
}

// TestGraceOfProducts: a product may have a grace of up to a year, which a rollout applies to earlier licenses.
func TestGraceOfProducts(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for members, want := range map[string]string{
		`"grace":"P1W"`: `"grace":"P7D"`, `"grace":"P1Y"`: `"grace":"P1Y"`, `"grace":null`: `"grace":null`,
		`"grace":"P367D"`: "must be at most a year", `"grace":"P0D"`: `"field":"grace"`, `"grace":""`: `"field":"grace"`,
	} {
		if got := s.product("app", members); !strings.Contains(got.body, want) {
			t.Errorf("%s: %s", members, got.body)
		}
	}
}

// TestExpiringDays: an account chooses the days before the end of a license for the event license.expiring.
func TestExpiringDays(t *testing.T) {
	t.Parallel()
	s := newService(t)
	patch := func(days string, code int) answer {
		t.Helper()
		return s.send("PATCH", "/v1/account", keyAll, `{"expiring_days":`+days+`}`).must(t, code)
	}
	for _, c := range [][2]string{{"null", "[30,7,1]"}, {"[1,14]", "[14,1]"}, {"null", "[14,1]"}, {"[]", "[]"}} {
		if got := patch(c[0], 0); !strings.Contains(got.body, `"expiring_days":`+c[1]) {
			t.Errorf("%s: %s", c[0], got.body)
		}
	}
	for _, bad := range []string{"[0]", "[61]", "[1,1]", "[1,2,3,4,5,6]"} {
		patch(bad, 42200)
	}
	patch("[null]", 40000)
	patch(`["7"]`, 40000)
}
