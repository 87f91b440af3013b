package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/handlers"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// pingID matches the id of a test message, which differs in each run.
var pingID = regexp.MustCompile(`ping_[0-9A-Z]{26}`)

// armored matches an armored text with a receipt, whose id differs in each run.
var armored = regexp.MustCompile(`(-----BEGIN LICET (?:RECEIPT|RELEASE)-----\\n)[^-]+(-----END)`)

// withoutReceipts returns a body in JSON without the content of its armored receipts.
func withoutReceipts(body string) string { return armored.ReplaceAllString(body, `${1}eyJ…\n${2}`) }

var update = flag.Bool("update", false, "write the golden files anew")

// wire is one request as a golden file shows it.
type wire struct {
	method, path, key, body string
	headers                 []string
}

func activation(key, members string) wire {
	return activationBody(`{"license_key":"` + key + `",` + members + `}`)
}

func activationBody(body string) wire {
	return wire{method: "POST", path: "/v1/licenses/activate", body: body}
}

func validation(key, members string) wire {
	return wire{method: "POST", path: "/v1/licenses/validate", body: `{"license_key":"` + key + `",` + members + `}`}
}

func deactivation(key, members string) wire {
	return wire{method: "POST", path: "/v1/licenses/deactivate", body: `{"license_key":"` + key + `",` + members + `}`}
}

// changing is a request to change a license; see change.
func changing(key, verb, body string) wire {
	return wire{method: "POST", path: "/v1/licenses/" + key + "/" + verb, key: keyAll, body: body}
}

// externalGrant grants licenses with a key from elsewhere.
func externalGrant(key string, quantity int) wire {
	return wire{method: "POST", path: "/v1/licenses", key: keyAll,
		body: fmt.Sprintf(`{"product_id":"editor","quantity":%d,"external_key":%q}`, quantity, key)}
}

func newOrder(body string) wire {
	return wire{method: "POST", path: "/v1/orders", key: keyAll, body: body}
}

func newKey(body string) wire {
	return wire{method: "POST", path: "/v1/keys", key: keyAll, body: body}
}

// rotation is a request for a new secret of the API key with a text.
func rotation(text, body string) wire {
	return wire{method: "POST", path: "/v1/keys/" + keyID(text) + "/rotate", key: keyAll, body: body}
}

// storeKeyUses stores the times at which API keys were used.
func (s *fixture) storeKeyUses() {
	ended, end := context.WithCancel(context.Background())
	end()
	s.node.KeepKeyUses(ended)
}

// once is the same request with an Idempotency-Key.
func (w wire) once(key string) wire {
	w.headers = append(slices.Clone(w.headers), "Idempotency-Key", key)
	return w
}

func (s *fixture) sendWire(w wire) answer {
	s.t.Helper()
	return s.send(w.method, w.path, w.key, w.body, w.headers...)
}

func (s *fixture) lookup(made answer) wire {
	return wire{method: "GET", path: "/v1/orders/" + made.text("order_no"), key: keyAll}
}

// change asks for a change of a license, such as suspend.
func (s *fixture) change(key, verb, body string, headers ...string) answer {
	s.t.Helper()
	return s.send("POST", "/v1/licenses/"+key+"/"+verb, keyAll, body, headers...)
}

// product describes a product.
func (s *fixture) product(id, members string) answer {
	s.t.Helper()
	return s.send("PUT", "/v1/products/"+id, keyAll, "{"+members+"}")
}

// eventful makes an order with many events, and returns its license key.
func (s *fixture) eventful() (key string) {
	s.t.Helper()
	s.product("editor", `"max_devices":1,"metadata":{"shelf":7}`).must(s.t, 0)
	made := s.send("POST", "/v1/orders", keyAll,
		`{"product_id":"editor","amount":4900,"currency":"USD","buyer_email":"anna@example.com","metadata":{"cart":"<8114>"}}`).must(s.t, 0)
	s.clock.advance(time.Second)
	s.pay(made)
	key = s.sendWire(s.lookup(made)).text("license_key")
	s.activate(key, "d1").must(s.t, 0)
	s.activate(key, "d2").must(s.t, 40901)
	s.clock.advance(time.Second)
	s.send("DELETE", "/v1/licenses/"+key+"/devices/d1", keyAll, "").must(s.t, 0)
	s.change(key, "suspend", `{"reason":"chargeback"}`).must(s.t, 0)
	return key
}

// pay pays an order, without its pay page.
func (s *fixture) pay(made answer) answer {
	s.t.Helper()
	return s.send("PUT", "/v1/orders/"+made.text("order_no")+"/sandbox_payment", keyAll, "", "Content-Type", "-").
		must(s.t, 0)
}

// cancel cancels an order, without its pay page.
func (s *fixture) cancel(made answer) answer {
	s.t.Helper()
	return s.send("POST", "/v1/orders/"+made.text("order_no")+"/cancel", keyAll, "", "Content-Type", "-").must(s.t, 0)
}

// put stores a record without checking it.
func (s *memStore) put(record licensing.Record, ref licensing.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	s.write(store.Write{Ref: ref, Record: record})
}

// budgeted is a service with a budget of stored data: ordinary growth ends at 8,000 bytes or 80 keys.
var budgeted = []option{func(_ *handlers.Config, n *service.Config) {
	n.Budget = licensing.Budget{Bytes: 10_000, Keys: 100}
}}

// stores sets how much the account of keyAll stores.
func (s *fixture) stores(size licensing.Size) {
	owner := licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}
	s.store.put(licensing.Record{Usage: &licensing.Usage{Owner: owner, Size: size}}, licensing.UsageRef(owner))
}

// rollout stores a product with a rollout, which no node runs.
func (s *fixture) rollout(o licensing.Rollout) {
	owner := licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}
	o.StartedAt, o.NextAt = s.clock.Now(), s.clock.Now().Add(time.Hour)
	s.store.put(licensing.Record{Product: &licensing.Product{ID: "editor", Owner: owner, CreatedAt: o.StartedAt,
		Terms: licensing.DefaultTerms(), Rollout: o}}, licensing.ProductRef(owner, "editor"))
}

// newRollout asks for a rollout of the product editor.
func newRollout(body string) wire {
	return wire{method: "POST", path: "/v1/products/editor/rollout", key: keyAll, body: body}
}

func TestGolden(t *testing.T) {
	for _, c := range goldenCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, c.options...)
			w := c.setup(s)
			got := s.send(w.method, w.path, w.key, w.body, append(w.headers, "X-Request-Id", "golden/"+c.name)...)
			checkGolden(t, c.name, w.String()+"\n"+pingID.ReplaceAllString(wireForm(got), "ping_01…"))
		})
	}
}

// pinned are the golden files that contain every byte of the response, one for each JSON encoder. In the
// other files, the JSON of the body is indented.
var pinned = []string{"activate", "order_full"}

// indented indents the JSON after the headers of a response; other bodies stay as they are.
func indented(exchange string) string {
	const separator = "\n<\n"
	at := strings.Index(exchange, separator) + len(separator)
	var body bytes.Buffer
	if json.Indent(&body, []byte(exchange[at:]), "", "  ") != nil {
		return exchange
	}
	return exchange[:at] + body.String()
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	if !slices.Contains(pinned, name) {
		got = indented(got)
	}
	path := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the wire form changed (-want +got); if that is meant, run with -update:\n%s", diff)
	}
}

// String shows a request. It cuts long parts.
func (w wire) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "> %s %s\n", w.method, cut(w.path))
	if w.key != "" {
		fmt.Fprintf(&b, "> Authorization: Bearer %s\n", w.key)
	}
	for i := 0; i < len(w.headers); i += 2 {
		if w.headers[i+1] != "-" {
			fmt.Fprintf(&b, "> %s: %s\n", w.headers[i], cut(w.headers[i+1]))
		}
	}
	if w.body != "" {
		fmt.Fprintf(&b, ">\n> %s\n", cut(withoutReceipts(w.body)))
	}
	return b.String()
}

func cut(s string) string {
	if len(s) > 1000 {
		return fmt.Sprintf("%s…(%d bytes)", s[:20], len(s))
	}
	return s
}

// wireForm shows a response without the parts that differ in each run.
func wireForm(a answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "< %d %s\n", a.status, http.StatusText(a.status))
	var names []string
	for name := range a.header {
		if name != "Date" && name != "Content-Length" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "< %s: %s\n", name, strings.Join(a.header[name], " | "))
	}
	fmt.Fprintf(&b, "<\n%s", withoutReceipts(a.body))
	return b.String()
}
