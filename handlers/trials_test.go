package handlers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"licet/licensing"
)

// tried makes a product that may be tried.
func (s *fixture) tried(product, terms string) {
	s.t.Helper()
	s.product(product, `"max_devices":3,"entitlements":{"export":true},"trial":`+terms).must(s.t, 0)
}

func (s *fixture) trial(key, members string) answer {
	return s.send("POST", "/v1/trials", key, `{"product_id":"editor","mode":"test",`+members+`}`)
}

// TestTrials: an end user starts a trial, once, and gets its license again until an order upgrades it.
func TestTrials(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const pc, mac = `"account_id":"acct_acme","device_id":"pc"`, `"account_id":"acct_acme","device_id":"mac"`
	s.trial("", pc).must(t, 40404)
	s.product("editor", "").must(t, 0)
	s.trial("", pc).must(t, 40308)
	s.tried("editor", `{"validity":"P14D","per":"device","entitlements":{"preview":true}}`)
	first := s.trial("", pc+`,"device_name":"The PC"`).must(t, 0)
	end := s.clock.Now().Add(14 * 24 * time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	if first.status != 201 || first.data["trial"] != true || first.text("expires_at") != end ||
		first.data["max_devices"] != 1.0 || first.text("device_name") != "The PC" ||
		!strings.Contains(first.body, `"entitlements":{"preview":true}`) {
		t.Errorf("%d %s", first.status, first.body)
	}
	key := first.text("license_key")
	again := s.trial(keyAll, pc).must(t, 0)
	if again.status != 200 || again.text("license_key") != key || again.text("device_name") != "The PC" {
		t.Errorf("again: %d %s", again.status, again.body)
	}
	if other := s.trial("", mac).must(t, 0); other.text("license_key") == key {
		t.Errorf("another device has the license: %s", other.body)
	}
	for _, got := range []answer{s.activate(key, "pc").must(t, 0), s.get(key).must(t, 0),
		s.send("POST", "/v1/licenses/validate", "", `{"license_key":"`+key+`","device_id":"pc"}`).must(t, 0)} {
		if got.data["trial"] != true {
			t.Errorf("the answer does not show the trial: %s", got.body)
		}
	}
	s.trial(keyOther, pc).must(t, 40404)
	s.trial("", `"device_id":"pc"`).must(t, 42200)
	s.send("PATCH", "/v1/licenses/"+key, keyAll, `{"max_devices":17}`).must(t, 42200)

	order := func(members string) answer {
		return s.send("POST", "/v1/orders", keyAll, `{"product_id":"editor","currency":"USD",`+members+`}`)
	}
	upgrade := order(`"amount":100,"upgrade_of":"`+key+`"`).must(t, 0)
	if upgrade.text("upgrade_of") != key {
		t.Errorf("the order does not name the trial: %s", upgrade.body)
	}
	order(`"amount":0,"upgrade_of":"`+key+`"`).must(t, 42200)
	order(`"amount":1,"upgrade_of":"nonsense"`).must(t, 42200)
	order(`"amount":1,"upgrade_of":"`+s.license()+`"`).must(t, 42200)
	paid := s.send("PUT", "/v1/orders/"+upgrade.text("order_no")+"/sandbox_payment", keyAll, "").must(t, 0)
	if paid.text("license_key") != key {
		t.Errorf("the order has another license: %s", paid.body)
	}
	bought := s.get(key).must(t, 0)
	if bought.data["trial"] != false || bought.data["max_devices"] != 3.0 || bought.data["expires_at"] != nil ||
		bought.text("order_no") != upgrade.text("order_no") || bought.data["current_devices"] != 1.0 ||
		!strings.Contains(bought.body, `"entitlements":{"export":true}`) {
		t.Errorf("upgraded to %s", bought.body)
	}
	refused := s.trial("", pc).must(t, 40307)
	if strings.Contains(refused.body, key) || refused.data != nil {
		t.Errorf("the refusal shows %s", refused.body)
	}
	order(`"amount":1,"upgrade_of":"`+key+`"`).must(t, 42200)
}

// TestUpgradeBeginsValidity: of the entitlements that a buyer gets with the upgrade of a trial, a validity runs from
// the payment, however long ago the trial began.
func TestUpgradeBeginsValidity(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"entitlements":{"support":{"value":true,"validity":"P30D"}},`+
		`"trial":{"validity":"P14D","per":"device"}`).must(t, 0)
	key := s.trial("", `"account_id":"acct_acme","device_id":"pc"`).must(t, 0).text("license_key")
	const day = 24 * time.Hour
	s.clock.advance(40 * day)
	order := s.send("POST", "/v1/orders", keyAll,
		`{"product_id":"editor","currency":"USD","amount":100,"upgrade_of":"`+key+`"}`).must(t, 0).text("order_no")
	s.send("PUT", "/v1/orders/"+order+"/sandbox_payment", keyAll, "").must(t, 0)
	for _, want := range []string{`{"support":true}`, `{"support":true}`, `{}`} { // after 0, 15 and 30 days
		for _, got := range []answer{s.get(key).must(t, 0), s.activate(key, "pc").must(t, 0),
			s.send("POST", "/v1/licenses/validate", "", `{"license_key":"`+key+`","device_id":"pc"}`).must(t, 0)} {
			if !strings.Contains(got.body, `"entitlements":`+want) {
				t.Errorf("not %s: %s", want, got.body)
			}
		}
		s.clock.advance(15 * day)
	}
}

// TestTrialPerEmail: an address is used once, by a request with an API key.
func TestTrialPerEmail(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.tried("editor", `{"validity":"P7D","per":"email","max_devices":2}`)
	s.trial("", `"account_id":"acct_acme","device_id":"pc","buyer_email":"ada@example.com"`).must(t, 40100)
	s.trial(keyAll, `"device_id":"pc"`).must(t, 42200)
	first := s.trial(keyAll, `"device_id":"pc","buyer_email":"ada@example.com"`).must(t, 0)
	if again := s.trial(keyAll, `"device_id":"pc","buyer_email":"ADA@example.com"`).must(t, 0); again.text(
		"license_key") != first.text("license_key") {
		t.Errorf("again: %s", again.body)
	}
	refused := s.trial(keyAll, `"device_id":"mac","buyer_email":"ada@example.com"`).must(t, 40307)
	if strings.Contains(first.body+refused.body, "ada@") {
		t.Errorf("an answer to a device shows the address: %s %s", first.body, refused.body)
	}
}

// TestTrialNamesItsUser: a trial has the address that it was started with, until a redaction or an upgrade.
func TestTrialNamesItsUser(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.tried("editor", `{"validity":"P7D","per":"device"}`)
	start := func(device, address string) (key string) {
		return s.trial("", `"account_id":"acct_acme","device_id":"`+device+`","buyer_email":"`+address+`"`).
			must(t, 0).text("license_key")
	}
	of := func(key string) any { return s.get(key).must(t, 0).data["buyer_email"] }
	gone, bought := start("pc", "Ada@example.com"), start("mac", "bob@example.com")
	if of(gone) != "Ada@example.com" || of(bought) != "bob@example.com" {
		t.Errorf("the addresses are %v and %v", of(gone), of(bought))
	}
	list := s.send("GET", "/v1/licenses?buyer_email=ada@example.com", keyAll, "").must(t, 0)
	if !strings.Contains(list.body, gone) || strings.Contains(list.body, bought) {
		t.Errorf("the list is %s", list.body)
	}
	s.send("PATCH", "/v1/licenses/"+gone, keyAll, `{"buyer_email":"ada@example.org"}`).must(t, 0)
	s.send("POST", "/v1/redactions", keyAll, `{"buyer_email":"ada@example.org"}`).must(t, 0)
	order := s.send("POST", "/v1/orders", keyAll,
		`{"product_id":"editor","currency":"USD","amount":100,"upgrade_of":"`+bought+`"}`).must(t, 0)
	s.send("PUT", "/v1/orders/"+order.text("order_no")+"/sandbox_payment", keyAll, "").must(t, 0)
	if of(gone) != nil || of(bought) != nil {
		t.Errorf("after a redaction and an upgrade the addresses are %v and %v", of(gone), of(bought))
	}
}

// TestTrialOfDeviceThatChanges: a trial keeps the components of its device, so the device keeps its slot with a new id.
func TestTrialOfDeviceThatChanges(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"max_devices":1,"device_match":{"at_least":1},`+
		`"trial":{"validity":"P7D","per":"device"}`).must(t, 0)
	components := fmt.Sprintf(`,"device_components":{"disk":%q}`, strings.Repeat("ab", 32))
	s.trial("", `"account_id":"acct_acme","device_id":"pc","device_components":{"disk":"x"}`).must(t, 42200)
	key := s.trial("", `"account_id":"acct_acme","device_id":"pc"`+components).must(t, 0).text("license_key")
	changed := fmt.Sprintf(`{"license_key":%q,"device_id":"pc-2"%s}`, key, components)
	s.send("POST", "/v1/licenses/activate", "", changed).must(t, 0)
	if got := s.get(key).must(t, 0); got.data["current_devices"] != 1.0 ||
		!strings.Contains(got.body, `"device_id":"pc-2"`) || !strings.Contains(got.body, `"component_names":["disk"]`) {
		t.Error(got.body)
	}
}

// TestTrialTerms: a product shows the terms of its trials as they were put.
func TestTrialTerms(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for trial, want := range map[string]string{
		`{}`:                                `"trial":{},`,
		`{"validity":"P2W","per":"device"}`: `"trial":{"validity":"P14D","max_devices":1,"per":"device"}`,
		`{"per":"email","validity":"PT1H","max_devices":16,"entitlements":{}}`: `"trial":{"validity":"PT1H",` +
			`"max_devices":16,"entitlements":{},"per":"email"}`,
		`{"validity":"P14D"}`: "device or email as per",
		`{"per":"device"}`:    "duration as validity",
		`{"validity":"P1D","per":"device","max_devices":17}`:       "1 to 16",
		`{"validity":"P1D","per":"device","max_devices":0}`:        "1 to 16",
		`{"validity":"P1D","per":"device","days":1}`:               "no other members",
		`{"validity":1,"per":"device"}`:                            "no other members",
		`{"validity":"P1D","per":"device","entitlements":{"!":1}}`: `"field":"trial.entitlements"`,
	} {
		if got := s.product("editor", `"trial":`+trial); !strings.Contains(got.body, want) {
			t.Errorf("%s: %s", trial, got.body)
		}
	}
}

// TestTrialsAreLimited: strangers can't start many trials at once, and their requests count by address.
func TestTrialsAreLimited(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.tried("editor", `{"validity":"P7D","per":"device"}`)
	refused := 0
	s.product("mailout", `"trial":{"validity":"P7D","per":"email"}`).must(t, 0)
	for i := range 120 {
		got := s.trial("", fmt.Sprintf(`"account_id":"acct_acme","device_id":"pc-%d"`, i))
		if got.code == 42900 {
			refused++
			if !strings.Contains(got.header.Get("RateLimit-Policy"), `"address_trials";q=20;w=20`) {
				t.Fatalf("refused by %s", got.header.Get("RateLimit-Policy"))
			}
		} else {
			got.must(t, 0)
		}
	}
	if refused != 100 {
		t.Errorf("%d of 120 trials from one address were refused at once", refused)
	}
	s.trial("", `"account_id":"acct_acme","device_id":"pc-1"`).must(t, 0)
	for i := range 100 { // the shop's own server has a limit of its own
		s.send("POST", "/v1/trials", keyAll, fmt.Sprintf(
			`{"product_id":"mailout","mode":"test","device_id":"pc","buyer_email":"ada%d@example.com"}`, i)).must(t, 0)
	}
	s.trial(keyAll, `"device_id":"one more"`).must(t, 42900)
	s.license() // the account itself goes on
}

// TestTrialKeepsNoSecrets: what is remembered shows neither the address nor the device.
func TestTrialKeepsNoSecrets(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.tried("editor", `{"validity":"P7D","per":"email"}`)
	s.trial(keyAll, `"device_id":"pc-serial-1","buyer_email":"ada@example.com"`).must(t, 0)
	for ref, stored := range s.store.records {
		if ref.Kind != licensing.KindTrial {
			continue
		}
		if text := fmt.Sprintf("%q %+v", ref.ID, stored.record.Trial); strings.Contains(text, "ada") ||
			strings.Contains(text, "serial") {
			t.Error(text)
		}
	}
}
