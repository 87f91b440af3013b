package handlers_test

import (
	"strings"
	"testing"
	"time"

	"licet/receipt"
)

// verified verifies the receipt in an answer, as the program editor on a device does, and returns its content.
func (s *fixture) verified(a answer, device string) *receipt.Receipt {
	s.t.Helper()
	return s.verifiedFor("editor", a, device)
}

// verifiedFor verifies a receipt as another program does.
func (s *fixture) verifiedFor(product string, a answer, device string) *receipt.Receipt {
	s.t.Helper()
	root, err := receipt.ParseRoot(s.receiptKeys().text("root"))
	if err != nil {
		s.t.Fatal(err)
	}
	v := receipt.Verifier{Root: root, AccountID: "acct_acme", Mode: "test", ProductID: product, DeviceID: device}
	set := s.send("GET", keySetPath, "", "")
	_, signed, _ := strings.Cut(set.body, `"signed":"`)
	signed, _, _ = strings.Cut(signed, `"`)
	r, _, err := v.Verify(receipt.Documents{Keys: signed, Receipt: a.text("receipt")}, receipt.Seen{}, s.clock.Now())
	if err != nil {
		s.t.Fatalf("%v: %s", err, a.body)
	}
	return r.Receipt
}

func (s *fixture) activateFor(key, device, members string) answer {
	s.t.Helper()
	return s.send("POST", "/v1/licenses/activate", "", `{"license_key":"`+key+`","device_id":"`+device+`"`+members+`}`).
		must(s.t, 0)
}

// TestReceipts: activations, validations and trials that ask for a receipt get one, which a program can verify.
func TestReceipts(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"max_devices":3,"entitlements":{"export":true,"seats":5,"edition":"größte"}`).must(t, 0)
	key := s.license()
	if plain := s.activateFor(key, "pc", ""); plain.data["receipt"] != nil {
		t.Errorf("not asked for: %s", plain.body)
	}
	first := s.activateFor(key, "pc", `,"receipt":true`)
	r := s.verified(first, "pc")
	minute, revision := s.clock.Now().Truncate(time.Minute).Unix(), s.clock.Now().Unix()
	if r.Issuer != publicURL || r.LicenseID != s.get(key).text("id") || r.IssuedAt != minute ||
		r.ExpiresAt != minute+7*24*3600 || r.Status != "activated" || r.MaxDevices != 3 ||
		r.Revision != revision || r.Trial ||
		r.LicenseEndsAt != nil || r.LeaseEndsAt != nil || r.GraceEndsAt != nil || r.Nonce != "" ||
		string(r.Entitlements["seats"]) != "5" || string(r.Entitlements["edition"]) != `"größte"` ||
		strings.Contains(first.text("receipt"), key) {
		t.Errorf("the receipt is %+v", r)
	}

	s.clock.advance(time.Second)
	if again := s.activateFor(key, "pc", `,"receipt":true`); again.text("receipt") != first.text("receipt") {
		t.Error("an unchanged license and device have another receipt")
	}
	fresh := s.activateFor(key, "pc", `,"receipt":true,"nonce":"n1","receipt_seconds":3600`)
	other := s.activateFor(key, "pc", `,"receipt":true,"nonce":"n1","receipt_seconds":3600`)
	if r := s.verified(fresh, "pc"); r.Nonce != "n1" || r.IssuedAt != s.clock.Now().Unix() ||
		r.ExpiresAt != r.IssuedAt+3600 || other.text("receipt") == fresh.text("receipt") {
		t.Errorf("with a nonce: %+v", r)
	}
	s.clock.advance(time.Minute)
	later := s.verified(s.send("POST", "/v1/licenses/validate", "", `{"license_key":"`+key+
		`","device_id":"pc","receipt":true}`).must(t, 0), "pc")
	if later.IssuedAt != minute+60 || later.Revision != revision || later.ID == r.ID {
		t.Errorf("a minute later: %+v", later)
	}
	if none := s.send("POST", "/v1/licenses/validate", "", `{"license_key":"`+key+
		`","device_id":"mac","receipt":true}`).must(t, 0); none.data["receipt"] != nil {
		t.Errorf("a device that is not bound has a receipt: %s", none.body)
	}

	s.send("PATCH", "/v1/licenses/"+key, keyAll, `{"max_devices":2,"entitlements":{"seats":6}}`).must(t, 0)
	s.send("DELETE", "/v1/licenses/"+key+"/devices/pc", keyAll, "").must(t, 0)
	back := s.verified(s.activateFor(key, "pc", `,"receipt":true`), "pc")
	if back.Revision <= revision+1 || back.MaxDevices != 2 || string(back.Entitlements["seats"]) != "6" {
		t.Errorf("after the changes: %+v", back)
	}
	s.change(key, "renew", `{"expires_at":"2030-01-03T00:00:00Z"}`).must(t, 0)
	ends := s.verified(s.activateFor(key, "pc", `,"receipt":true`), "pc")
	if end := time.Date(2030, 1, 3, 0, 0, 0, 0, time.UTC); ends.ExpiresAt != end.Unix() ||
		*ends.LicenseEndsAt != "2030-01-03T00:00:00.000Z" || ends.Revision != back.Revision+1 {
		t.Errorf("a license that ends: %+v", ends)
	}
	s.send("PATCH", "/v1/licenses/"+key, keyAll, `{"entitlements":{"beta":{"value":true,"expires_at":"`+
		s.clock.Now().Add(90*time.Second).UTC().Format(time.RFC3339)+`"}}}`).must(t, 0)
	beta := s.verified(s.activateFor(key, "pc", `,"receipt":true`), "pc")
	if left := beta.ExpiresAt - s.clock.Now().Unix(); left < 89 || left > 91 || beta.Entitlements["beta"] == nil {
		t.Errorf("an entitlement that ends first, in %d s: %+v", left, beta)
	}
	s.clock.advance(100 * time.Second)
	if over := s.verified(s.activateFor(key, "pc", `,"receipt":true`), "pc"); over.Entitlements["beta"] != nil ||
		over.ExpiresAt != ends.ExpiresAt {
		t.Errorf("once the entitlement has ended: %+v", over)
	}
	for members, field := range map[string]string{`"receipt_seconds":59`: "receipt_seconds", `"nonce":""`: "nonce",
		`"receipt_seconds":7776001`: "receipt_seconds"} {
		got := s.send("POST", "/v1/licenses/activate", "", `{"license_key":"`+key+`","device_id":"pc",`+members+`}`)
		if got.must(t, 42200); !strings.Contains(got.body, `"field":"`+field+`"`) {
			t.Errorf("%s: %s", members, got.body)
		}
	}
}

// TestReceiptsOfProducts: a product may add receipts to every activation, also of leases and trials, and says how long
// they are valid.
func TestReceiptsOfProducts(t *testing.T) {
	t.Parallel()
	s := newService(t)
	got := s.product("editor", `"receipt":true,"receipt_validity":"PT1H","device_mode":"leased","lease_seconds":600,`+
		`"trial":{"validity":"P14D","per":"device"}`).must(t, 0)
	if got.data["receipt"] != true || got.text("receipt_validity") != "PT1H" {
		t.Errorf("%s", got.body)
	}
	leased := s.activateFor(s.license(), "pc", "")
	if r := s.verified(leased, "pc"); *r.LeaseEndsAt != leased.text("lease_expires_at") ||
		r.ExpiresAt != s.clock.Now().Add(10*time.Minute).Unix() {
		t.Errorf("a lease: %+v of %s", r, leased.body)
	}
	const trial = `{"product_id":"editor","mode":"test","account_id":"acct_acme","device_id":"mac"}`
	first := s.send("POST", "/v1/trials", "", trial).must(t, 0)
	again := s.send("POST", "/v1/trials", "", trial).must(t, 0)
	if r := s.verified(first, "mac"); !r.Trial || again.text("receipt") != first.text("receipt") {
		t.Errorf("a trial: %+v, and again %s", r, again.body)
	}
	for in, want := range map[string]string{"P90D": "P90D", "P7D": "P7D", "PT90S": "PT1M30S", "P1DT1M": "P1DT1M"} {
		got := s.product("editor", `"receipt_validity":"`+in+`"`).must(t, 0)
		if got.text("receipt_validity") != want {
			t.Errorf("%s: %s", in, got.body)
		}
	}
	for _, bad := range []string{"P91D", "PT59S", "P1M", "P100000D", "0"} {
		s.product("editor", `"receipt_validity":"`+bad+`"`).must(t, 42200)
	}
}

// TestTrialReceiptAfterReissue: a trial that is asked for again answers its newest key, and a receipt for that key,
// which does not end with the overlap of an earlier key.
func TestTrialReceiptAfterReissue(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"receipt_validity":"P7D","trial":{"validity":"P30D","per":"device"}`).must(t, 0)
	const trial = `{"product_id":"editor","mode":"test","account_id":"acct_acme","device_id":"mac","receipt":true}`
	key := s.send("POST", "/v1/trials", "", trial).must(t, 0).text("license_key")
	for _, reissue := range []string{`{"overlap":"PT1H"}`, `{}`} {
		key = s.send("POST", "/v1/licenses/"+key+"/reissue", keyAll, reissue).must(t, 0).text("license_key")
		again := s.send("POST", "/v1/trials", "", trial).must(t, 0)
		if r := s.verified(again, "mac"); again.text("license_key") != key ||
			r.ExpiresAt < s.clock.Now().Add(6*24*time.Hour).Unix() {
			t.Errorf("after a reissue with %s the trial is %s, with a receipt until %d", reissue, again.body,
				r.ExpiresAt)
		}
	}
}
