package handlers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"licet/licensing"
)

func redacting(body string) wire {
	return wire{method: "POST", path: "/v1/redactions", key: keyAll, body: body}
}

const redactAnna = `{"buyer_email":"ANNA@example.com"}`

// annas makes an order of a buyer, Anna, with much personal data.
func (s *fixture) annas(amount string) answer {
	s.t.Helper()
	return s.sendWire(newOrder(`{"product_id":"editor","amount":`+amount+`,"currency":"USD","description":"for Anna",
		"buyer_email":"Anna@example.com","metadata":{"crm":"Anna"},"success_url":"https://shop.example.com/thanks"}`)).must(s.t, 0)
}

// TestRedactBuyer redacts a buyer's orders and licenses. The rest of their data stays.
func TestRedactBuyer(t *testing.T) {
	t.Parallel()
	s := newService(t)
	free, unpaid, canceled := s.annas("0"), s.annas("5"), s.annas("7")
	s.changeOrder(canceled, "cancel", `{"reason":"Anna said so"}`).must(t, 0)
	key := free.text("license_key")
	s.activate(key, "laptop").must(t, 0)
	s.send("PATCH", "/v1/licenses/"+key, keyAll, `{"metadata":{"seat":"Anna"}}`).must(t, 0)
	s.change(key, "suspend", `{"reason":"Anna said so"}`).must(t, 0)

	shown := []wire{s.lookup(free), s.lookup(unpaid), s.lookup(canceled),
		{method: "GET", path: "/v1/licenses/" + key, key: keyAll}}
	var want []string
	removed := strings.NewReplacer(
		`"description":"for Anna"`, `"description":null`, `"buyer_email":"Anna@example.com"`, `"buyer_email":null`,
		`"metadata":{"crm":"Anna"}`, `"metadata":{}`, `"metadata":{"seat":"Anna"}`, `"metadata":{}`,
		`"state_reason":"Anna said so"`, `"state_reason":null`)
	for _, w := range shown {
		before := s.sendWire(w).must(t, 0).body
		if !strings.Contains(before, "Anna") {
			t.Fatalf("nothing to remove in %s", before)
		}
		want = append(want, removed.Replace(before))
	}
	done := s.sendWire(redacting(redactAnna)).must(t, 0)
	if done.status != 200 || fmt.Sprint(done.data) != "map[complete:true licenses:1 orders:3]" {
		t.Errorf("answered %d %s", done.status, done.body)
	}
	for i, w := range shown {
		if after := s.sendWire(w).must(t, 0).body; after != want[i] || strings.Contains(after, "Anna") {
			t.Errorf("after:\n%s\nwant\n%s", after, want[i])
		}
	}
	for _, path := range []string{"/v1/orders", "/v1/licenses"} {
		if listed := s.send("GET", path+"?buyer_email=anna@example.com", keyAll, "").must(t,
			0); strings.Contains(listed.body, "editor") {
			t.Errorf("%s: %s", path, listed.body)
		}
	}
	page := s.send("GET", strings.TrimPrefix(unpaid.text("pay_url"), publicURL), "", "").mustPage(t, 200)
	if strings.Contains(page.body, "Anna") {
		t.Errorf("the pay page:\n%s", page.body)
	}
	s.pay(unpaid)
	s.activate(s.sendWire(s.lookup(unpaid)).must(t, 0).text("license_key"), "laptop").must(t, 0)
	if log := strings.ToLower(s.log.String()); strings.Contains(log, "anna") {
		t.Errorf("the log:\n%s", log)
	}
}

// TestRedactionsAreTheOwners: a redaction neither changes nor counts orders of another account or mode.
func TestRedactionsAreTheOwners(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.annas("5")
	for _, stranger := range []string{keyOther, keyLive} {
		done := s.send("POST", "/v1/redactions", stranger, redactAnna).must(t, 0)
		if fmt.Sprint(done.data) != "map[complete:true licenses:0 orders:0]" {
			t.Errorf("answered %s", done.body)
		}
	}
	if done := s.sendWire(redacting(redactAnna)).must(t,
		0); fmt.Sprint(done.data) != "map[complete:true licenses:0 orders:1]" {
		t.Errorf("answered %s", done.body)
	}
}

// TestRedactionScopes: a redaction needs both scopes, and not only their :read forms.
func TestRedactionScopes(t *testing.T) {
	t.Parallel()
	s := newService(t)
	acme := licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}
	for scopes, lacks := range map[string]string{
		"orders licenses": "", "*": "", "licenses keys orders": "",
		"orders": "licenses", "licenses": "orders", "orders licenses:read": "licenses",
		"orders:read licenses":      "orders",
		"orders:read licenses:read": "orders", "products keys webhooks events": "orders",
	} {
		s.annas("5")
		s.store.addKey(testKey(scopes), licensing.APIKey{Owner: acme, Scopes: strings.Fields(scopes)})
		done := s.send("POST", "/v1/redactions", testKey(scopes), redactAnna)
		switch {
		case lacks == "" && done.code == 0 && done.data["orders"] != 0.0:
		case lacks != "" && done.code == 40300 && strings.Contains(done.body, fmt.Sprintf("%q", lacks)[1:len(lacks)+1]):
		default:
			t.Errorf("with %s: %s", scopes, done.body)
		}
	}
}

// TestBadRedactions: invalid requests change nothing.
func TestBadRedactions(t *testing.T) {
	t.Parallel()
	s := newService(t)
	made := s.annas("5")
	before := s.sendWire(s.lookup(made)).body
	good := redacting(redactAnna)
	for name, c := range map[string]struct {
		wire
		code  int
		field string
	}{
		"no key":         {good.with(""), 40100, ""},
		"an expired key": {good.with(keyExpired), 40100, ""},
		"reading scopes": {good.with(keyReadOnly), 40300, ""},
		"one scope":      {good.with(keyKeys), 40300, ""},
		"no body":        {redacting(""), 40000, ""},
		"not JSON":       {redacting(`{"buyer_email":`), 40000, ""},
		"an array":       {redacting(`["anna@example.com"]`), 40000, ""},
		"trailing bytes": {redacting(redactAnna + "{}"), 40000, ""},
		"a number":       {redacting(`{"buyer_email":1}`), 40000, ""},
		"many addresses": {redacting(`{"buyer_email":["anna@example.com"]}`), 40000, ""},
		"twice": {redacting(`{"buyer_email":"anna@example.com","buyer_email":"b@example.com"}`), 40000,
			""},
		"an unknown member": {redacting(`{"buyer_email":"anna@example.com","order_no":"x"}`), 40000, ""},
		"bad UTF-8":         {redacting("{\"buyer_email\":\"anna\xff@example.com\"}"), 40000, ""},
		"no address":        {redacting(`{}`), 42200, "buyer_email"},
		"null":              {redacting(`{"buyer_email":null}`), 42200, "buyer_email"},
		"an empty address":  {redacting(`{"buyer_email":""}`), 42200, "buyer_email"},
		"no e-mail address": {redacting(`{"buyer_email":"anna"}`), 42200, "buyer_email"},
		"a pattern":         {redacting(`{"buyer_email":"*"}`), 42200, "buyer_email"},
		"a name with it":    {redacting(`{"buyer_email":"Anna <anna@example.com>"}`), 42200, "buyer_email"},
		"a long address": {redacting(`{"buyer_email":"` + strings.Repeat("a", 250) + `@example.com"}`), 42200,
			"buyer_email"},
		"an empty key": {good.once(""), 42200, "Idempotency-Key"},
		"GET":          {wire{method: "GET", path: "/v1/redactions", key: keyAll}, 40500, ""},
		"DELETE":       {wire{method: "DELETE", path: "/v1/redactions", key: keyAll}, 40500, ""},
		"a path below": {wire{method: "POST", path: "/v1/redactions/x", key: keyAll, body: redactAnna}, 40400,
			""},
		"an address in path": {wire{method: "GET", path: "/v1/redactions?buyer_email=anna@example.com", key: keyAll},
			40500, ""},
	} {
		a := s.sendWire(c.wire)
		if a.code != c.code || c.field != "" && (len(a.fields) != 1 || a.fields[c.field] == "") {
			t.Errorf("%s: %s, want %d", name, a.body, c.code)
		}
		if strings.Contains(a.body, "anna") {
			t.Errorf("%s: the answer repeats the address: %s", name, a.body)
		}
	}
	if after := s.sendWire(s.lookup(made)).body; after != before {
		t.Errorf("the orders changed\n%s\n%s", before, after)
	}
}

// TestRedactionUnderAKey: a replayed redaction does not touch later orders. Without an Idempotency-Key,
// too, an unknown outcome is retryable.
func TestRedactionUnderAKey(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.annas("0")
	w := redacting(redactAnna).once("k1")
	first := s.sendWire(w).must(t, 0)
	s.clock.advance(time.Hour)
	later := s.annas("5")
	again := s.sendWire(w).must(t, 0)
	if first.header.Get("Idempotent-Replayed") != "" || again.header.Get("Idempotent-Replayed") != "true" ||
		fmt.Sprint(again.data) != "map[complete:true licenses:1 orders:1]" ||
		fmt.Sprint(first.data) != fmt.Sprint(again.data) || again.status != 200 {
		t.Errorf("first %s, again %d %v %s", first.body, again.status, again.header, again.body)
	}
	if s.sendWire(s.lookup(later)).must(t, 0).data["buyer_email"] == nil {
		t.Error("a replay has redacted a later order")
	}
	s.sendWire(redacting(`{"buyer_email":"bob@example.com"}`).once("k1")).must(t, 42201)
	for _, unknown := range []wire{redacting(redactAnna), redacting(redactAnna).once("k2")} {
		s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
		failed := s.sendWire(unknown).must(t, 50400)
		if retryable := failed.raw["error"].(map[string]any)["retryable"]; retryable != true {
			t.Errorf("an unknown outcome: %s", failed.body)
		}
		s.store.breakWith(nil, nil)
		s.sendWire(unknown).must(t, 0)
	}
	s.store.breakWith(nil, errors.New("secret"))
	s.annas2()
	s.sendWire(redacting(redactAnna)).must(t, 50000)
}

// annas2 makes an order although the store fails.
func (s *fixture) annas2() {
	s.t.Helper()
	s.store.breakWith(nil, nil)
	s.annas("5")
	s.store.breakWith(nil, errors.New("secret"))
}
