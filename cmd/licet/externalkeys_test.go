package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestExternalKeys imports a key from elsewhere, and activates, validates and deactivates by it, also after a kill.
func TestExternalKeys(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir())
	ask := func(key, device, more string) string {
		return fmt.Sprintf(`{"license_key":%q,"device_id":%q%s}`, key, device, more)
	}
	account := p.want(t, 200, "GET", "/v1/account", "").Data
	if account.text("external_keys") != "exact" || account["external_keys_fixed"] != false {
		t.Errorf("the account is %v", account)
	}
	ours := fmt.Sprintf(`,"account_id":%q,"mode":"test"`, account.text("account_id"))
	activate := func(status int, key, device, more string) reply {
		t.Helper()
		return p.want(t, status, "POST", "/v1/licenses/activate", ask(key, device, more))
	}

	// Before there is an external key, the text is no key at all.
	if r := activate(400, "7F3A-99B1-04CC", "laptop-1", ours); r.Code != 40001 {
		t.Errorf("without external keys: %d", r.Code)
	}
	p.want(t, 201, "PUT", "/v1/products/editor", `{"self_service_deactivation":true}`)
	p.want(t, 200, "PATCH", "/v1/account", `{"external_keys":"compact"}`)
	made := p.want(t, 201, "POST", "/v1/licenses",
		`{"product_id":"editor","quantity":1,"external_key":" 7F3A-99B1-04CC "}`).Data.list("licenses")[0]
	if made.text("external_key") != "7F3A-99B1-04CC" || made.text("license_key") == "" {
		t.Errorf("granted %v", made)
	}
	if r := p.want(t, 409, "PATCH", "/v1/account", `{"external_keys":"exact"}`); r.Code != 40910 {
		t.Errorf("the setting changed: %d", r.Code)
	}

	// Only one of many requests gets the key, however the key is written.
	var wins, taken int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			r, err := p.send(t.Context(), "POST", "/v1/licenses", fmt.Sprintf(
				`{"product_id":"editor","quantity":1,"external_key":"Once%sMore"}`, strings.Repeat(" -", i)))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case r.status == 201:
				wins++
			case r.Code == 40907:
				taken++
			default:
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	wg.Wait()
	if wins != 1 || taken != 7 {
		t.Errorf("%d grants with one external key, and %d refusals", wins, taken)
	}

	if r := activate(200, "7f3a99b1 04cc", "laptop-1", ours); r.Data.text("license_key") != "7f3a99b1 04cc" {
		t.Errorf("the answer shows %s", r.Data.text("license_key"))
	}
	for what, c := range map[string]struct {
		key, more    string
		status, code int
	}{
		"without an account":              {"7F3A-99B1-04CC", "", 400, 40001},
		"without a mode, which is live":   {"7F3A-99B1-04CC", strings.TrimSuffix(ours, `,"mode":"test"`), 400, 40001},
		"of an account without such keys": {"7F3A-99B1-04CC", `,"account_id":"acct_other","mode":"test"`, 400, 40001},
		"unknown":                         {"7F3A-99B1-04CD", ours, 404, 40401},
		"blanks and dashes":               {" - - ", ours, 404, 40401},
		"an id":                           {made.text("id"), ours, 400, 40001},
		"control characters":              {"7F3A\t99B1", ours, 400, 40001},
	} {
		if r := activate(c.status, c.key, "laptop-9", c.more); r.Code != c.code {
			t.Errorf("%s: %d %s", what, r.Code, r.body)
		}
	}
	tooLong := strings.Repeat("x", 1025)
	for _, bad := range []string{made.text("license_key"), made.text("id"), "", tooLong, "a\nb", " - "} {
		body := fmt.Sprintf(`{"product_id":"editor","quantity":1,"external_key":%q}`, bad)
		if r := p.want(t, 422, "POST", "/v1/licenses", body); r.Code != 42200 {
			t.Errorf("%q as an external key: %d", bad, r.Code)
		}
	}

	// A license that has expired at the other service is expired here. Without an external key, a past end is refused.
	past := `"product_id":"editor","quantity":1,"expires_at":"2020-01-02T03:04:05Z"`
	p.want(t, 422, "POST", "/v1/licenses", "{"+past+"}")
	expired := p.want(t, 201, "POST", "/v1/licenses", "{"+past+`,"external_key":"OVER-1"}`).Data.list("licenses")[0]
	if expired.text("status") != "expired" || expired.text("expires_at") != "2020-01-02T03:04:05.000Z" {
		t.Errorf("%v", expired)
	}
	if r := activate(403, "OVER-1", "laptop-1", ours); r.Data.text("license_key") != "" {
		t.Errorf("%s", r.body)
	}

	// Both keys name the same license.
	activate(200, made.text("license_key"), "laptop-2", ours)
	listed := p.want(t, 200, "GET", "/v1/licenses?external_key=7f3a99b104cc", "").Data.list("licenses")
	if len(listed) != 1 || listed[0].text("id") != made.text("id") || listed[0]["current_devices"] != 2.0 {
		t.Errorf("listed %v", listed)
	}
	for _, none := range []string{"external_key=other", "external_key=7F3A-99B1-04CC&status=revoked",
		"external_key=7F3A-99B1-04CC&buyer_email=ada@example.com"} {
		if listed := p.want(t, 200, "GET", "/v1/licenses?"+none, "").Data.list("licenses"); len(listed) != 0 {
			t.Errorf("%s lists %v", none, listed)
		}
	}
	p.want(t, 200, "PATCH", "/v1/licenses/"+made.text("id"), `{"metadata":{"a":1}}`)
	p.want(t, 200, "PATCH", "/v1/licenses/"+made.text("id"), `{"metadata":{"a":null}}`)

	p.kill()
	p = startProcess(t, p.dir)
	if v := p.want(t, 200, "POST", "/v1/licenses/validate", ask("7F3A-99B1-04CC", "laptop-1",
		ours)); v.Data["valid"] != true || v.Data.text("license_key") != "7F3A-99B1-04CC" {
		t.Errorf("validated %v", v.Data)
	}
	if r := p.want(t, 200, "POST", "/v1/licenses/deactivate", ask("7F3A-99B1-04CC", "laptop-1",
		ours)); r.Data["removed"] != true {
		t.Errorf("deactivated %v", r.Data)
	}
	l := p.want(t, 200, "GET", "/v1/licenses/"+made.text("id"), "").Data
	if l.text("external_key") != "7F3A-99B1-04CC" || l["current_devices"] != 1.0 {
		t.Errorf("the license is %v", l)
	}
	if code := p.terminate(t); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	if got := runLicet(t, "store", "verify", "--data-dir", p.dir); got.code != exitOK {
		t.Errorf("%+v", got)
	}
}
