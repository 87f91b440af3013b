package handlers_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
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

var (
	keySigner  = testKey("signer")  // may sign
	keyDemands = testKey("demands") // must sign
	keyRotated = testKey("rotated") // may sign, with either of two secrets
	keyNarrow  = testKey("narrow")  // may sign, with the scope orders:read
)

// newSigningService returns a service with API keys that have secrets.
func newSigningService(t *testing.T) *fixture {
	t.Helper()
	s := newService(t, withRing)
	s.addSigners()
	return s
}

// withRing makes a service have a master key.
func withRing(c *handlers.Config, _ *service.Config) {
	ring, err := keyring.ParseMasterRing("m1:" +
		base64.StdEncoding.EncodeToString(make([]byte, keyring.MasterKeySize)))
	if err != nil {
		panic(err)
	}
	c.Ring = ring
}

// addSigners adds API keys that have secrets.
func (s *fixture) addSigners() {
	s.t.Helper()
	key := licensing.APIKey{
		ID: "key_signer", Owner: licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test},
		Scopes: []string{"orders", "licenses"}, SecretVersion: 1, MasterID: "m1",
	}
	s.store.addKey(keySigner, key)
	key.ID, key.RequireSignature = "key_demands", true
	s.store.addKey(keyDemands, key)
	key.ID, key.RequireSignature = "key_rotated", false
	if err := key.Rotate("m1", s.clock.Now(), time.Hour); err != nil {
		s.t.Fatal(err)
	}
	s.store.addKey(keyRotated, key)
	key.ID, key.Scopes = "key_narrow", []string{"orders:read"}
	s.store.addKey(keyNarrow, key)
}

// written returns the number of writes.
func (s *memStore) written() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// secret returns a version of the API secret of a key.
func (s *fixture) secret(id string, version int) string {
	s.t.Helper()
	secret, err := s.config.Ring.APISecret(&licensing.APIKey{
		ID: id, Owner: licensing.Owner{AccountID: "acct_acme",
			Mode: licensing.Test}, SecretVersion: version, MasterID: "m1",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return secret
}

// draft is a request to sign. The test makes the signature by itself, without the code that verifies it.
type draft struct {
	wire
	uri     string // the URI that the client uses
	covered []string
	created int64
	keyID   string
	more    string // further parameters
	secret  string
	label   string
}

// draft returns the draft of a request with the API key of the given id.
func (s *fixture) draft(w wire, id string) *draft {
	s.t.Helper()
	d := &draft{
		wire: w, uri: publicURL + w.path, covered: []string{"@method", "@target-uri", "authorization"},
		created: s.clock.Now().Unix(), keyID: id, secret: s.secret(id, 1), label: "sig1",
	}
	if w.body != "" {
		d.covered = append(d.covered, "content-digest")
		d.headers = append(d.headers, "Content-Digest", digest(w.body))
	}
	if w.method == "POST" {
		d.covered = append(d.covered, "idempotency-key")
		d.headers = append(d.headers, "Idempotency-Key", "k1")
	}
	return d
}

func digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// sign signs a draft and returns the signed request.
func (d *draft) sign() wire {
	var base strings.Builder
	names := make([]string, len(d.covered))
	for i, name := range d.covered {
		names[i] = `"` + name + `"`
		var values []string
		switch name {
		case "@method":
			values = []string{d.method}
		case "@target-uri":
			values = []string{d.uri}
		case "authorization":
			values = []string{"Bearer " + d.key}
		}
		for h := 0; h < len(d.headers); h += 2 {
			if strings.EqualFold(d.headers[h], name) && d.headers[h+1] != "-" {
				values = append(values, strings.TrimSpace(d.headers[h+1]))
			}
		}
		fmt.Fprintf(&base, "%s: %s\n", names[i], strings.Join(values, ", "))
	}
	params := fmt.Sprintf(`(%s);created=%d;keyid="%s"%s`, strings.Join(names, " "), d.created, d.keyID, d.more)
	base.WriteString(`"@signature-params": ` + params)
	mac := hmac.New(sha256.New, []byte(d.secret))
	mac.Write([]byte(base.String()))
	w := d.wire
	w.headers = append(slices.Clone(w.headers),
		"Signature-Input", d.label+"="+params,
		"Signature", d.label+"=:"+base64.StdEncoding.EncodeToString(mac.Sum(nil))+":")
	return w
}

const orderBody = `{"product_id":"editor","amount":1,"currency":"USD"}`

// signedOrder returns the draft of a request that creates an order.
func (s *fixture) signedOrder() *draft {
	return s.draft(wire{method: "POST", path: "/v1/orders", key: keySigner, body: orderBody}, "key_signer")
}

// lookupOf returns the draft of a lookup of an order, with anything after its path.
func (s *fixture) lookupOf(orderNo, behind string) *draft {
	return s.draft(wire{method: "GET", path: "/v1/orders/" + orderNo + behind, key: keySigner}, "key_signer")
}

func (w *wire) drop(name string) {
	var left []string
	for i := 0; i < len(w.headers); i += 2 {
		if !strings.EqualFold(w.headers[i], name) {
			left = append(left, w.headers[i], w.headers[i+1])
		}
	}
	w.headers = left
}

func (w *wire) set(name, value string) {
	w.drop(name)
	w.headers = append(w.headers, name, value)
}

// join appends to a header's value.
func (w *wire) join(name, value string) {
	w.headers = slices.Clone(w.headers)
	for i := 0; i < len(w.headers); i += 2 {
		if w.headers[i] == name {
			w.headers[i+1] += ", " + value
		}
	}
}

// replace replaces text in all headers.
func (w *wire) replace(old, text string) {
	w.headers = slices.Clone(w.headers)
	for i := 1; i < len(w.headers); i += 2 {
		w.headers[i] = strings.Replace(w.headers[i], old, text, 1)
	}
}

// drop removes a header, covered or not.
func (d *draft) drop(name string) {
	d.wire.drop(name)
	d.covered = without(d.covered, name)
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}
