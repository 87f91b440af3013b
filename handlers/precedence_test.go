package handlers_test

import (
	"fmt"
	"strings"
	"testing"

	"licet/licensing"
	"licet/licensing/keyring"
)

// absentKey returns a valid license key without a license.
func absentKey() string {
	return serviceKeys.Text(serviceKeys.Mint("LIC", ownerAcme, [keyring.LicenseKeyEntropy]byte{42}))
}

// A request with two faults gets the error that comes first in the contract.
func TestWhichErrorWins(t *testing.T) {
	t.Parallel()
	s := newService(t)
	revoked := s.license()
	s.change(revoked, "revoke", "").must(s.t, 0)
	fullSuspended := s.license()
	for i := range 3 {
		s.activate(fullSuspended, fmt.Sprint(i)).must(t, 0)
	}
	s.change(fullSuspended, "suspend", "").must(s.t, 0)

	const activate = "/v1/licenses/activate"
	asText := []string{"Content-Type", "-", "Content-Type", "text/plain"}
	twice := []string{"Authorization", "Bearer " + keyAll}
	big := strings.Repeat("x", 70<<10)
	for _, c := range []struct {
		name              string
		method, path, key string
		body              string
		headers           []string
		code              int
	}{
		{name: "size before route", method: "POST", path: "/v1/nothing", body: big, code: 41300},
		{name: "size before method", method: "PUT", path: "/v1/orders", body: big, code: 41300},
		{name: "size before authentication", method: "POST", path: "/v1/orders", body: big, code: 41300},
		{name: "route before method", method: "BREW", path: "/v1/nothing", code: 40400},
		{name: "method before authentication", method: "PUT", path: "/v1/orders", code: 40500},
		{name: "authentication before scope", method: "POST", path: "/v1/orders", key: keyExpired, body: "{}",
			code: 40100},
		{name: "authentication before media type", method: "POST", path: "/v1/orders", body: "{}", headers: asText,
			code: 40100},
		{name: "authentication before license key", method: "GET", path: "/v1/licenses/x", code: 40100},
		{name: "bad credentials before media type on an open route", method: "POST", path: activate, key: keyRevoked,
			body: "{}", headers: asText, code: 40100},
		{name: "two credentials", method: "POST", path: "/v1/orders", key: keyAll, body: "{}", headers: twice,
			code: 40100},
		{name: "scope before media type", method: "POST", path: "/v1/orders", key: keyReadOnly, body: "{}",
			headers: asText, code: 40300},
		{name: "scope before JSON", method: "POST", path: "/v1/licenses", key: keyReadOnly, body: "{", code: 40300},
		{name: "each scope before JSON", method: "POST", path: "/v1/redactions", key: keyKeys, body: "{", code: 40300},
		{name: "scope before license key", method: "DELETE", path: "/v1/licenses/x/devices/d", key: keyReadOnly,
			code: 40300},
		{name: "scope before the key's existence", method: "DELETE", path: "/v1/keys/key_none", key: keyReadOnly,
			code: 40300},
		{name: "media type before JSON", method: "POST", path: activate, body: "{", headers: asText, code: 41500},
		{name: "JSON before license key", method: "POST", path: activate, body: `{"license_key":"x"`, code: 40000},
		{name: "types before license key", method: "POST", path: activate, body: `{"license_key":"x","device_id":1}`,
			code: 40000},
		{name: "type of license key", method: "POST", path: activate, body: `{"license_key":1}`, code: 40000},
		{name: "license key before fields", method: "POST", path: activate, body: `{"license_key":"x"}`, code: 40001},
		{name: "empty license key before fields", method: "POST", path: activate, body: `{"license_key":""}`,
			code: 40001},
		{name: "license key before path fields", method: "DELETE", path: "/v1/licenses/x/devices/%00", key: keyAll,
			code: 40001},
		{name: "license key before query", method: "GET", path: "/v1/licenses/x/devices?limit=x", key: keyAll,
			code: 40001},
		{name: "missing license key is a field", method: "POST", path: activate, body: `{"license_key":null}`,
			code: 42200},
		{name: "no body", method: "POST", path: "/v1/orders", key: keyAll, code: 40000},
		{name: "fields before existence", method: "POST", path: activate, body: `{"license_key":"` + absentKey() + `"}`,
			code: 42200},
		{name: "path fields before existence", method: "DELETE", path: "/v1/licenses/" + absentKey() + "/devices/%00",
			key: keyAll, code: 42200},
		{name: "query before existence", method: "GET", path: "/v1/licenses/" + absentKey() + "/devices?limit=x",
			key: keyAll, code: 42200},
		{name: "JSON before the license key in a path", method: "POST", path: "/v1/licenses/x/suspend", key: keyAll,
			body: `{"reason":1}`, code: 40000},
		{name: "license key in a path before fields", method: "POST", path: "/v1/licenses/x/renew", key: keyAll,
			body: `{}`, code: 40001},
		{name: "fields of a change before existence", method: "POST", path: "/v1/licenses/" + absentKey() + "/renew",
			key: keyAll, body: `{}`, code: 42200},
		{name: "fields of a change before state", method: "POST", path: "/v1/licenses/" + revoked + "/suspend",
			key: keyAll, body: `{"reason":"\u0000"}`, code: 42200},
		{name: "scope before JSON of a change", method: "PATCH", path: "/v1/licenses/" + revoked, key: keyReadOnly,
			body: `{`, code: 40300},
		{name: "existence before self-service", method: "POST", path: "/v1/licenses/deactivate",
			body: `{"license_key":"` + absentKey() + `","device_id":"d"}`, code: 40401},
		{name: "existence before product", method: "POST", path: activate,
			body: `{"license_key":"` + revoked + `","device_id":"d","product_id":"viewer","mode":"live"}`, code: 40401},
		{name: "product before state", method: "POST", path: activate,
			body: `{"license_key":"` + revoked + `","device_id":"d","product_id":"viewer"}`, code: 40304},
		{name: "state before limit", method: "POST", path: activate,
			body: `{"license_key":"` + fullSuspended + `","device_id":"new"}`, code: 40302},
	} {
		a := s.send(c.method, c.path, c.key, c.body, c.headers...)
		if a.code != c.code {
			t.Errorf("%s: got %s, want %d", c.name, a.body, c.code)
		}
		checkCommonHeaders(t, a)
	}
}

// Records of another account or mode get the same response as missing records, byte for byte.
func TestIsolation(t *testing.T) {
	t.Parallel()
	s := newService(t)
	order := s.order("0")
	orderNo, key := order.text("order_no"), order.text("license_key")
	s.activate(key, "d1").must(t, 0)
	absentOrder := orderNo[:len(orderNo)-1] + "0"
	if absentOrder == orderNo {
		absentOrder = orderNo[:len(orderNo)-1] + "1"
	}
	same := []string{"X-Request-Id", "same"}
	for _, c := range []struct {
		method, path, absent string
		code                 int
	}{
		{"GET", "/v1/licenses/" + key, "/v1/licenses/" + absentKey(), 40401},
		{"GET", "/v1/licenses/" + key + "/devices", "/v1/licenses/" + absentKey() + "/devices", 40401},
		{"DELETE", "/v1/licenses/" + key + "/devices/d1", "/v1/licenses/" + absentKey() + "/devices/d1", 40401},
		{"POST", "/v1/licenses/" + key + "/suspend", "/v1/licenses/" + absentKey() + "/suspend", 40401},
		{"POST", "/v1/licenses/" + key + "/reinstate", "/v1/licenses/" + absentKey() + "/reinstate", 40401},
		{"POST", "/v1/licenses/" + key + "/revoke", "/v1/licenses/" + absentKey() + "/revoke", 40401},
		{"GET", "/v1/products/editor", "/v1/products/none", 40404},
		{"DELETE", "/v1/products/editor", "/v1/products/none", 40404},
		{"GET", "/v1/orders/" + orderNo, "/v1/orders/" + absentOrder, 40403},
		{"GET", "/v1/orders/" + orderNo, "/v1/orders/x", 40403},
		{"GET", "/v1/keys/" + keyID(keyAll), "/v1/keys/key_none", 40407},
		{"DELETE", "/v1/keys/" + keyID(keyAll), "/v1/keys/x", 40407},
		{"POST", "/v1/keys/" + keyID(keyAll) + "/rotate", "/v1/keys/key_none/rotate", 40407},
		{"POST", "/v1/orders/" + orderNo + "/cancel", "/v1/orders/" + absentOrder + "/cancel", 40403},
		{"PUT", "/v1/orders/" + orderNo + "/sandbox_payment", "/v1/orders/" + absentOrder + "/sandbox_payment", 40403},
		{"POST", "/v1/orders/" + orderNo + "/refund", "/v1/orders/" + absentOrder + "/refund", 40403},
	} {
		for _, stranger := range []string{keyOther, keyLive} {
			theirs := s.send(c.method, c.path, stranger, "", same...).must(t, c.code)
			absent := s.send(c.method, c.absent, stranger, "", same...).must(t, c.code)
			if wireForm(theirs) != wireForm(absent) {
				t.Errorf("%s %s: a stranger sees a difference:\n%s\n%s", c.method, c.path, wireForm(theirs),
					wireForm(absent))
			}
		}
	}
	body := func(key string) string { return `{"license_key":"` + key + `","device_id":"d1"}` }
	for _, stranger := range []string{keyOther, keyLive} {
		for _, verb := range []string{"activate", "validate", "deactivate"} {
			theirs := s.send("POST", "/v1/licenses/"+verb, stranger, body(key), same...).must(t, 40401)
			absent := s.send("POST", "/v1/licenses/"+verb, stranger, body(absentKey()), same...).must(t, 40401)
			if wireForm(theirs) != wireForm(absent) {
				t.Errorf("%s: a stranger sees a difference:\n%s\n%s", verb, wireForm(theirs), wireForm(absent))
			}
		}
		for _, c := range []struct{ method, path, body string }{
			{"PATCH", "/v1/licenses/%s", `{"max_devices":9,"metadata":{"a":1}}`},
			{"POST", "/v1/licenses/%s/renew", `{"expires_at":"2031-01-01T00:00:00Z"}`},
			{"POST", "/v1/licenses/%s/renew", `{"extend":"P1M"}`},
		} {
			theirs := s.send(c.method, fmt.Sprintf(c.path, key), stranger, c.body, same...).must(t, 40401)
			absent := s.send(c.method, fmt.Sprintf(c.path, absentKey()), stranger, c.body, same...).must(t, 40401)
			if wireForm(theirs) != wireForm(absent) {
				t.Errorf("%s %s: a stranger sees a difference:\n%s\n%s", c.method, c.path, wireForm(theirs),
					wireForm(absent))
			}
		}
	}
	s.send("POST", "/v1/licenses/activate", keyAll, body(key)).must(t, 0)
}

// Every route that needs an API key refuses other credentials, and says how to send a key.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key, changed := s.license(), s.license()
	keyed := []wire{
		{method: "POST", path: "/v1/licenses", body: "{}"},
		{method: "GET", path: "/v1/licenses/" + key},
		{method: "GET", path: "/v1/licenses/" + key + "/devices"},
		{method: "DELETE", path: "/v1/licenses/" + key + "/devices/d"},
		{method: "PATCH", path: "/v1/licenses/" + changed, body: "{}"},
		{method: "POST", path: "/v1/licenses/" + changed + "/suspend"},
		{method: "POST", path: "/v1/licenses/" + changed + "/reinstate"},
		{method: "POST", path: "/v1/licenses/" + changed + "/revoke"},
		{method: "POST", path: "/v1/licenses/" + changed + "/renew", body: `{"extend":"P1M"}`},
		{method: "PUT", path: "/v1/products/editor", body: "{}"},
		{method: "GET", path: "/v1/products/editor"},
		{method: "DELETE", path: "/v1/products/editor"},
		{method: "POST", path: "/v1/orders", body: "{}"},
		{method: "GET", path: "/v1/orders/x"},
		{method: "POST", path: "/v1/redactions", body: redactAnna},
		{method: "POST", path: "/v1/keys", body: "{}"},
		{method: "GET", path: "/v1/keys/x"},
		{method: "DELETE", path: "/v1/keys/key_none"},
		{method: "POST", path: "/v1/keys/key_none/rotate"},
		{method: "POST", path: "/v1/orders/ord_0000000000000000000000000000/cancel"},
		{method: "POST", path: "/v1/orders/ord_0000000000000000000000000000/refund"},
	}
	activation := activation(key, `"device_id":"d"`)
	bad := []string{"", " ", "Bearer", "Bearer ", "bearer lk_test_unknown", "Basic " + keyAll, keyAll,
		"Bearer " + keyAll + " x",
		"Bearer " + keyExpired, "Bearer " + keyRevoked, "Bearer\t" + keyAll}
	for _, w := range append(keyed, activation) {
		for _, credentials := range bad {
			a := s.send(w.method, w.path, "", w.body, "Authorization", credentials)
			if a.code != 40100 || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%s %s with %q: %s", w.method, w.path, credentials, a.body)
			}
		}
	}
	for _, w := range keyed {
		s.send(w.method, w.path, "", w.body).must(t, 40100)
		for _, good := range []string{"Bearer " + keyAll, "bEARER " + keyAll, "Bearer   " + keyAll} {
			if a := s.send(w.method, w.path, "", w.body, "Authorization", good); a.status == 401 {
				t.Errorf("%s %s with %q: %s", w.method, w.path, good, a.body)
			}
		}
	}
	s.send(activation.method, activation.path, "", activation.body).must(t, 0)

	s.store.breakWith(licensing.ErrUnavailable, nil)
	for _, w := range keyed {
		a := s.send(w.method, w.path, keyAll, w.body).must(t, 50300)
		if a.header.Get("Retry-After") == "" {
			t.Errorf("%s %s: no Retry-After", w.method, w.path)
		}
	}
}
