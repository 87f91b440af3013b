package handlers_test

import (
	"reflect"
	"testing"
	"time"

	"licet/receipt"
)

// TestRevisionOfReceipts: whatever changes in the receipts of a license and a device raises the revision. Time alone
// does not: an entitlement that ends, and a lease, end the receipt. Only the status expired comes without a higher
// revision while a receipt is valid: in the grace after license_expires_at, until the service records the end.
func TestRevisionOfReceipts(t *testing.T) {
	t.Parallel()
	s := newService(t)
	changed := map[string]bool{}
	var last *receipt.Receipt
	// shows gets a receipt after a step, and compares it with the receipt before.
	shows := func(step, key string) {
		t.Helper()
		answer := s.activateFor(key, "pc", `,"receipt":true,"nonce":"n"`)
		r := s.verifiedFor(answer.text("product_id"), answer, "pc")
		defer func() { last = r }()
		if last == nil || last.LicenseID != r.LicenseID {
			return
		}
		if r.Revision < last.Revision {
			t.Errorf("%s: the revision falls from %d to %d", step, last.Revision, r.Revision)
		}
		before, after := reflect.ValueOf(*last), reflect.ValueOf(*r)
		for i := range before.NumField() {
			switch name := before.Type().Field(i).Name; {
			case name == "IssuedAt", name == "NotBefore", name == "ExpiresAt", name == "ID", name == "Revision":
			case reflect.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()):
			case r.Revision == last.Revision && last.ExpiresAt > s.clock.Now().Unix() &&
				(name != "Status" || r.Status != "expired"):
				t.Errorf("%s: %s has changed, and the revision %d has not, although the receipt before is valid", step,
					name, r.Revision)
			default:
				changed[name] = true
			}
		}
	}
	patch := func(key, body string) { t.Helper(); s.send("PATCH", "/v1/licenses/"+key, keyAll, body).must(t, 0) }
	in := func(d time.Duration) string { return s.clock.Now().Add(d).UTC().Format(time.RFC3339) }
	record := func() {
		t.Helper()
		s.clock.advance(5 * time.Minute)
		if err := s.node.RecordLicenseEnds(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	s.product("editor", `"max_devices":3,"grace":"P7D","validity":"P10D","entitlements":{"seats":5}`).must(t, 0)
	key := s.license()
	shows("first", key)
	patch(key, `{"max_devices":5}`)
	shows("max_devices", key)
	patch(key, `{"entitlements":{"seats":6,"beta":{"value":true,"expires_at":"`+in(time.Hour)+`"}}}`)
	shows("entitlements", key)
	s.clock.advance(30 * time.Minute)
	shows("half an hour", key)
	s.clock.advance(40 * time.Minute)
	shows("the entitlement has ended", key)
	s.change(key, "renew", `{"expires_at":"`+in(2*24*time.Hour)+`"}`).must(t, 0)
	shows("another end", key)
	s.change(key, "suspend", `{}`).must(t, 0)
	s.change(key, "reinstate", `{}`).must(t, 0)
	shows("reinstated", key)
	s.clock.advance(3 * 24 * time.Hour)
	shows("in the grace", key)
	before := last.Revision
	record()
	if shows("the end is recorded", key); last.Revision <= before {
		t.Errorf("the recorded end raises no revision: %d", last.Revision)
	}
	s.change(key, "renew", `{"expires_at":"`+in(9*24*time.Hour)+`"}`).must(t, 0)
	shows("renewed", key)

	s.product("editor", `"max_devices":3,"device_mode":"leased","lease_seconds":600`).must(t, 0)
	key = s.license()
	shows("a lease", key)
	s.clock.advance(6 * time.Minute)
	shows("the lease is renewed", key)
	s.clock.advance(20 * time.Minute)
	shows("a new lease", key)

	// The trial and the license that is bought end at the same time, and have the same device limit.
	s.product("editor", `"max_devices":1,"validity":"P14D","trial":{"validity":"P14D","per":"device"}`).must(t, 0)
	key = s.trial("", `"account_id":"acct_acme","device_id":"pc"`).must(t, 0).text("license_key")
	shows("a trial", key)
	s.pay(s.send("POST", "/v1/orders", keyAll,
		`{"product_id":"editor","amount":1,"currency":"USD","upgrade_of":"`+key+`"}`).must(t, 0))
	shows("bought", key)

	order := s.subscribed()
	key = s.send("GET", order, keyAll, "").must(t, 0).text("license_key")
	shows("a subscription", key)
	s.product("team", `"billing":{"interval":"P1M"}`).must(t, 0)
	s.send("POST", order+"/subscription/change", keyAll, `{"product_id":"team","amount":901,"at":"now"}`).must(t, 0)
	shows("another product", key)

	s.product("editor", "").must(t, 0)
	key = s.license()
	shows("no age", key)
	s.product("editor", `"revocation_max_age":"P1D"`).must(t, 0)
	s.send("POST", "/v1/products/editor/rollout", keyAll, `{"terms":["revocation_max_age"]}`).must(t, 0)
	s.awaitRollout("editor")
	shows("revocation_max_age", key)

	elsewhere := map[string]string{
		"Issuer": "fixed", "LicenseID": "fixed", "AccountID": "fixed", "Mode": "fixed", "DeviceID": "fixed",
		"Nonce": "of the request", "DeviceKey": "of the request", "IssuedAt": "time", "NotBefore": "time",
		"ExpiresAt": "time", "ID": "of each receipt", "Revision": "itself",
	}
	for i := range reflect.TypeFor[receipt.Receipt]().NumField() {
		name := reflect.TypeFor[receipt.Receipt]().Field(i).Name
		if changed[name] == (elsewhere[name] != "") {
			t.Errorf("the test changes %s: %v, and says %q", name, changed[name], elsewhere[name])
		}
	}
}

// awaitRollout waits until the rollout of a product has changed all licenses.
func (s *fixture) awaitRollout(product string) {
	s.t.Helper()
	status := func() string {
		return s.send("GET", "/v1/products/"+product+"/rollout", keyAll, "").must(s.t, 0).text("status")
	}
	for until := time.Now().Add(time.Minute); status() != "done"; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			s.t.Fatalf("after a minute, the rollout is %s", status())
		}
	}
}
