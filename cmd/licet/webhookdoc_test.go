package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// countingReceiver starts a receiver that acknowledges and counts webhooks.
func countingReceiver(t *testing.T) (url string, taken *atomic.Int64) {
	t.Helper()
	taken = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		taken.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	return server.URL, taken
}

// TestDocumentedWebhooksRun runs all commands of docs/guides/webhooks.md, with another address of the receiver. It
// compares the signature by openssl with the signature by the library.
func TestDocumentedWebhooksRun(t *testing.T) {
	t.Parallel()
	needTools(t, "openssl", "od")
	url, taken := countingReceiver(t)
	p, out, blocks := runDocumented(t,
		strings.ReplaceAll(docPage(t, "guides/webhooks.md"), "http://127.0.0.1:9000", url))
	if blocks < 5 || taken.Load() == 0 || !strings.Contains(out, "DELIVERED    yes") ||
		!strings.Contains(out, "by_user") {
		t.Errorf("%d blocks, %d messages came, and it printed\n%s", blocks, taken.Load(), out)
	}
	var made struct{ Secret string }
	if err := json.Unmarshal([]byte(readText(t, filepath.Join(filepath.Dir(p.dir), "endpoint.json"))),
		&made); err != nil {
		t.Fatal(err)
	}
	library, err := standardwebhooks.NewWebhook(made.Secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := library.Sign("evt_1", time.Unix(1893553445, 0), []byte(`{"id":"evt_1","type":"order.paid"}`))
	if err != nil || !strings.Contains(out, strings.TrimPrefix(signature, "v1,")+"\n") {
		t.Errorf("openssl did not print %s, %v:\n%s", signature, err, out)
	}
	if left := p.want(t, 200, "GET", "/v1/webhook_endpoints", "").Data.list("webhook_endpoints"); len(left) != 0 {
		t.Errorf("there are still %v", left)
	}
}

// TestDocumentedEntitlementsRun runs all commands of docs/guides/entitlements.md.
func TestDocumentedEntitlementsRun(t *testing.T) {
	t.Parallel()
	p, out, blocks := runDocumented(t, docPage(t, "guides/entitlements.md"))
	if blocks < 4 {
		t.Errorf("%d blocks", blocks)
	}
	var shown []string
	for _, l := range p.want(t, 200, "GET", "/v1/licenses?product_id=studio", "").Data.list("licenses") {
		shown = append(shown, fmt.Sprint(l["entitlements"]))
	}
	want := []string{"map[channel:stable export:true plugins:true projects:25]",
		"map[channel:stable plugins:true projects:50 support:true]"}
	if n := strings.Count(out, "done"); n < 4 {
		t.Errorf("%d rollouts are done; it printed\n%s", n, out)
	}
	if !slices.Equal(shown, want) {
		t.Errorf("the licenses have %q, want %q; it printed\n%s", shown, want, out)
	}
}

// TestDocumentedDeviceChangesRun runs all commands of docs/guides/changing-devices.md.
func TestDocumentedDeviceChangesRun(t *testing.T) {
	t.Parallel()
	p, out, blocks := runDocumented(t, docPage(t, "guides/changing-devices.md"))
	if blocks < 5 || !strings.Contains(out, "no free slot") {
		t.Errorf("%d blocks, and it printed\n%s", blocks, out)
	}
	licenses := p.want(t, 200, "GET", "/v1/licenses?product_id=desk", "").Data.list("licenses")
	if got := fmt.Sprint(licenses[0]["devices"]); len(licenses) != 1 || !strings.Contains(got, "install-2") ||
		strings.Contains(got, "install-1") || !strings.Contains(got, "[board disk net]") {
		t.Errorf("the devices are %s; it printed\n%s", got, out)
	}
}

// TestDocumentedReceiptsRun runs all commands of docs/guides/receipts.md.
func TestDocumentedReceiptsRun(t *testing.T) {
	t.Parallel()
	_, out, blocks := runDocumented(t, docPage(t, "guides/receipts.md"))
	for _, want := range []string{"licet_root_", `"receipt":"`, "RECEIPT", `"signed":"`, "SIGNS FROM"} {
		if blocks < 6 || !strings.Contains(out, want) {
			t.Errorf("%d blocks, and no %s in what it printed:\n%s", blocks, want, out)
		}
	}
}

// TestDocumentedOfflineRun runs all commands of docs/guides/offline.md, with the example program.
func TestDocumentedOfflineRun(t *testing.T) {
	t.Parallel()
	needTools(t, "go")
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", bin, "../../examples/offline")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, out, blocks := runDocumented(t, docPage(t, "guides/offline.md"), bin)
	for _, want := range []string{"request.receipt.txt", "the receipt is good\n", "the program starts, with {",
		"no license: not_activated", "microscope-7",
		"the receipt is good until", "no devices"} {
		if blocks < 9 || !strings.Contains(out, want) {
			t.Errorf("%d blocks, and no %s in what it printed:\n%s", blocks, want, out)
		}
	}
}

// TestDocumentedLeasesRun runs all commands of docs/guides/floating.md.
func TestDocumentedLeasesRun(t *testing.T) {
	t.Parallel()
	p, out, blocks := runDocumented(t, docPage(t, "guides/floating.md"))
	if blocks < 4 || !strings.Contains(out, "all leases are in use") {
		t.Errorf("%d blocks, and it printed\n%s", blocks, out)
	}
	var leased []string
	for _, l := range p.want(t, 200, "GET", "/v1/licenses?product_id=render", "").Data.list("licenses") {
		for _, d := range l["devices"].([]any) {
			device := d.(map[string]any)
			end, err := time.Parse(time.RFC3339, fmt.Sprint(device["lease_expires_at"]))
			borrowed := err == nil && time.Until(end) > time.Hour
			leased = append(leased, fmt.Sprintf("%v %v", device["device_id"], borrowed))
		}
	}
	if want := []string{"workstation-2 false", "workstation-3 true"}; !slices.Equal(leased, want) {
		t.Errorf("the leases, and which are borrowed: %v, want %v; it printed\n%s", leased, want, out)
	}
}

// TestDocumentedTrialsRun runs all commands of docs/guides/trials.md.
func TestDocumentedTrialsRun(t *testing.T) {
	t.Parallel()
	p, out, blocks := runDocumented(t, docPage(t, "guides/trials.md"))
	if blocks < 5 || !strings.Contains(out, "the address has had its trial") ||
		!strings.Contains(out, "the trial is over") {
		t.Errorf("%d blocks, and it printed\n%s", blocks, out)
	}
	var shown []string
	for _, product := range []string{"tryout", "mailout"} {
		for _, l := range p.want(t, 200, "GET", "/v1/licenses?product_id="+product, "").Data.list("licenses") {
			shown = append(shown, fmt.Sprint(l["trial"], l["max_devices"], l["current_devices"], l["entitlements"]))
		}
	}
	if want := []string{"false 3 1 map[export:true]", "true 2 1 map[]"}; !slices.Equal(shown, want) {
		t.Errorf("the licenses: %q, want %q; it printed\n%s", shown, want, out)
	}
}

// TestDocumentedExpiryRuns runs all commands of docs/guides/expiry.md.
func TestDocumentedExpiryRuns(t *testing.T) {
	t.Parallel()
	p, out, blocks := runDocumented(t, docPage(t, "guides/expiry.md"))
	if blocks < 5 || !strings.Contains(out, "no new device during the grace") ||
		!regexp.MustCompile(`STATUS +expired`).MatchString(out) || !regexp.MustCompile(`GRACE +yes`).MatchString(out) {
		t.Errorf("%d blocks, and it printed\n%s", blocks, out)
	}
	licenses := p.want(t, 200, "GET", "/v1/licenses?product_id=magazine", "").Data.list("licenses")
	if len(licenses) != 1 || licenses[0]["status"] != "activated" || licenses[0]["current_devices"] != 2.0 {
		t.Errorf("the licenses %v; it printed\n%s", licenses, out)
	}
}

// TestDocumentedEventsRun runs all commands of docs/guides/events.md.
func TestDocumentedEventsRun(t *testing.T) {
	t.Parallel()
	needTools(t, "curl")
	_, out, blocks := runDocumented(t, docPage(t, "guides/events.md"))
	if blocks < 1 || strings.Count(out, `{"code":0,"message":"success","data":{"events":[`) != 2 {
		t.Errorf("%d blocks, and it printed\n%s", blocks, out)
	}
}
