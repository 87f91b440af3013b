package handlers_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"licet/docs/reference"
	"licet/handlers"
	"licet/handlers/docs"
	"licet/handlers/limits"
	"licet/licensing"
	"licet/node/service"
)

// TestFilesHaveNoLimit: a client address that has used up all its limits still gets every file, and the table of routes
// lists a code of limits for each route but files and probes.
func TestFilesHaveNoLimit(t *testing.T) {
	t.Parallel()
	one := limits.Rate{Count: 1, Per: time.Hour}
	s := newService(t, append(limited(limits.Config{Address: one, Authentication: one}), behindProxy, withDocs)...)
	const address = "203.0.113.1"
	for _, w := range []wire{guess(), wire{method: "GET", path: "/v1/orders"}.with("lk_test_nobody")} {
		w = w.from(address)
		s.sendWire(w)
		if a := s.sendWire(w); a.status != 429 {
			t.Fatalf("%s %s: status %d before a limit is used up", w.method, w.path, a.status)
		}
	}
	files := 0
	for _, r := range handlers.Routes() {
		limited := slices.ContainsFunc(r.Refusals, func(r handlers.Refusal) bool { return r.Status == 429 })
		if r.Media == "" || r.Auth == handlers.OptionalAuth {
			if probe := strings.HasSuffix(r.Pattern, "z"); limited == probe {
				t.Errorf("%s %s lists a code of limits: %v", r.Method, r.Pattern, limited)
			}
			continue
		}
		files++
		if a := s.sendWire(wire{method: r.Method, path: r.Pattern}.from(address)); a.status != 200 || limited {
			t.Errorf("%s %s: status %d, lists a code of limits: %v", r.Method, r.Pattern, a.status, limited)
		}
	}
	if files < 8 {
		t.Errorf("%d files", files)
	}
}

// The service serves the committed document, also to callers without an API key or with a bad one.
func TestAPIDocument(t *testing.T) {
	s := newService(t)
	for path, media := range map[string]string{
		"/openapi.yaml": "application/yaml", "/openapi.json": "application/json",
	} {
		want := reference.OpenAPI()
		if path == "/openapi.json" {
			want = reference.OpenAPIInJSON()
		}
		for _, key := range []string{"", testKey("nobody")} {
			got := s.send("GET", path, key, "")
			if got.status != 200 || got.header.Get("Content-Type") != media || got.body != string(want) {
				t.Errorf("%s answers %d with %s, %d bytes; want %s, %d bytes", path, got.status,
					got.header.Get("Content-Type"), len(got.body), media, len(want))
			}
			if got.header.Get("Cache-Control") != "public, max-age=3600" ||
				got.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s has the headers %v", path, got.header)
			}
		}
	}
}

// withDocs serves the API reference and the page at /.
func withDocs(c *handlers.Config, _ *service.Config) {
	c.Docs = true
	c.Home = &handlers.Home{
		Home: docs.Home{
			Version: "1.2.3", URL: publicURL, EnvFile: "/home/anna/dev.env", ReadEnv: ". /home/anna/dev.env",
			Steps: []docs.Step{{Title: "Create an order", Command: "curl -d '{\"a\":1}'"}},
		},
		Owner: licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}, Private: true,
	}
}

// Every file is served compressed or plain, complete for GET, without a body for HEAD, and with a policy that allows
// nothing from elsewhere.
func TestFilesOfTheDocs(t *testing.T) {
	t.Parallel()
	s := newService(t, withDocs)
	for path, want := range map[string]struct{ media, caching, part string }{
		"/":            {"text/html; charset=utf-8", "no-store", "Create an order"},
		"/docs":        {"text/html; charset=utf-8", "public, max-age=3600", "<openapi-explorer"},
		"/docs/errors": {"text/html; charset=utf-8", "public, max-age=3600", `id="40901"`},
		"/docs/viewer.js?v=1.2.3": {"text/javascript; charset=utf-8", "public, max-age=31536000, immutable",
			"OpenAPI Explorer"},
		"/openapi.json": {"application/json", "public, max-age=3600", `"openapi":"3.1.0"`},
		"/favicon.ico":  {"image/vnd.microsoft.icon", "public, max-age=3600", "PNG"},
		"/robots.txt": {"text/plain; charset=utf-8", "public, max-age=3600",
			"Disallow: /pay/\nDisallow: /v1/"},
		"/?utm_source=mail": {"text/html; charset=utf-8", "no-store", "Create an order"},
	} {
		plain := s.send("GET", path, "", "", "Accept-Encoding", "identity")
		if plain.status != 200 || plain.header.Get("Content-Type") != want.media ||
			!strings.Contains(plain.body, want.part) ||
			plain.header.Get("Cache-Control") != want.caching || plain.header.Get("Content-Encoding") != "" {
			t.Errorf("GET %s: %d %v, %d bytes", path, plain.status, plain.header, len(plain.body))
		}
		// The client of TestAPIDocument asks for compressed documents and unpacks them.
		if want.caching != "no-store" && want.media != "application/json" {
			packed := s.send("GET", path, "", "", "Accept-Encoding", "br, gzip")
			if unpack(t, packed.body) != plain.body || packed.header.Get("Content-Encoding") != "gzip" ||
				packed.header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s, compressed: %v, %d bytes", path, packed.header, len(packed.body))
			}
		}
		head := s.send("HEAD", path, "", "", "Accept-Encoding", "identity")
		if head.status != 200 || head.body != "" || head.header.Get("Content-Length") != strconv.Itoa(len(plain.body)) {
			t.Errorf("HEAD %s: %d, %v, %q", path, head.status, head.header, head.body)
		}
		if want.media != "text/html; charset=utf-8" {
			continue
		}
		policy := plain.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "http") ||
			strings.Contains(policy, "unsafe-eval") || strings.Contains(policy, "script-src 'unsafe-inline'") ||
			plain.header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: %v", path, plain.header)
		}
	}
}

func unpack(t *testing.T, packed string) string {
	t.Helper()
	from, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Without Config.Docs and Config.Home, the paths name no route, and no error names the docs.
func TestNoDocs(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, path := range []string{"/", "/?a=1", "/docs", "/docs/errors", "/docs/viewer.js"} {
		if got := s.send("GET", path, "", "").must(t, 40400); strings.Contains(got.body, "docs_url") {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	for _, path := range []string{"/favicon.ico", "/robots.txt"} {
		if got := s.send("GET", path, "", ""); got.status != 200 {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}

// Every error names the section of its code, also the errors that are written before a request is read. The page has
// the section.
func TestErrorsNameTheirDocs(t *testing.T) {
	t.Parallel()
	s := newService(t, withDocs, smallest, func(c *handlers.Config, _ *service.Config) {
		c.PublicURL, c.MaxConnections = "https://example.com/licenses", 4
	})
	page := s.send("GET", "/docs/errors", "", "").body
	want := func(got answer, code int) {
		t.Helper()
		got.must(t, code)
		failure, _ := got.raw["error"].(map[string]any)
		url, _ := failure["docs_url"].(string)
		if path, id, _ := strings.Cut(url, "#"); path != "/licenses/docs/errors" || id != strconv.Itoa(code) ||
			!strings.Contains(page, `<article id="`+id+`">`) {
			t.Errorf("%d has the address %q", code, url)
		}
	}
	want(s.send("GET", "/nothing", "", ""), 40400)
	want(s.send("POST", "/v1/orders", keyAll, "{}"), 42200)
	want(s.activate("nonsense", "d"), 40001)

	s.client.CloseIdleConnections()
	free := s.fill()
	c := s.dial()
	c.write(activationText(`{"license_key":"` + absentKey() + `","device_id":"d"}`))
	want(c.read(), 50301)
	free()
	s.dial() // with c, two of three: an address may have as many as are still free
	want(s.dial().read(), 50301)
	for _, refusal := range handlers.Refusals() {
		if !strings.Contains(page, fmt.Sprintf(`<article id="%d">`, refusal.Code)) {
			t.Errorf("the page lacks %d", refusal.Code)
		}
	}
}

// The page at / shows the pay page of the latest unpaid order and the file with the API key, but only to a request that
// names this machine: a site whose name resolves to this machine can't read them.
func TestHomeKeepsSecrets(t *testing.T) {
	t.Parallel()
	s := newService(t, withDocs)
	home := func(headers ...string) string {
		t.Helper()
		got := s.send("GET", "/", "", "", headers...)
		if got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return got.body
	}
	if got := home(); strings.Contains(got, "/pay/") || !strings.Contains(got, "/home/anna/dev.env") {
		t.Errorf("without an order: %s", got)
	}
	older := s.sendWire(newOrder(`{"product_id":"editor","amount":1,"currency":"USD"}`)).must(t, 0)
	s.clock.advance(time.Second)
	latest := s.sendWire(newOrder(`{"product_id":"editor","amount":1,"currency":"USD"}`)).must(t, 0)
	if got := home(); !strings.Contains(got, latest.text("pay_url")) || strings.Contains(got, older.text("pay_url")) {
		t.Errorf("with two orders: %s", got)
	}
	s.pay(latest)
	if got := home(); !strings.Contains(got, older.text("pay_url")) {
		t.Errorf("with a paid order: %s", got)
	}
	remote := newService(t, withDocs, func(c *handlers.Config, _ *service.Config) { c.Home.Private = false })
	remote.sendWire(newOrder(`{"product_id":"editor","amount":1,"currency":"USD"}`)).must(t, 0)
	for name, got := range map[string]string{
		"another host":              s.homeAs("evil.example.com:8080"),
		"a host that looks like it": s.homeAs("127.0.0.1.evil.example.com"),
		"a proxy":                   home("X-Forwarded-For", "192.0.2.1"),
		"a public listener":         remote.send("GET", "/", "", "").body,
	} {
		if strings.Contains(got, "/pay/") || strings.Contains(got, "/home/anna") ||
			strings.Contains(got, "/dev.env") || !strings.Contains(got, "Create an order") ||
			!strings.Contains(got, "LICET_API_KEY</code> to an API key") {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, host := range []string{"localhost:8080", "LOCALHOST", "[::1]:80", "127.0.0.2"} {
		if got := s.homeAs(host); !strings.Contains(got, "/pay/") {
			t.Errorf("%s: %s", host, got)
		}
	}
}

// homeAs returns the page at / for a request that names a host.
func (s *fixture) homeAs(host string) string {
	s.t.Helper()
	c := s.dial()
	c.write("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
	return c.read().body
}
