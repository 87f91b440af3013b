package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"licet/internal/otlptest"
	"licet/licensing/keyring"
)

// TestLogAndTracesHoldNoSecrets does the main job, and makes mistakes on the way, with recognizable secrets. Then it
// searches the log, the traces and the metrics of the process for them.
func TestLogAndTracesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	traces := otlptest.Start(t)
	p := startProcess(t, t.TempDir(), "--log-level", "debug", "--metrics-listen", "127.0.0.1:0",
		"--tracing-otlp-endpoint", traces.URL, "--tracing-sample-ratio", "1")
	const mark = "canary"
	created := p.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":4900,"currency":"USD",
		"description":"canary description","buyer_email":"canary@example.com","metadata":{"canary-name":"canary-value"},
		"success_url":"https://canary.example.com/"}`).Data
	payURL := created.text("pay_url")
	token := payURL[strings.LastIndexByte(payURL, '/')+1:]
	if r, err := p.press(t.Context(), payURL, "pay"); err != nil || r.status != http.StatusSeeOther {
		t.Fatalf("%v %s", err, r.body)
	}
	key := p.want(t, 200, "GET", "/v1/orders/"+created.text("order_no"), "").Data.text("license_key")
	var account string
	const device = "canary/device 1"
	for range 2 {
		r, err := p.activate(t.Context(), key, device)
		if err != nil || r.status != 200 {
			t.Fatalf("%v %s", err, r.body)
		}
		account = r.Data.text("account_id")
	}
	p.want(t, 200, "GET", "/v1/licenses/"+strings.ToLower(key), "")
	p.want(t, 200, "GET", "/v1/licenses/"+key+"/devices?limit=5", "")

	p.want(t, 200, "GET", "/v1/licenses?buyer_email=canary@example.com&limit=1", "")
	p.want(t, 200, "GET", "/v1/orders?buyer_email=canary@example.com&product_id=canary", "")

	// A receiver that refuses every message, and an address without a receiver.
	refusing := newShopServer(t)
	refusing.status.Store(http.StatusInternalServerError)
	endpoint := p.want(t, 201, "POST", "/v1/webhook_endpoints",
		`{"url":"`+refusing.URL+`/canary?canary=canary","description":"canary"}`).Data
	endpointPath := "/v1/webhook_endpoints/" + endpoint.text("id")
	rotated := p.want(t, 200, "POST", endpointPath+"/rotate", `{"overlap":"PT1H"}`).Data.text("secret")
	refusing.knows(t, endpoint.text("secret"), rotated)
	p.want(t, 200, "POST", endpointPath+"/test", "")
	p.want(t, 200, "POST", "/v1/licenses/"+key+"/suspend", `{"reason":"canary"}`)
	p.until(t, endpointPath+"/deliveries", func(o object) bool { return len(o.list("deliveries")) > 0 })
	if r := p.want(t, 200, "GET", "/v1/webhook_endpoints", ""); strings.Contains(r.body, "whsec_") {
		t.Errorf("a list shows a secret: %s", r.body)
	}
	p.want(t, 200, "POST", "/v1/licenses/"+key+"/reinstate", "")
	refusing.Close()
	p.want(t, 200, "POST", endpointPath+"/test", "")
	p.want(t, 200, "DELETE", endpointPath, "")

	// Mistakes, which are what logs like to quote.
	p.want(t, 422, "POST", "/v1/webhook_endpoints",
		`{"url":"http://canary:canary@canary.example.com/canary","event_types":["canary"]}`)
	p.want(t, 404, "POST", "/v1/webhook_endpoints/canary/replay", `{"event_id":"canary"}`)
	p.want(t, 422, "GET", "/v1/webhook_endpoints?cursor=canary", "")
	stranger := api{url: p.url, key: "lk_test_canary", client: p.client}
	stranger.want(t, 401, "GET", "/v1/licenses/"+key, "")
	stranger.want(t, 401, "POST", "/v1/licenses/activate", `{"license_key":"`+key+`","device_id":"canary"}`)
	p.want(t, 400, "GET", "/v1/licenses/canary-key", "")
	p.want(t, 400, "POST", "/v1/orders", `{"canary":`)
	p.want(t, 400, "POST", "/v1/orders", `{"canary":"canary"}`)
	p.want(t, 422, "POST", "/v1/orders",
		`{"product_id":"canary!","amount":-1,"currency":"canary","buyer_email":"canary"}`)
	p.want(t, 404, "GET", "/canary/"+key, "")
	p.want(t, 404, "GET", "/v1/../canary/"+key, "")
	p.want(t, 405, "PUT", "/v1/licenses/"+key, "")
	p.want(t, 422, "GET", "/v1/licenses/"+key+"/devices?cursor=canary", "")
	p.want(t, 422, "GET", "/v1/licenses?cursor=canary&order_no="+key, "")
	p.want(t, 414, "GET", "/v1/licenses/"+strings.Repeat("canary", 1000), "")
	p.get(t, payURL+"?canary=canary")
	p.get(t, p.url+"/pay/"+created.text("order_no")+"/canary")
	p.want(t, 200, "DELETE", "/v1/licenses/"+key+"/devices/"+url.PathEscape(device), "")
	p.want(t, 422, "POST", "/v1/redactions", `{"buyer_email":"canary"}`)
	p.want(t, 405, "GET", "/v1/redactions?buyer_email=canary@example.com", "")
	p.want(t, 200, "POST", "/v1/redactions", `{"buyer_email":"Canary@example.com"}`)

	scraped := p.openMetrics(t)
	if code := p.terminate(t); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	written := p.log.String() + p.stdout
	for name, secret := range map[string]string{
		"license key":                 key,
		"license key, lower":          strings.ToLower(key),
		"a group of it":               key[10:21],
		"API key":                     p.key,
		"API secret":                  p.secret,
		"pay token":                   token,
		"endpoint's secret":           rotated,
		"one before":                  endpoint.text("secret"),
		"master key":                  masterKeyOf(t, p.dir),
		"what the requests contained": mark,
	} {
		if strings.Contains(strings.ToLower(written), strings.ToLower(secret)) {
			t.Errorf("the %s is in what licet has written:\n%s", name, written)
		}
		if strings.Contains(strings.ToLower(traces.Text()), strings.ToLower(secret)) {
			t.Errorf("the %s is in the traces:\n%s", name, traces.Text())
		}
		if strings.Contains(strings.ToLower(scraped), strings.ToLower(secret)) {
			t.Errorf("the %s is in the metrics:\n%s", name, scraped)
		}
	}
	for name, secret := range map[string]string{"account": account, "order": created.text("order_no")} {
		if strings.Contains(traces.Text(), secret) || strings.Contains(scraped, secret) {
			t.Errorf("the %s is in the traces or the metrics", name)
		}
	}
	if !strings.Contains(scraped, `# {trace_id="`) {
		t.Errorf("the metrics have no exemplar:\n%s", scraped)
	}
	holdsNoPayToken(t, filepath.Join(p.dir, "etcd"), token)
	wantJSONLines(t, p.log.String())
	// The whole of it was looked at: something of each kind is there.
	for _, name := range []string{
		"POST /v1/licenses/activate", "GET /v1/licenses/{license_key}",
		"DELETE /v1/licenses/{license_key}/devices/{device_id}",
		"POST /pay/{order_no}/{token}", "POST /v1/redactions", "GET", "fold", "record lock", "etcd swap", "etcd load",
		"payment begin", "webhook delivery", "webhook attempt",
	} {
		if len(otlptest.Named(traces.Spans(), name)) == 0 {
			t.Errorf("no span is called %q", name)
		}
	}
}

// holdsNoPayToken demands that the files of the store contain the hash of a pay token, and not the token.
func holdsNoPayToken(t *testing.T, dir, token string) {
	t.Helper()
	raw, err := hex.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	hash, found := keyring.HashPayToken(token), false
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, raw) || bytes.Contains(content, []byte(token)) {
			t.Errorf("%s contains the pay token", path)
		}
		found = found || bytes.Contains(content, hash[:])
		return err
	})
	if err != nil || !found {
		t.Errorf("the store does not contain the hash of the pay token (%v)", err)
	}
}

// wantJSONLines demands that a log is JSON and has a line for the activation
// with all that a line must have.
func wantJSONLines(t *testing.T, log string) {
	t.Helper()
	activations := 0
	for line := range strings.Lines(log) {
		var entry struct {
			Time     string   `json:"time"`
			Level    string   `json:"level"`
			Message  string   `json:"message"`
			ID       string   `json:"request_id"`
			Route    string   `json:"route"`
			Status   int      `json:"status"`
			Duration *float64 `json:"duration_ms"`
		}
		decoder := json.NewDecoder(bytes.NewBufferString(line))
		if err := decoder.Decode(&entry); err != nil || entry.Time == "" || entry.Level == "" {
			t.Errorf("a line of the log is %q (%v)", line, err)
		}
		if entry.Route == "/v1/licenses/activate" && entry.Status == 200 && entry.ID != "" && entry.Duration != nil {
			activations++
		}
	}
	if activations != 2 {
		t.Errorf("the log has %d lines of successful activations, want 2:\n%s", activations, log)
	}
}

func masterKeyOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, masterFile))
	if err != nil {
		t.Fatal(err)
	}
	_, key, _ := strings.Cut(strings.TrimSpace(string(text)), ":")
	return key
}
