package handlers_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/handlers"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/service"
)

func (s *fixture) createKey(creator, members string) answer {
	s.t.Helper()
	w := newKey(`{"name":"shop",` + members + `}`)
	w.key = creator
	return s.sendWire(w)
}

// TestAPIKeyLife makes an API key with another one, uses it, rotates its secret, and has it revoke
// itself.
func TestAPIKeyLife(t *testing.T) {
	t.Parallel()
	s := newService(t)
	made := s.createKey(keyKeys, `"scopes":["keys","orders:read"]`).must(t, 0)
	id, text, secret := made.text("id"), made.text("api_key"), made.text("api_secret")
	if made.status != 201 || !strings.HasPrefix(text, "lk_test_") || !strings.HasPrefix(secret, "lks_test_") ||
		made.text("account_id") != "acct_acme" || made.text("mode") != "test" || made.data["last_used_at"] != nil {
		t.Fatalf("made %s", made.body)
	}
	wantSecret := func(a answer) {
		t.Helper()
		key := s.store.keyOf(text)
		if want, err := testRing(t).APISecret(&key); err != nil || a.text("api_secret") != want {
			t.Errorf("the secret is %s, want %s, %v", a.text("api_secret"), want, err)
		}
	}
	wantSecret(made)

	// The key has its scopes, and no others.
	s.send("GET", "/v1/orders/x", text, "").must(t, 40403)
	s.send("POST", "/v1/orders", text, "{}").must(t, 40300)
	s.send("GET", "/v1/keys/"+id, text, "").must(t, 0)
	s.send("GET", "/v1/keys/"+id, keyReadOnly, "").must(t, 40300)

	// A new secret: the key itself stays as it is.
	s.clock.advance(time.Minute)
	rotated := s.send("POST", "/v1/keys/"+id+"/rotate", text, `{"overlap":"PT1H"}`).must(t, 0)
	until := s.clock.Now().Add(time.Hour).Format("2006-01-02T15:04:05.000Z")
	if rotated.status != 200 || rotated.data["api_key"] != nil || rotated.text("previous_secret_until") != until {
		t.Errorf("rotated: %s", rotated.body)
	}
	wantSecret(rotated)
	key := s.store.keyOf(text)
	if good, err := testRing(t).APISecrets(&key, s.clock.Now()); err != nil || len(good) != 2 || good[1] != secret {
		t.Errorf("the valid secrets are %v, %v", good, err)
	}
	s.clock.advance(time.Hour)
	if got := s.send("GET", "/v1/keys/"+id, text, "").must(t, 0); got.data["previous_secret_until"] != nil {
		t.Errorf("after the overlap: %s", got.body)
	}

	// Lookups show neither the key nor its secret.
	s.storeKeyUses()
	got := s.send("GET", "/v1/keys/"+id, keyAll, "").must(t, 0)
	if got.text("last_used_at") == "" || got.text("status") != "active" {
		t.Errorf("got %s", got.body)
	}
	for _, member := range []string{"api_key", "api_secret", "hash"} {
		if _, has := got.data[member]; has {
			t.Errorf("%s is shown: %s", member, got.body)
		}
	}

	revoked := s.send("DELETE", "/v1/keys/"+id, text, "").must(t, 0)
	at := revoked.text("revoked_at")
	if at == "" || revoked.text("status") != "revoked" {
		t.Errorf("revoked: %s", revoked.body)
	}
	s.send("GET", "/v1/keys/"+id, text, "").must(t, 40100)
	s.clock.advance(time.Minute)
	again := s.send("DELETE", "/v1/keys/"+id, keyAll, "").must(t, 0)
	if again.text("revoked_at") != at {
		t.Errorf("revoked again: %s", again.body)
	}
	s.send("POST", "/v1/keys/"+id+"/rotate", keyAll, "").must(t, 40407)
	if strings.Contains(s.log.String(), text) || strings.Contains(s.log.String(), secret) {
		t.Error("the log has a secret")
	}
}

// keyOf returns the stored API key of a text.
func (s *memStore) keyOf(text string) licensing.APIKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[keyring.HashAPIKey(text)]
}

// TestAPIKeyExpires uses a key until its time is over.
func TestAPIKeyExpires(t *testing.T) {
	t.Parallel()
	s := newService(t)
	made := s.createKey(keyAll, `"scopes":["orders"],"expires_at":"2030-01-02T04:04:05.678+00:00"`).must(t, 0)
	text, path := made.text("api_key"), "/v1/keys/"+made.text("id")
	s.clock.advance(time.Hour - time.Millisecond)
	s.send("GET", "/v1/orders/x", text, "").must(t, 40403)
	s.clock.advance(time.Millisecond)
	s.send("GET", "/v1/orders/x", text, "").must(t, 40100)
	// Also on a route with optional credentials: credentials that are sent must be valid.
	s.send("POST", "/v1/licenses/activate", text, `{}`).must(t, 40100)
	if got := s.send("GET", path, keyAll, "").must(t, 0); got.text("status") != "expired" {
		t.Errorf("got %s", got.body)
	}
	s.send("POST", path+"/rotate", keyAll, "").must(t, 40407)
	s.send("DELETE", path, keyAll, "").must(t, 0)
}

// TestChildScopes: a new API key gets no scope that its creator lacks.
func TestChildScopes(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, c := range []struct {
		creator []string
		child   string
		lacks   string // empty: it may
	}{
		{[]string{"*"}, `["*"]`, ""},
		{[]string{"*"}, `["orders","keys:read"]`, ""},
		{[]string{"keys", "orders"}, `["keys"]`, ""},
		{[]string{"keys", "orders"}, `["orders:read","keys:read"]`, ""},
		{[]string{"keys", "orders:read"}, `["orders:read"]`, ""},
		{[]string{"keys", "orders:read"}, `["orders"]`, "orders"},
		{[]string{"keys"}, `["keys","licenses","orders:read","licenses"]`, "licenses, orders:read"},
		{licensing.Scopes(), `["orders","licenses","products","webhooks","events","keys"]`, ""},
		{licensing.Scopes(), `["*"]`, "*"}, // * includes future scopes
	} {
		text := testKey("giver")
		s.store.addKey(text,
			licensing.APIKey{Owner: licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}, Scopes: c.creator})
		made := s.createKey(text, `"scopes":`+c.child)
		if c.lacks == "" {
			made.must(t, 0)
			continue
		}
		if problem := made.must(t, 42200).fields["scopes"]; !strings.HasSuffix(problem, "which lacks "+c.lacks) {
			t.Errorf("%v gives %s: %q", c.creator, c.child, problem)
		}
	}
}

// TestRotatingStrongerKeys: an API key with fewer scopes than another can't rotate the other's secret,
// but can revoke it.
func TestRotatingStrongerKeys(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.store.addKey(testKey("all_keys"), licensing.APIKey{
		Owner: licensing.Owner{AccountID: "acct_acme",
			Mode: licensing.Test}, Scopes: licensing.Scopes(), SecretVersion: 1, MasterID: "m1",
	})
	for _, c := range []struct {
		by, scopes string
		lacks      string // empty: it may
	}{
		{keyKeys, `["keys","orders"]`, ""},
		{keyKeys, `["keys:read"]`, ""},
		{keyKeys, `["orders:read","orders","keys"]`, ""},
		{keyKeys, `["licenses"]`, "licenses"},
		{keyKeys, `["events","orders","licenses:read"]`, "events, licenses:read"},
		{keyKeys, `["*"]`, "*"},
		{testKey("all_keys"), `["*"]`, "*"},
		{keyAll, `["*"]`, ""},
	} {
		made := s.createKey(keyAll, `"scopes":`+c.scopes).must(t, 0)
		path := "/v1/keys/" + made.text("id")
		before := s.store.allKeys()
		w := wire{method: "POST", path: path + "/rotate", key: c.by, body: `{"overlap":"PT0S"}`}.once(made.text("id"))
		rotated := s.sendWire(w)
		if c.lacks == "" {
			if rotated.must(t, 0).text("api_secret") == "" {
				t.Errorf("%s rotated %s: %s", c.by, c.scopes, rotated.body)
			}
			continue
		}
		message, _ := rotated.must(t, 40300).raw["message"].(string)
		if !strings.HasSuffix(message, "; your API key lacks "+c.lacks) || s.store.allKeys() != before {
			t.Errorf("%s rotated %s: %s", c.by, c.scopes, rotated.body)
		}
		// The scopes of the caller were the reason: with another API key the same request succeeds.
		w.key = keyAll
		if again := s.sendWire(w).must(t, 0); again.text("api_secret") == "" {
			t.Errorf("then an API key with more scopes: %s", again.body)
		}
		s.send("DELETE", path, c.by, "").must(t, 0)
	}
}

// TestRotatingSigningKeys: an API key that works without signatures can't rotate the secret of an API key that demands
// them, but can revoke it.
func TestRotatingSigningKeys(t *testing.T) {
	t.Parallel()
	s := newSigningService(t)
	demanding := testKey("demanding")
	key := licensing.APIKey{
		ID: "key_demanding", Owner: licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test},
		Scopes: []string{"*"}, SecretVersion: 1, MasterID: "m1", RequireSignature: true,
	}
	s.store.addKey(demanding, key)
	made := s.createKey(keyAll, `"require_signature":true,"scopes":["orders"]`).must(t, 0)
	path := "/v1/keys/" + made.text("id")
	before := s.store.allKeys()
	for id, scopes := range map[string]string{made.text("id"): "orders", key.ID: "*"} {
		refused := s.send("POST", "/v1/keys/"+id+"/rotate", keyAll, "").must(t, 40300)
		if message, _ := refused.raw["message"].(string); !strings.Contains(message, "require_signature") ||
			s.store.allKeys() != before {
			t.Errorf("a key without signatures rotated a signing key with the scope %s: %s", scopes, refused.body)
		}
	}
	d := s.draft(wire{method: "POST", path: path + "/rotate", key: demanding, body: `{"overlap":"PT0S"}`}, key.ID)
	if rotated := s.sendWire(d.sign()).must(t, 0); rotated.text("api_secret") == "" {
		t.Errorf("a signing key rotated another: %s", rotated.body)
	}
	d = s.draft(wire{method: "POST", path: "/v1/keys/" + keyID(keyAll) + "/rotate", key: demanding, body: `{}`}, key.ID)
	d.set("Idempotency-Key", "k2")
	s.sendWire(d.sign()).must(t, 0)
	s.send("DELETE", path, keyAll, "").must(t, 0)
}

// TestAPIKeyBadInput: each invalid request gets its error and changes nothing.
func TestAPIKeyBadInput(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const path = "/v1/keys"
	rotate := path + "/" + keyID(keyAll) + "/rotate"
	many := `["orders"` + strings.Repeat(`,"orders"`, 32) + `]`
	for _, c := range []struct {
		method, path, body string
		code               int
		fields             string // the invalid fields, sorted by name
	}{
		{"POST", path, ``, 40000, ""},
		{"POST", path, `[]`, 40000, ""},
		{"POST", path, `{"name":1}`, 40000, "name"},
		{"POST", path, `{"scopes":"orders"}`, 40000, "scopes"},
		{"POST", path, `{"scopes":["orders",1]}`, 40000, "scopes"},
		{"POST", path, `{"scopes":["orders",null]}`, 40000, "scopes"},
		{"POST", path, `{"scopes":[["orders"]]}`, 40000, "scopes"},
		{"POST", path, `{"scopes":["orders"`, 40000, ""},
		{"POST", path, `{"scopes":["orders",]}`, 40000, ""},
		{"POST", path, `{"scopes":{}}`, 40000, "scopes"},
		{"POST", path, `{"require_signature":"true"}`, 40000, "require_signature"},
		{"POST", path, `{"require_signature":1}`, 40000, "require_signature"},
		{"POST", path, `{"expires_at":1}`, 40000, "expires_at"},
		{"POST", path, `{"name":"a","scopes":["orders"],"mode":"live"}`, 40000, "mode"},
		{"POST", path, `{"name":"a","scopes":["orders"],"scopes":["orders"]}`, 40000, "scopes"},
		{"POST", path, `{}`, 42200, "name scopes"},
		{"POST", path, `{"name":null,"scopes":null}`, 42200, "name scopes"},
		{"POST", path, `{"name":"","scopes":[]}`, 42200, "name scopes"},
		{"POST", path, `{"name":"a\u0000","scopes":[""]}`, 42200, "name scopes"},
		{"POST", path, `{"name":"` + strings.Repeat("ä", 256) + `","scopes":["Orders"]}`, 42200, "name scopes"},
		{"POST", path, `{"name":"a","scopes":["orders:write"]}`, 42200, "scopes"},
		{"POST", path, `{"name":"a","scopes":["*:read"]}`, 42200, "scopes"},
		{"POST", path, `{"name":"a","scopes":["orders:read:read"]}`, 42200, "scopes"},
		{"POST", path, `{"name":"a","scopes":` + many + `}`, 42200, "scopes"},
		{"POST", path, `{"name":"a","scopes":["orders"],"expires_at":"tomorrow"}`, 42200, "expires_at"},
		{"POST", path, `{"name":"a","scopes":["orders"],"expires_at":"2030-01-02T03:04:05.678Z"}`, 42200, "expires_at"},
		// Go's zero time
		{"POST", path, `{"name":"a","scopes":["orders"],"expires_at":"0001-01-01T00:00:00Z"}`, 42200, "expires_at"},
		{"POST", rotate, `[]`, 40000, ""},
		{"POST", rotate, `{`, 40000, ""},
		{"POST", rotate, `{"overlap":24}`, 40000, "overlap"},
		{"POST", rotate, `{"overlap":"PT1H","now":true}`, 40000, "now"},
		{"POST", rotate, `{"overlap":""}`, 42200, "overlap"},
		{"POST", rotate, `{"overlap":"24h"}`, 42200, "overlap"},
		{"POST", rotate, `{"overlap":"P"}`, 42200, "overlap"},
		{"POST", rotate, `{"overlap":"PT"}`, 42200, "overlap"},
		{"POST", rotate, `{"overlap":"P1DT"}`, 42200, "overlap"},
		{"POST", rotate, `{"overlap":"P1M"}`, 42200, "overlap"},
		{"POST", rotate, `{"overlap":"P1Y"}`, 42200, "overlap"},
		{"POST", rotate, `{"overlap":"PT-1H"}`, 42200, "overlap"},
		{"POST", rotate, `{"overlap":"PT0.5H"}`, 42200, "overlap"},
		{"POST", rotate, `{"overlap":"P30DT1S"}`, 42200, "overlap"},
		{"POST", rotate, `{"overlap":"PT9999999H"}`, 42200, "overlap"},
		{"POST", rotate, `{"overlap":"P9999999W"}`, 42200, "overlap"},
		{"POST", path + "/key_none/rotate", `{"overlap":"P31D"}`, 42200, "overlap"},
		{"POST", path + "/key_none/rotate", ``, 40407, ""},
		{"POST", path + "/" + keyID(keyOther) + "/rotate", ``, 40407, ""},
		{"POST", path + "/" + keyID(keyLive) + "/rotate", ``, 40407, ""},
		{"GET", path + "/key_none", ``, 40407, ""},
		{"GET", path + "/" + keyID(keyOther), ``, 40407, ""},
		{"GET", path + "/" + keyID(keyLive), ``, 40407, ""},
		{"GET", path + "/key_%2F..", ``, 40407, ""},
		{"GET", path + "/" + keyAll, ``, 40407, ""},
		{"DELETE", path + "/key_none", ``, 40407, ""},
		{"DELETE", path + "/" + keyID(keyOther), ``, 40407, ""},
		{"DELETE", path + "/key_" + strings.Repeat("x", 100), ``, 40407, ""},
	} {
		before := s.store.allKeys()
		got := s.send(c.method, c.path, keyAll, c.body).must(t, c.code)
		var named []string
		for field := range got.fields {
			named = append(named, field)
		}
		if len(named) != len(strings.Fields(c.fields)) {
			t.Errorf("%s %s %s names %v", c.method, c.path, c.body, named)
		}
		for _, field := range strings.Fields(c.fields) {
			if got.fields[field] == "" {
				t.Errorf("%s %s %s names %v", c.method, c.path, c.body, named)
			}
		}
		if after := s.store.allKeys(); after != before {
			t.Errorf("%s %s %s changed the keys from\n%s to\n%s", c.method, c.path, c.body, before, after)
		}
	}
	for _, good := range []string{`{}`, `{"overlap":null}`, `{"overlap":"P30D"}`, `{"overlap":"P4W"}`,
		`{"overlap":"P1DT2H3M4S"}`, `{"overlap":"PT0S"}`} {
		s.send("POST", rotate, keyAll, good).must(t, 0)
	}
}

// allKeys shows every stored API key.
func (s *memStore) allKeys() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make(map[string]licensing.APIKey)
	for _, key := range s.keys {
		keys[key.ID] = key
	}
	text, err := json.Marshal(keys)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestAPIKeyOnce sends the same requests again: a secret is shown once.
func TestAPIKeyOnce(t *testing.T) {
	t.Parallel()
	s := newService(t)
	w := newKey(`{"name":"shop","scopes":["orders"],"expires_at":"2030-01-02T04:00:00Z"}`).once("k1")
	made := s.sendWire(w).must(t, 0)
	path := "/v1/keys/" + made.text("id")
	rotate := wire{method: "POST", path: path + "/rotate", key: keyAll}.once("k2")
	rotated := s.sendWire(rotate).must(t, 0)
	stored := s.store.allKeys()
	replay := func(w wire, status int) {
		t.Helper()
		a := s.sendWire(w).must(t, 0)
		if a.status != status || a.header.Get("Idempotent-Replayed") != "true" || a.data["api_key"] != nil ||
			a.data["api_secret"] != nil || a.text("id") != made.text("id") {
			t.Errorf("again: %d %s", a.status, a.body)
		}
	}
	replay(w, 201)
	replay(rotate, 200)
	if s.store.allKeys() != stored || rotated.text("api_secret") == "" {
		t.Error("a replay changed something")
	}
	s.sendWire(newKey(`{"name":"other","scopes":["orders"]}`).once("k1")).must(t, 42201)
	s.sendWire(rotation(keyAll, "").once("k2")).must(t, 42201)
	// this error comes before the look-up of the key
	s.send("POST", "/v1/keys/x/rotate", keyAll, "", "Idempotency-Key", "k2").must(t, 42201)
	s.send("POST", "/v1/keys/x/rotate", keyAll, "", "Idempotency-Key", "k3").must(t, 40407)

	// Revoked, and its end long past: the answer shows the key as it is now.
	s.send("DELETE", path, keyAll, "").must(t, 0)
	s.clock.advance(2 * time.Hour)
	replay(w, 201)
	replay(rotate, 200)
	s.sendWire(newKey(w.body)).must(t, 42200)
	s.sendWire(newKey(w.body).once("k3")).must(t, 42200)

	// After a day, a sweep makes the Idempotency-Keys free again.
	s.clock.advance(24 * time.Hour)
	if err := s.node.SweepClaims(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.sendWire(rotation(keyAll, "").once("k2")).must(t, 0)
}

// TestAPIKeyUnknownOutcome: without an Idempotency-Key, a retry could make a second API key. Revoking
// is idempotent.
func TestAPIKeyUnknownOutcome(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
	for _, c := range []struct {
		request   wire
		retryable bool
	}{
		{newKey(`{"name":"shop","scopes":["*"]}`), false},
		{newKey(`{"name":"shop","scopes":["*"]}`).once("k1"), true},
		{rotation(keyAll, ""), false},
		{rotation(keyAll, "").once("k2"), true},
		{wire{method: "DELETE", path: "/v1/keys/" + keyID(keyReadOnly), key: keyAll}, true},
	} {
		failed := s.sendWire(c.request).must(t, 50400)
		if retryable := failed.raw["error"].(map[string]any)["retryable"]; retryable != c.retryable {
			t.Errorf("%s %s: retryable is %v, want %v", c.request.method, c.request.path, retryable, c.retryable)
		}
	}
}

// maxAPIKeys makes a service have a maximum of API keys of an owner.
func maxAPIKeys(most int) []option {
	return []option{func(_ *handlers.Config, n *service.Config) { n.MaxAPIKeys = most }}
}

// TestAPIKeyMaximum: an account has a maximum of usable API keys in each mode. A refusal is not kept under the
// request's Idempotency-Key.
func TestAPIKeyMaximum(t *testing.T) {
	t.Parallel()
	const usable = 3 // keys of the fixture in this mode that are neither revoked nor expired
	s := newService(t, maxAPIKeys(usable+2)...)
	w := newKey(`{"name":"shop","scopes":["orders"]}`).once("k")
	full := func() {
		t.Helper()
		refused := s.sendWire(w).must(t, 40909)
		details := refused.raw["error"].(map[string]any)["details"].(map[string]any)
		if details["max_api_keys"] != 5.0 {
			t.Errorf("refused with %s", refused.body)
		}
	}
	ends := s.clock.Now().Add(time.Hour).Format(time.RFC3339)
	s.createKey(keyAll, `"scopes":["orders"],"expires_at":"`+ends+`"`).must(t, 0)
	last := s.createKey(keyAll, `"scopes":["orders"]`).must(t, 0)
	full()
	full()
	s.createKey(keyOther, `"scopes":["orders"]`).must(t, 0)
	s.createKey(keyLive, `"scopes":["orders"]`).must(t, 0)

	s.clock.advance(time.Hour) // the first one expires
	made := s.sendWire(w).must(t, 0)
	if made.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the refusal was kept: %v", made.header)
	}
	s.sendWire(w).must(t, 0) // a replay, not another key
	w = newKey(w.body).once("k2")
	full()
	s.send("DELETE", "/v1/keys/"+last.text("id"), keyAll, "").must(t, 0)
	s.sendWire(w).must(t, 0)
}

// TestAPIKeyMaximumOfManyPages counts usable API keys among many that are not.
func TestAPIKeyMaximumOfManyPages(t *testing.T) {
	t.Parallel()
	const most = 150
	s := newService(t, maxAPIKeys(most)...)
	acme := licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}
	for i := range 3 * most {
		key := licensing.APIKey{Owner: acme, Scopes: []string{"orders"}}
		if i%3 != 0 {
			key.RevokedAt = s.clock.Now()
		}
		s.store.addKey(fmt.Sprintf("lk_many%03d", i), key)
	}
	s.createKey(keyAll, `"scopes":["orders"]`).must(t, 40909)
	for i := range 4 { // with the fixture's three, one more than the maximum allows
		s.send("DELETE", fmt.Sprintf("/v1/keys/key_many%03d", 3*i), keyAll, "").must(t, 0)
	}
	s.createKey(keyAll, `"scopes":["orders"]`).must(t, 0)
	s.createKey(keyAll, `"scopes":["orders"]`).must(t, 40909)
}

// TestKeysInherit: a key whose creator expires expires with it, or sooner. Requests with a key whose creator must sign
// must be signed too.
func TestKeysInherit(t *testing.T) {
	t.Parallel()
	s := newSigningService(t)
	end := s.clock.Now().Add(time.Hour)
	ending := testKey("ending")
	s.store.addKey(ending, licensing.APIKey{
		Owner: licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}, Scopes: []string{"*"}, ExpiresAt: end,
	})
	text := func(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z") }
	for given, want := range map[string]string{
		"":                          text(end),
		text(end):                   text(end),
		text(end.Add(-time.Minute)): text(end.Add(-time.Minute)),
	} {
		members := `"scopes":["keys"]`
		if given != "" {
			members += `,"expires_at":"` + given + `"`
		}
		made := s.createKey(ending, members).must(t, 0)
		if made.text("expires_at") != want {
			t.Errorf("with the end %q the new key expires at %s, want %s", given, made.text("expires_at"), want)
		}
		grandchild := s.createKey(made.text("api_key"), `"scopes":["keys"]`).must(t, 0)
		if grandchild.text("expires_at") != want {
			t.Errorf("a key of a key expires at %s, want %s", grandchild.text("expires_at"), want)
		}
	}
	late := s.createKey(ending, `"scopes":["keys"],"expires_at":"`+text(end.Add(time.Millisecond))+`"`).must(t, 42200)
	if names := late.fieldNames(); !slices.Equal(names, []string{"expires_at"}) {
		t.Errorf("a later end: %s", late.body)
	}

	demanding := testKey("demanding")
	key := licensing.APIKey{
		ID: "key_demanding", Owner: licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test},
		Scopes: []string{"*"}, SecretVersion: 1, MasterID: "m1", RequireSignature: true,
	}
	s.store.addKey(demanding, key)
	signed := func(number, members string) answer {
		d := s.draft(newKey(`{"name":"shop","scopes":["keys"]`+members+`}`), key.ID)
		d.key = demanding
		d.set("Idempotency-Key", number)
		return s.sendWire(d.sign())
	}
	for number, members := range map[string]string{"k1": "", "k2": `,"require_signature":true`} {
		made := signed(number, members).must(t, 0)
		if made.data["require_signature"] != true {
			t.Errorf("with %q: %s", members, made.body)
		}
		s.createKey(made.text("api_key"), `"scopes":["keys"]`).must(t, 40102)
	}
	unsigned := signed("k3", `,"require_signature":false`).must(t, 42200)
	if names := unsigned.fieldNames(); !slices.Equal(names, []string{"require_signature"}) {
		t.Errorf("without signatures: %s", unsigned.body)
	}
}

// TestKeyChangesAreLogged: the log has each change of an API key once, with its account, its actor and the client's
// address.
func TestKeyChangesAreLogged(t *testing.T) {
	t.Parallel()
	s := newService(t)
	w := newKey(`{"name":"shop","scopes":["orders"]}`)
	w.headers = append(w.headers, "Idempotency-Key", "k")
	made := s.sendWire(w).must(t, 0)
	s.sendWire(w).must(t, 0) // a replay
	path := "/v1/keys/" + made.text("id")
	s.send("POST", path+"/rotate", keyAll, "").must(t, 0)
	s.send("DELETE", path, keyAll, "").must(t, 0)
	s.send("DELETE", "/v1/keys/key_none", keyAll, "").must(t, 40407)
	var got []string
	for line := range strings.Lines(s.log.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		text, _ := fields["message"].(string)
		what, found := strings.CutPrefix(text, "an API key was ")
		if !found {
			continue
		}
		got = append(got, what)
		if fields["level"] != "info" || fields["account_id"] != "acct_acme" || fields["mode"] != "test" ||
			fields["api_key_id"] != made.text("id") || fields["by"] != keyID(keyAll) ||
			fields["address"] != "127.0.0.1" {
			t.Errorf("logged: %s", line)
		}
	}
	if want := []string{"created", "rotated", "revoked"}; !slices.Equal(got, want) {
		t.Errorf("logged are %v, want %v", got, want)
	}
}
