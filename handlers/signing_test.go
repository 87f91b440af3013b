package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"licet/handlers"
	"licet/licensing"
)

func TestSignedRequests(t *testing.T) {
	t.Parallel()
	s := newSigningService(t)
	order := s.order("5")
	orderNo := order.text("order_no")
	license := s.license()
	f := func(name string, code int, w wire) {
		t.Helper()
		a := s.sendWire(w)
		if a.code != code {
			t.Errorf("%s: got %s, want %d", name, a.body, code)
		}
		if want := `Bearer realm="licet"`; a.status == http.StatusUnauthorized &&
			a.header.Get("WWW-Authenticate") != want {
			t.Errorf("%s: WWW-Authenticate: %q", name, a.header.Get("WWW-Authenticate"))
		}
		checkCommonHeaders(t, a)
	}
	f("POST", 0, s.signedOrder().sign())
	f("POST again", 0, s.signedOrder().sign())
	f("GET", 0, s.lookupOf(orderNo, "").sign())
	query := wire{method: "GET", path: "/v1/orders?limit=2&buyer_email=a%2Bb%40example.com", key: keySigner}
	f("query", 0, s.draft(query, "key_signer").sign())
	f("empty query", 0, s.lookupOf(orderNo, "?").sign())
	f("POST without a body", 40000,
		s.draft(wire{method: "POST", path: "/v1/orders", key: keySigner}, "key_signer").sign())
	for _, path := range []string{
		"/v1/licenses/" + license + "/devices/a%2Fb%2fc%20%C3%A4",
		"/v1/licenses/" + strings.ToLower(license) + "/devices/%64",
		"/v1/licenses/%4C" + license[1:] + "/devices/a+b;c=1,2",
	} {
		f(path, 0, s.draft(wire{method: "DELETE", path: path, key: keySigner}, "key_signer").sign())
	}
	activation := s.draft(wire{method: "POST", path: "/v1/licenses/activate", key: keySigner,
		body: `{"license_key":"` + license + `","device_id":"d"}`}, "key_signer")
	f("open route", 0, activation.sign())
	activation.secret = "another"
	f("open route, wrong", 40101, activation.sign())

	// More components than required.
	more := s.signedOrder()
	more.headers = append(more.headers, "X-Twice", "a", "X-Twice", " b ", "Content-Type", "-", "Content-Type",
		"application/json; charset=UTF-8", "X-Empty", "")
	more.covered = append(more.covered, "x-twice", "content-type", "x-empty")
	more.more = fmt.Sprintf(`;expires=%d;alg="hmac-sha256";nonce="8NS";tag="shop"`, more.created+60)
	f("more covered", 0, more.sign())

	// Keys that require signatures, and keys with two secrets.
	w := wire{method: "GET", path: "/v1/orders/" + orderNo, key: keyDemands}
	f("demanded and sent", 0, s.draft(w, "key_demands").sign())
	f("demanded and not sent", 40102, w)
	f("demanded on an open route", 40102,
		wire{method: "POST", path: "/v1/licenses/activate", key: keyDemands, body: "{}"})
	f("demanded, and before the query", 40102,
		wire{method: "GET", path: "/v1/licenses/" + license + "/devices?limit=x", key: keyDemands})
	f("header without a value", 40102,
		wire{method: "GET", path: w.path, key: keyDemands, headers: []string{"Signature-Input", "", "Signature", ""}})
	w.key = keyRotated
	rotated := s.draft(w, "key_rotated")
	f("secret before", 0, rotated.sign())
	rotated.secret = s.secret("key_rotated", 2)
	f("secret now", 0, rotated.sign())
	rotated.secret = s.secret("key_rotated", 3)
	f("secret to come", 40101, rotated.sign())
	s.clock.advance(time.Hour)
	rotated = s.draft(w, "key_rotated")
	f("secret before, when its time is over", 40101, rotated.sign())
	rotated.secret = s.secret("key_rotated", 2)
	f("secret now, an hour later", 0, rotated.sign())
}

// The server refuses requests that were changed after signing, and requests with an insufficient signature. The refusal
// has no effect.
func TestTamperedRequests(t *testing.T) {
	t.Parallel()
	s := newSigningService(t)
	orderNo := s.order("5").text("order_no")
	writes := s.store.written()
	const body = orderBody
	for _, c := range []struct {
		name   string
		draft  func(*draft) // before signing
		tamper func(*wire)  // after signing
	}{
		{"method", nil, func(w *wire) { w.method = "GET"; w.path += "/" + orderNo; w.body = "" }},
		{"path", nil, func(w *wire) { w.path = "/v1/licenses" }},
		{"query added", nil, func(w *wire) { w.path += "?a=1" }},
		{"empty query added", nil, func(w *wire) { w.path += "?" }},
		{"query dropped", func(d *draft) { d.path += "?a=1"; d.uri += "?a=1" },
			func(w *wire) { w.path = "/v1/orders" }},
		{"query in another order", func(d *draft) { d.path += "?a=1&b=2"; d.uri += "?a=1&b=2" },
			func(w *wire) { w.path = "/v1/orders?b=2&a=1" }},
		{"percent-encoding", func(d *draft) { *d = *s.lookupOf(orderNo, "") },
			func(w *wire) { w.path = "/v1/orders/%6F" + orderNo[1:] }},
		{"percent-encoding in capitals", func(d *draft) { *d = *s.lookupOf("a%2fb", "") },
			func(w *wire) { w.path = "/v1/orders/a%2Fb" }},
		{"API key", nil, func(w *wire) { w.key = keyDemands }},
		{"API key, sent otherwise", nil, func(w *wire) { w.key = ""; w.set("Authorization", "Bearer  "+keySigner) }},
		{"body", nil, func(w *wire) { w.body = strings.Replace(body, "1", "2", 1) }},
		{"a blank in the body", nil, func(w *wire) { w.body += " " }},
		{"body and its digest", nil, func(w *wire) { w.body += " "; w.set("Content-Digest", digest(w.body)) }},
		{"digest", func(d *draft) { d.set("Content-Digest", digest("another")) }, nil},
		{"digest of an unknown kind", func(d *draft) { d.set("Content-Digest", "md5=:AAAA:") }, nil},
		{"no digest", func(d *draft) { d.drop("content-digest") }, nil},
		{"digest not covered", func(d *draft) { d.covered = without(d.covered, "content-digest") }, nil},
		{"digest dropped", nil, func(w *wire) { w.drop("Content-Digest") }},
		{"digest sent twice", nil, func(w *wire) { w.headers = append(w.headers, "Content-Digest", digest(w.body)) }},
		{"Idempotency-Key", nil, func(w *wire) { w.set("Idempotency-Key", "k2") }},
		{"no Idempotency-Key", func(d *draft) { d.drop("idempotency-key") }, nil},
		{"Idempotency-Key not covered", func(d *draft) { d.covered = without(d.covered, "idempotency-key") }, nil},
		{"Idempotency-Key dropped", nil, func(w *wire) { w.drop("Idempotency-Key") }},
		{"@method not covered", func(d *draft) { d.covered = without(d.covered, "@method") }, nil},
		{"@target-uri not covered", func(d *draft) { d.covered = without(d.covered, "@target-uri") }, nil},
		{"the path instead of @target-uri", func(d *draft) { d.covered[1] = "@path" }, nil},
		{"authorization not covered", func(d *draft) { d.covered = without(d.covered, "authorization") }, nil},
		{"nothing covered", func(d *draft) { d.covered = nil }, nil},
		{"a header covered that is not sent", func(d *draft) { d.covered = append(d.covered, "x-none") }, nil},
		{"covered twice", func(d *draft) { d.covered = append(d.covered, "@method") }, nil},
		{"for the address behind a proxy", func(d *draft) { d.uri = "http://" + s.addr + d.path }, nil},
		{"for another host", func(d *draft) { d.uri = "https://pay.example.org" + d.path }, nil},
		{"for http", func(d *draft) { d.uri = "http" + strings.TrimPrefix(d.uri, "https") }, nil},
		{"keyid of another key", func(d *draft) { d.keyID = "key_demands" }, nil},
		{"keyid and secret of another key",
			func(d *draft) { d.keyID, d.secret = "key_demands", s.secret("key_demands", 1) }, nil},
		{"the API key as keyid", func(d *draft) { d.keyID = keySigner }, nil},
		{"no keyid that is ours", func(d *draft) { d.keyID = "" }, nil},
		{"secret of another key", func(d *draft) { d.secret = s.secret("key_demands", 1) }, nil},
		{"the API key as secret", func(d *draft) { d.secret = keySigner }, nil},
		{"too old", func(d *draft) { d.created -= 300 }, nil}, // and 678 ms
		{"too early", func(d *draft) { d.created += 301 }, nil},
		{"expired", func(d *draft) { d.more = fmt.Sprintf(";expires=%d", d.created) }, nil}, // 678 ms ago
		{"alg", func(d *draft) { d.more = `;alg="rsa-v1_5-sha256"` }, nil},
		{"alg dropped", func(d *draft) { d.more = `;alg="hmac-sha256"` },
			func(w *wire) { w.replace(`;alg="hmac-sha256"`, "") }},
		{"created moved", nil, func(w *wire) { w.replace(";created=1", ";created=2") }},
		{"tag added", nil, func(w *wire) { w.replace(";keyid=", `;tag="x";keyid=`) }},
		{"order of parameters", nil, func(w *wire) {
			w.replace(fmt.Sprintf(";created=%d;keyid=\"key_signer\"", s.clock.Now().Unix()),
				fmt.Sprintf(";keyid=\"key_signer\";created=%d", s.clock.Now().Unix()))
		}},
		{"order of components", nil, func(w *wire) { w.replace(`"@method" "@target-uri"`, `"@target-uri" "@method"`) }},
		{"Signature dropped", nil, func(w *wire) { w.drop("Signature") }},
		{"Signature-Input dropped", nil, func(w *wire) { w.drop("Signature-Input") }},
		{"Signature cut", nil, func(w *wire) { w.replace("sig1=:", "sig1=:AAAA") }},
		{"Signature no byte sequence", nil, func(w *wire) { w.set("Signature", "sig1=abc") }},
		{"labels differ", nil, func(w *wire) { w.replace("sig1=:", "sig2=:") }},
		{"as draft-cavage had it", nil, func(w *wire) {
			w.drop("Signature-Input")
			w.set("Signature", `keyId="key_signer",algorithm="hmac-sha256",headers="(request-target)",signature="AAAA"`)
		}},
		{"an invalid second signature", nil, func(w *wire) {
			d := s.signedOrder()
			d.label, d.secret = "sig2", "another"
			second := d.sign()
			w.headers = append(w.headers, second.headers[len(second.headers)-4:]...)
		}},
	} {
		d := s.signedOrder()
		if c.draft != nil {
			c.draft(d)
		}
		w := d.sign()
		if c.tamper != nil {
			c.tamper(&w)
		}
		a := s.sendWire(w)
		if a.code != 40101 || a.reason != "invalid_signature" {
			t.Errorf("%s: got %d %s", c.name, a.status, a.body)
			continue
		}
		t.Logf("%s: %v", c.name, a.raw["message"])
		for _, secret := range []string{keySigner, s.secret("key_signer", 1), "k1"} {
			if strings.Contains(a.body, secret) {
				t.Errorf("%s: the answer shows a secret: %s", c.name, a.body)
			}
		}
	}
	if now := s.store.written(); now != writes {
		t.Errorf("%d writes, and there were %d before", now, writes)
	}
}

// Components without cover, and signatures of others, change nothing.
func TestUntouchedSignatures(t *testing.T) {
	t.Parallel()
	s := newSigningService(t)
	for name, tamper := range map[string]func(*wire){
		"nothing": func(*wire) {},
		"header added": func(w *wire) {
			w.headers = append(w.headers, "X-Forwarded-For", "10.0.0.1", "Forwarded", "host=evil.example.com")
		},
		"a proxy's signature": func(w *wire) {
			w.join("Signature-Input", `proxy=("x-none");keyid="proxy"`)
			w.join("Signature", "proxy=:AAAA:")
		},
		"the same on its lines": func(w *wire) {
			w.headers = append(w.headers, "Signature-Input", `proxy=();keyid="p"`, "Signature", "proxy=:AAAA:")
		},
		"two of ours": func(w *wire) {
			d := s.signedOrder()
			d.label, d.more = "sig2", `;nonce="2"`
			second := d.sign()
			w.headers = append(w.headers, second.headers[len(second.headers)-4:]...)
		},
	} {
		w := s.signedOrder().sign()
		tamper(&w)
		s.sendWire(w).must(t, 0)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	// The request of an end user has no API key to verify a signature with.
	d := s.draft(wire{method: "POST", path: "/v1/licenses/activate", body: "{}"}, "key_signer")
	s.sendWire(d.sign()).must(t, 40101)
	s.sendWire(wire{method: "GET", path: "/livez", headers: []string{"Signature-Input", "x", "Signature", "x"}}).must(t,
		0)
}

// Errors of credentials win over an invalid signature. An invalid signature wins over errors of the scope and of the
// request itself.
func TestWhenSignaturesAreVerified(t *testing.T) {
	t.Parallel()
	s := newSigningService(t)
	bad := []string{"Signature-Input", "x", "Signature", "x"}
	for _, c := range []struct {
		w    wire
		code int
	}{
		{wire{method: "POST", path: "/v1/nothing", key: keySigner, headers: bad}, 40400},
		{wire{method: "PUT", path: "/v1/orders", key: keySigner, headers: bad}, 40500},
		{wire{method: "POST", path: "/v1/orders", key: keySigner, headers: bad, body: strings.Repeat("x", 70<<10)},
			41300},
		{wire{method: "POST", path: "/v1/orders", key: keyExpired, headers: bad}, 40100},
		{wire{method: "POST", path: "/v1/orders", headers: bad}, 40100},
		{wire{method: "POST", path: "/v1/orders", key: keyNarrow, headers: bad}, 40101},
		{wire{method: "POST", path: "/v1/orders", key: keySigner,
			headers: append(bad, "Content-Type", "-", "Content-Type", "text/plain"), body: "{"}, 40101},
		{wire{method: "GET", path: "/v1/licenses/x", key: keySigner, headers: bad}, 40101},
		{wire{method: "GET", path: "/v1/licenses/x", key: keyDemands}, 40102},
	} {
		if a := s.sendWire(c.w); a.code != c.code {
			t.Errorf("%s %s: got %s, want %d", c.w.method, c.w.path, a.body, c.code)
		}
	}
}

// A node whose ring lacks the master key of an API key can't verify a signature. That is not the caller's fault, and
// another node may have the master key.
func TestSignedBeforeTheRingIsThere(t *testing.T) {
	t.Parallel()
	s := newSigningService(t)
	key := licensing.APIKey{ID: "key_signer", Owner: licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test},
		Scopes: []string{"*"}, SecretVersion: 1, MasterID: "m2"}
	s.store.addKey(keySigner, key)
	refused := s.sendWire(s.signedOrder().sign()).must(t, 50300)
	if refused.header.Get("Retry-After") == "" || !strings.Contains(refused.body, `"retryable":true`) ||
		strings.Contains(refused.body, "m2") {
		t.Errorf("refused with %s", refused.body)
	}
	if !strings.Contains(s.log.String(), `lacks the key \"m2\"`) {
		t.Errorf("the log does not report the missing master key:\n%s", s.log)
	}
	s.sendWire(newOrder(orderBody)).must(t, 0)
}

// A public URL may have a path, the default port of its scheme, and capitals.
func TestSignedForThePublicURL(t *testing.T) {
	t.Parallel()
	s := newSigningService(t)
	for setting, base := range map[string]string{
		"https://Licenses.Example.com:443/shop/": "https://licenses.example.com/shop",
		"http://Licenses.example.com:8080":       "http://licenses.example.com:8080",
	} {
		config := s.config
		config.PublicURL = setting
		addr := serve(t, handlers.New(config))
		d := s.signedOrder()
		d.uri = base + d.path
		w := d.sign()
		s.sendTo(addr, w.method, w.path, w.key, w.body, w.headers...).must(t, 0)
	}
}

// A signature covers the request as sent: the case of names, repeated lines, a target with a host, chunks and folded
// lines. It does not cover the header Host, which in these tests never names the public URL.
func TestSignedOnTheWire(t *testing.T) {
	t.Parallel()
	s := newSigningService(t)
	d := s.signedOrder()
	d.headers = append(d.headers, "X-Twice", "a", "X-Twice", "b")
	d.covered = append(d.covered, "x-twice")
	w := d.sign()
	head := func(line string) string {
		return line + "\r\nHost: x\r\nContent-Type: application/json\r\nauthorization: Bearer " + w.key + "\r\n"
	}
	var fields strings.Builder
	for i := 0; i < len(w.headers); i += 2 {
		fmt.Fprintf(&fields, "%s:\t%s  \r\n", strings.ToUpper(w.headers[i]), w.headers[i+1])
	}
	length := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(w.body))
	const last = "Connection: close\r\n"
	for name, c := range map[string]struct {
		sent string
		code int
	}{
		"spelling": {head("POST /v1/orders HTTP/1.1") + last + fields.String() + length + w.body, 0},
		"absolute": {head("POST http://10.0.0.7:8080/v1/orders HTTP/1.1") + last + fields.String() + length +
			w.body, 0},
		"chunks": {head("POST /v1/orders HTTP/1.1") + last + fields.String() +
			"Transfer-Encoding: chunked\r\n\r\n" + chunk(w.body[:7]) + chunk(w.body[7:]) + "0\r\n\r\n", 0},
		"folded": {head("POST /v1/orders HTTP/1.1") + last + fields.String() + "X-Folded: a\r\n b\r\n" +
			length + w.body, 40000},
		"method": {head("post /v1/orders HTTP/1.1") + last + fields.String() + length + w.body, 40500},
		"lines reversed": {head("POST /v1/orders HTTP/1.1") + last + strings.Replace(fields.String(),
			"X-TWICE:\ta  \r\nX-TWICE:\tb", "X-TWICE:\tb  \r\nX-TWICE:\ta", 1) + length + w.body, 40101},
	} {
		answers, _ := s.exchangeRaw(c.sent)
		if len(answers) != 1 || answers[0].code != c.code {
			t.Errorf("%s: %+v, want %d", name, answers, c.code)
		}
	}
}
