package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestRateLimits sees each setting of the limits at work.
func TestRateLimits(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir(), "--rate-limit-address", "2/h", "--rate-limit-account", "4/h",
		"--rate-limit-license", "1/h", "--rate-limit-authentication", "2/h", "--rate-limit-documents-kib", "1/h",
		"--trusted-proxies", "10.0.0.0/8,127.0.0.0/8", "--metrics-listen", "127.0.0.1:0")
	guess := func(client, credentials string) reply {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/v1/licenses/activate",
			strings.NewReader(`{"license_key":"LIC-00000-00000-00000-00000-00000","device_id":"d"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Forwarded-For", client)
		if credentials != "" {
			request.Header.Set("Authorization", credentials)
		}
		r, err := p.do(request)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for i, want := range []int{40001, 40001, 42900, 42900} {
		if r := guess(fmt.Sprintf("192.0.2.%d, 203.0.113.1, 10.0.0.1", i), ""); r.Code != want {
			t.Errorf("guess %d: %s, want %d", i, r.body, want)
		}
	}
	if r := guess("203.0.113.2", ""); r.Code != 40001 || r.header.Get("RateLimit-Policy") != `"address";q=2;w=3600` {
		t.Errorf("from elsewhere: %s %v", r.body, r.header)
	}

	// Malformed API keys need no look-up, so they leave half of the limit to others of the address.
	for i, want := range []int{40100, 42900} {
		if r := guess("203.0.113.3", fmt.Sprint("Bearer lk_test_guess", i)); r.Code != want {
			t.Errorf("guess of API key %d: %s, want %d", i, r.body, want)
		}
	}
	keys := object(p.want(t, 200, "PUT", "/v1/receipt_keys", "").Data)
	list := p.url + "/v1/accounts/" + keys.text("account_id") + "/test/revocations"
	for range 3 { // more than 1 KiB together
		p.get(t, list)
	}
	if r := p.get(t, list); r.Code != 42900 ||
		r.header.Get("RateLimit-Policy") != `"document_bytes";q=1024;w=3600` {
		t.Errorf("the fourth list: %s %v", r.body, r.header)
	}
	key := p.grant(t, 1)
	for i, want := range []int{0, 42900} {
		if r, err := p.activate(t.Context(), key, "d"); err != nil || r.Code != want {
			t.Errorf("activation %d: %s (%v), want %d", i, r.body, err, want)
		}
	}
	p.want(t, 200, "GET", "/v1/licenses/"+key, "")
	p.want(t, 200, "GET", "/v1/licenses/"+key, "")
	if r := p.want(t, 429, "GET", "/v1/licenses/"+key, ""); r.Code != 42900 || r.header.Get("Retry-After") == "" {
		t.Errorf("%s %v", r.body, r.header)
	}
	scrape := p.get(t, logged(p.log.String(), "metrics", "url"))
	for _, line := range []string{
		`licet_rate_limited_total{limit="address"} 2`, `licet_rate_limited_total{limit="license"} 1`,
		`licet_rate_limited_total{limit="account"} 1`, `licet_rate_limited_total{limit="authentication"} 1`,
		`licet_rate_limited_total{limit="document_bytes"} 1`,
	} {
		if !strings.Contains(scrape.body, line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
}

// TestWriteLimits sees each setting of the limits on writes at work.
func TestWriteLimits(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir(), "--rate-limit-new-devices", "3/h", "--rate-limit-license-kib", "2/h",
		"--rate-limit-account-kib", "14/h")
	small, large, other, last := p.grant(t, 0), p.grant(t, 0), p.grant(t, 0), p.grant(t, 0)
	long := strings.Repeat("\U0001F600", 255) // 1,020 bytes
	for _, c := range []struct{ key, device, name, policy string }{
		{small, "1", "", ""},
		{small, "2", "", ""},
		{small, "3", "", ""},
		{small, "4", "", `"new_devices";q=3;w=3600`},
		{small, "1", "", ""},
		{large, long, long, ""},
		{large, "2", "", `"license_bytes";q=2048;w=3600`},
		{large, long, "", ""},
		{other, long, long, ""},
		{last, "1", "", `"account_bytes";q=14336;w=3600`},
		{small, "1", "", ""},
	} {
		status := http.StatusOK
		if c.policy != "" {
			status = http.StatusTooManyRequests
		}
		r := p.want(t, status, "POST", "/v1/licenses/activate",
			fmt.Sprintf(`{"license_key":%q,"device_id":%q,"device_name":%q}`, c.key, c.device, c.name))
		if got := r.header.Get("RateLimit-Policy"); !strings.HasSuffix(got, c.policy) {
			t.Errorf("activating %.4s: RateLimit-Policy: %s, want %s", c.device, got, c.policy)
		}
	}
}
