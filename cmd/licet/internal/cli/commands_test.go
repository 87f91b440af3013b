package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"licet/internal/servicetest"
	"licet/licensing"
	"licet/node/service"
)

// TestCommandsAreTheRoutes compares the commands with docs/reference/api.md: each route
// has one or more, with its scope; those of documents for programs have none.
func TestCommandsAreTheRoutes(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../../../docs/reference/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, have []string
	route := regexp.MustCompile("(?m)^\\| `([A-Z]+ /v1/[^`]+)` \\| (`[a-z:]+`(?: and `[a-z:]+`)?|open) \\|")
	for _, row := range route.FindAllStringSubmatch(string(doc), -1) {
		if strings.HasSuffix(row[1], ".json") { // for programs
			continue
		}
		documented = append(documented, row[1]+" "+strings.ReplaceAll(row[2], "`", ""))
	}
	u := newStranger(t)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if routes := cmd.Annotations[routeNote]; routes != "" {
			scope := "open"
			if _, text, found := strings.Cut(cmd.Long, "an API key with the scope"); found {
				scope = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "s"), " "), ".")
			}
			for route := range strings.SplitSeq(routes, " and ") {
				have = append(have, route+" "+scope)
			}
		}
		for _, child := range cmd.Commands() {
			walk(child)
			if child.Name() != "help" && child.Name() != "completion" &&
				(child.Example == "" || child.Long == "" || child.Short == "") {
				t.Errorf("%s lacks help", child.CommandPath())
			}
		}
	}
	walk(u.root())
	slices.Sort(documented)
	slices.Sort(have)
	have = slices.Compact(have) // the commands of the sandbox share a route
	if diff := cmp.Diff(documented, have); diff != "" || len(have) < 20 {
		t.Errorf("documented (-), commands (+):\n%s", diff)
	}
}

// TestShop walks through all commands as a shop would.
func TestShop(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	extra := filepath.Join(t.TempDir(), "extra.json")
	if err := os.WriteFile(extra, []byte(`{"shelf":7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	put := u.asJSON("products", "put", "editor", "--name", "Editor", "--key-prefix", "EDIT", "--max-devices", "1",
		"--validity", "P1Y",
		"--self-service-deactivation", "--removals-per-month", "5", "--metadata", "@"+extra)
	if put["key_prefix"] != "EDIT" || put["max_devices"] != 1.0 || put["self_service_deactivation"] != true ||
		fmt.Sprint(put["metadata"]) != "map[shelf:7]" {
		t.Errorf("the product is %v", put)
	}
	if got := u.asJSON("products", "get", "editor"); !cmp.Equal(got, put) {
		t.Errorf("the product is %v", got)
	}
	order := u.asJSON("orders", "create", "--product-id", "editor", "--amount", "4900", "--currency", "usd",
		"--buyer-email", "anna@example.com",
		"--description", "one", "--metadata", `{"a":1}`, "--success-url", "https://shop.example.com/",
		"--idempotency-key", "checkout-1")
	again := u.asJSON("orders", "create", "--product-id", "editor", "--amount", "4900", "--currency", "usd",
		"--buyer-email", "anna@example.com",
		"--description", "one", "--metadata", `{"a":1}`, "--success-url", "https://shop.example.com/",
		"--idempotency-key", "checkout-1")
	if !cmp.Equal(order, again) || order["status"] != "unpaid" {
		t.Errorf("ordered %v, and then %v", order, again)
	}
	number := order["order_no"].(string)
	paid := u.asJSON("sandbox", "pay", number)
	if got := u.asJSON("orders", "get", number); !cmp.Equal(got, paid) {
		t.Errorf("paid %v, and then got %v", paid, got)
	}
	key, _ := paid["license_key"].(string)
	if paid["status"] != "paid" || !strings.HasPrefix(key, "EDIT-") {
		t.Fatalf("the order is %v", paid)
	}
	second := u.asJSON("orders", "create", "--product-id", "editor", "--amount", "1", "--currency",
		"JPY")["order_no"].(string)
	if o := u.asJSON("orders", "cancel", second, "--reason", "changed her mind"); o["status"] != "canceled" ||
		o["state_reason"] != "changed her mind" {
		t.Errorf("the order is %v", o)
	}
	outside := u.asJSON("orders", "create", "--product-id", "invoiced", "--amount", "100", "--currency", "USD",
		"--payment-provider", "outside")["order_no"].(string)
	for range 2 {
		if o := u.asJSON("orders", "record-payment", outside, "--reference", "INV-1", "--amount", "100", "--paid-at",
			"2026-01-31T12:00:00Z"); o["status"] != "paid" || o["payment_reference"] != "INV-1" ||
			o["paid_at"] != "2026-01-31T12:00:00.000Z" {
			t.Errorf("the order is %v", o)
		}
	}
	u.must("products", "put", "cloud", "--billing", "P1M")
	cloud := u.asJSON("orders", "create", "--product-id", "cloud", "--amount", "900", "--currency",
		"EUR")["order_no"].(string)
	u.must("sandbox", "pay", cloud)
	for verb, ends := range map[string]bool{"cancel": true, "resume": false} {
		args := []string{"orders", verb + "-subscription", cloud}
		if ends {
			args = append(args, "--yes")
		}
		if o := u.asJSON(args...); (o["subscription"].(map[string]any)["cancel_at"] != nil) != ends {
			t.Errorf("%s: the order is %v", verb, o)
		}
	}
	u.must("products", "put", "team", "--billing", "P1M", "--max-devices", "25")
	o := u.asJSON("orders", "change-subscription", cloud, "--product-id", "team", "--amount", "3000", "--now", "--yes")
	if now := o["subscription"].(map[string]any); now["product_id"] != "team" || now["amount"] != 3000.0 {
		t.Errorf("changed: the order is %v", o)
	}
	o = u.asJSON("orders", "change-subscription", cloud, "--amount", "4800", "--max-devices", "40", "--yes")
	planned, _ := o["subscription"].(map[string]any)["planned_change"].(map[string]any)
	if planned["product_id"] != "team" || planned["max_devices"] != 40.0 {
		t.Errorf("planned: the order is %v", o)
	}
	u.refuses(false, []string{"40904", "portal"}, "orders", "card-page", cloud)
	if text := u.must("orders", "list", "--status", "canceled", "--product-id", "editor"); !strings.Contains(text,
		second) || strings.Contains(text, number) {
		t.Errorf("listed %s", text)
	}

	u.must("licenses", "activate", key, "laptop-1", "--device-name", "My laptop", "--product-id", "editor", "--mode",
		"test")
	u.refuses(false, []string{"40901", "max devices: 1", "licet licenses remove-device"},
		"licenses", "activate", key, "laptop-2")
	u.must("licenses", "validate", key, "laptop-1")
	if got := u.run("licenses", "validate", key, "laptop-2"); got.err == nil ||
		!strings.Contains(got.err.Error(), "device_not_bound") || !regexp.MustCompile(`VALID +no`).MatchString(got.stdout) {
		t.Errorf("validated %+v", got)
	}
	if text := u.must("licenses", "get", key); !strings.Contains(text, "\nDEVICES\nDEVICE ID  DEVICE NAME  BOUND AT") ||
		!strings.Contains(text, "laptop-1   My laptop") {
		t.Errorf("the license is\n%s", text)
	}
	if text := u.must("licenses", "devices", key); !strings.Contains(text, "laptop-1   My laptop") {
		t.Errorf("the devices are\n%s", text)
	}
	if r := u.asJSON("licenses", "deactivate", key, "laptop-1"); r["removed"] != true {
		t.Errorf("deactivated %v", r)
	}
	if r := u.asJSON("licenses", "remove-device", key, "laptop-1"); r["removed"] != false {
		t.Errorf("removed %v", r)
	}
	if l := u.asJSON("licenses", "suspend", key, "--reason", "chargeback"); l["status"] != "suspended" ||
		l["state_reason"] != "chargeback" {
		t.Errorf("the license is %v", l)
	}
	if l := u.asJSON("licenses", "reinstate", key); l["status"] != "not_activated" {
		t.Errorf("the license is %v", l)
	}
	if l := u.asJSON("licenses", "renew", key, "--expires-at",
		"2040-01-31T00:00:00Z"); l["expires_at"] != "2040-01-31T00:00:00.000Z" {
		t.Errorf("the license is %v", l)
	}
	for range 2 {
		if l := u.asJSON("licenses", "renew", key, "--extend", "P1M", "--idempotency-key",
			"invoice"); l["expires_at"] != "2040-02-29T00:00:00.000Z" {
			t.Errorf("the license is %v", l)
		}
	}
	u.must("licenses", "update", key, "--metadata", `{"seat":"3B","trial":true}`)
	if l := u.asJSON("licenses", "update", key, "--max-devices", "0", "--metadata",
		`{"trial":null}`); l["max_devices"] != 0.0 || fmt.Sprint(l["metadata"]) != "map[seat:3B]" {
		t.Errorf("the license is %v", l)
	}
	if o := u.asJSON("orders", "refund", number, "--reason", "does not run", "--yes"); o["status"] != "refunded" {
		t.Errorf("the order is %v", o)
	}
	granted := u.asJSON("licenses", "grant", "--product-id", "editor", "--quantity", "3", "--max-devices", "0",
		"--expires-at", "2040-01-01T00:00:00Z", "--metadata", `{"lot":4}`)["licenses"].([]any)
	if l := granted[0].(map[string]any); len(granted) != 3 || l["max_devices"] != 0.0 ||
		l["expires_at"] != "2040-01-01T00:00:00.000Z" {
		t.Errorf("granted %v", granted)
	}
	if text := u.must("licenses", "grant", "--product-id", "editor"); strings.Count(text, "\n") != 2 ||
		!strings.Contains(text, "EDIT-") {
		t.Errorf("granted\n%s", text)
	}
	if text := u.must("orders", "events", number, "--limit", "1"); !strings.Contains(text, "order.refunded") ||
		!strings.Contains(text, " "+number) || strings.Contains(text, "order.paid") {
		t.Errorf("the order's events are\n%s", text)
	}
	id := u.asJSON("licenses", "get", key)["id"].(string)
	if text := u.must("licenses", "events", id, "--all"); !strings.Contains(text, id+" laptop-1") ||
		!strings.Contains(text, "license.limit_reached") {
		t.Errorf("the license's events are\n%s", text)
	}
	u.refuses(false, []string{"40408"}, "products", "rollout-status", "editor")
	u.must("products", "put", "editor", "--max-devices", "2", "--entitlements", `{"seats":2}`)
	for _, dry := range []bool{true, false} {
		o := u.asJSON("products", "rollout", "editor", "--terms", "max_devices,entitlements", "--wait",
			fmt.Sprint("--dry-run=", dry))
		if o["status"] != "done" || o["dry_run"] != dry || o["licenses"] != 5.0 || o["updated"] != 5.0 {
			t.Errorf("the rollout is %v", o)
		}
		if got := u.asJSON("products", "rollout-status", "editor", "--wait"); !cmp.Equal(got, o) {
			t.Errorf("the rollout is %v, and then %v", o, got)
		}
	}
	if text := u.must("products", "cancel-rollout", "editor"); !strings.Contains(text, "done") {
		t.Errorf("the rollout is\n%s", text)
	}
	u.must("products", "delete", "editor")
	u.refuses(false, []string{"no such product", "licet products list", "$LICET_API_KEY"},
		"products", "delete", "editor")
}

// TestSeveralLicenses changes some licenses, one of which can't be changed.
func TestSeveralLicenses(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	keys := u.grant(3)
	got := u.run("licenses", "revoke", keys[0], "LIC-1", keys[1], "LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB2", keys[2],
		"--reason", "why")
	if got.err == nil || !strings.Contains(got.err.Error(), "2 of 5 licenses failed") ||
		strings.Count(got.stdout, "revoked") != 3 ||
		!strings.Contains(got.stderr, "licet: LIC-1: this is not a license key") ||
		strings.Count(got.stderr, "\n") != 2 {
		t.Errorf("%+v", got)
	}
	got = u.run("licenses", "revoke", keys[0], keys[1], "--output", "json")
	if got.err != nil || len(jsonLines(t, got.stdout)) != 2 {
		t.Errorf("%+v", got)
	}
	// An unreachable service is reported once.
	u.env["LICET_URL"] = "http://127.0.0.1:1"
	if got := u.run("licenses", "revoke", keys[0], keys[1]); got.stderr != "" || got.err == nil ||
		strings.Count(got.err.Error(), "no service listens") != 1 {
		t.Errorf("%+v", got)
	}
}

// grant makes licenses and returns their keys.
func (u *user) grant(count int) (keys []string) {
	u.t.Helper()
	for _, l := range u.asJSON("licenses", "grant", "--product-id", "many", "--quantity",
		fmt.Sprint(count))["licenses"].([]any) {
		keys = append(keys, l.(map[string]any)["license_key"].(string))
	}
	return keys
}

func jsonLines(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("%q is no line of JSON", line)
		}
		all = append(all, o)
	}
	return all
}

func TestLists(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.grant(230)
	got := u.run("licenses", "list", "--all", "--output", "json")
	seen := map[any]bool{}
	for _, l := range jsonLines(t, got.stdout) {
		seen[l["license_key"]] = true
	}
	if len(seen) != 230 || got.stderr != "" || got.err != nil {
		t.Errorf("listed %d licenses, %q, %v", len(seen), got.stderr, got.err)
	}
	if text := u.must("licenses", "list", "--all", "--product-id", "many"); strings.Count(text, "\n") != 231 ||
		strings.Count(text, "LICENSE KEY") != 1 {
		t.Errorf("listed\n%s", text)
	}
	// Page by page, as each says.
	var listed int
	args := []string{"licenses", "list", "--limit", "100"}
	for pages := 1; ; pages++ {
		got := u.run(args...)
		listed += strings.Count(got.stdout, "not_activated")
		_, rest, more := strings.Cut(got.stderr, "add --cursor ")
		if !more {
			if pages != 3 || listed != 230 || got.stderr != "" {
				t.Errorf("%d licenses on %d pages, and then %q", listed, pages, got.stderr)
			}
			break
		}
		args = []string{"licenses", "list", "--limit", "100", "--cursor", strings.Fields(rest)[0]}
	}
	if o := u.asJSON("products", "list"); len(o["products"].([]any)) != 1 || o["next_cursor"] != nil {
		t.Errorf("listed %v", o)
	}
	if text := u.must("orders", "list"); text != "" {
		t.Errorf("no orders are\n%s", text)
	}
	u.refuses(true, []string{"--limit is 0"}, "licenses", "list", "--limit", "0")
	u.refuses(true, []string{"--limit is 101"}, "orders", "list", "--limit", "101")
	u.refuses(true, []string{"--cursor must be"}, "orders", "list", "--cursor", "x")
	u.refuses(true, []string{"--status must be one of"}, "orders", "list", "--status", "gone")
}

// flood takes what is printed until there is enough, and does something then.
type flood struct {
	text   bytes.Buffer
	enough int
	then   func() error
}

func (f *flood) Write(p []byte) (int, error) {
	n, _ := f.text.Write(p)
	if f.text.Len() > f.enough {
		return n, f.then()
	}
	return n, nil
}

// TestInterrupted stops a listing between its pages: what was printed is whole.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.grant(230)
	ctx, cancel := context.WithCancel(t.Context())
	u.ctx = ctx
	out := &flood{enough: 1, then: func() error { cancel(); return nil }}
	err := u.runInto(out, io.Discard, "licenses", "list", "--all", "--output", "json")
	if err == nil || err.Error() != "interrupted" || len(jsonLines(t, out.text.String())) != 100 {
		t.Errorf("%v, after %d lines", err, len(jsonLines(t, out.text.String())))
	}
	// So does a reader who is gone.
	u.ctx = t.Context()
	err = u.runInto(&flood{enough: 1, then: func() error { return syscall.EPIPE }}, io.Discard, "licenses", "list",
		"--all")
	if err == nil || !strings.Contains(err.Error(), "broken pipe") {
		t.Error(err)
	}
	u.ctx = ctx // which has ended
	if err := u.runInto(io.Discard, io.Discard, "licenses", "grant", "--product-id", "editor"); err == nil ||
		!strings.HasPrefix(err.Error(), "interrupted: the outcome is unknown") {
		t.Error(err)
	}
}

// TestBadUsage: a command reports invalid usage before it calls a service.
func TestBadUsage(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.env["LICET_URL"] = "http://127.0.0.1:1" // an unused port
	for problem, line := range map[string]string{
		"licet licenses activate needs DEVICE_ID":                         "licenses activate LIC-1",
		"licet licenses activate needs LICENSE_KEY and DEVICE_ID":         "licenses activate",
		"licet licenses revoke needs LICENSE_KEY...":                      "licenses revoke",
		"licet products get takes only PRODUCT_ID; arguments received: 2": "products get a b",
		"licet products list takes no argument; arguments received: 1":    "products list b",
		"--metadata must be a JSON object":                                "licenses update LIC-1 --metadata [1]",
		"--metadata: open /none": "licenses grant --product-id a " +
			"--metadata @/none",
		`--expires-at is "soon"`:                                  "licenses renew LIC-1 --expires-at soon",
		`--output is "yaml": write table or`:                      "products list --output yaml",
		"the address of the service must be a URL such as https:": "products list --url ftp://a",
	} {
		u.refuses(true, []string{problem}, strings.Fields(line)...)
	}
	got := u.run("licenses", "get", "")
	if got.err == nil || !strings.Contains(got.err.Error(), "argument 1 is empty") {
		t.Errorf("%+v", got)
	}
}

// TestSignsWhereItMust calls with a key that demands signatures.
func TestSignsWhereItMust(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	key, err := svc.NewKey(service.NewKey{Owner: servicetest.NewAccount(), Name: "signer", Scopes: licensing.Scopes(),
		RequireSignature: true})
	if err != nil {
		t.Fatal(err)
	}
	u.env["LICET_API_KEY"], u.env["LICET_API_KEY_ID"], u.env["LICET_API_SECRET"] = key.Text, key.Key.ID, key.Secret
	for _, sign := range []string{"", "--sign", "--sign=false"} {
		u.must(append([]string{"orders", "create", "--product-id", "a", "--amount", "0", "--currency", "USD"},
			strings.Fields(sign)...)...)
		u.must(append([]string{"licenses", "list", "--all"}, strings.Fields(sign)...)...)
	}
	delete(u.env, "LICET_API_SECRET")
	u.refuses(false, []string{"40102", "LICET_API_SECRET"}, "orders", "list")
	u.refuses(true, []string{"signing needs", "$LICET_API_KEY does not have both"}, "orders", "list", "--sign")
	u.env["LICET_API_SECRET"] = "lks_test_wrong"
	u.refuses(false, []string{"40101", "the secret is from $LICET_API_KEY"}, "orders", "list")
}
