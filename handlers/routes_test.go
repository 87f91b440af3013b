package handlers

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/metrics"
)

const apiReference = "../docs/reference/api.md"

// The published table of routes has one row for each route, with its scopes, and no other rows.
func TestRoutesArePublished(t *testing.T) {
	text, err := os.ReadFile(apiReference)
	if err != nil {
		t.Fatal(err)
	}
	published := make(map[string]string) // the scope, by method and path
	for line := range strings.Lines(string(text)) {
		if row := publishedRoute.FindStringSubmatch(line); row != nil {
			if _, twice := published[row[1]]; twice {
				t.Errorf("%s has two rows of %s", apiReference, row[1])
			}
			published[row[1]] = row[2]
		}
	}
	for _, r := range apiRoutes() {
		name, needs := r.method+" "+r.pattern, "none"
		scopes := slices.Collect(r.scopes())
		for _, scope := range scopes {
			if !licensing.ValidScope(scope) {
				t.Errorf("%s asks for a key with the scope %q, which no key has", name, scope)
			}
		}
		switch {
		case r.access == RequiredAuth && len(scopes) == 0:
			t.Errorf("%s asks for a key with any scope", name)
		case r.access != RequiredAuth && r.scope != "":
			t.Errorf("%s has a scope and asks for no key", name)
		case r.access == RequiredAuth:
			needs = "`" + strings.Join(scopes, "` and `") + "`"
		case r.access == OptionalAuth:
			needs = "open"
		}
		if got, has := published[name]; !has || got != needs {
			t.Errorf("%s lacks a row beginning with\n| `%s` | %s |", apiReference, name, needs)
		}
		delete(published, name)
	}
	for name := range published {
		t.Errorf("%s has a row of %s, which is no route", apiReference, name)
	}
}

// publishedRoute matches the beginning of a row of the published table.
var publishedRoute = regexp.MustCompile("^\\| `([A-Z]+ /[^`]*)` \\| ([^|]*) \\|")

// The reference lists every code with its reason.
func TestCodesArePublished(t *testing.T) {
	text, err := os.ReadFile(apiReference)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	for reason, k := range kinds() {
		if seen[k.code()] {
			t.Errorf("code %d has two reasons", k.code())
		}
		seen[k.code()] = true
		if row := fmt.Sprintf("| %d | `%s` |", k.code(), reason); !strings.Contains(string(text), row) {
			t.Errorf("%s lacks a row beginning with\n%s", apiReference, row)
		}
	}
}

// A body limit is looked up by the raw path, before anything is matched.
func TestBodyLimitsAreOnPlainPatterns(t *testing.T) {
	for _, r := range apiRoutes() {
		if r.limit != 0 && strings.Contains(r.pattern, "{") {
			t.Errorf("%s %s has a limit of its own and variable segments", r.method, r.pattern)
		}
		if r.access == OptionalAuth && r.limit != openBodyLimit {
			t.Errorf("%s %s is open, and its limit is %d", r.method, r.pattern, r.limit)
		}
	}
}

func TestPublicURL(t *testing.T) {
	for given, want := range map[string][3]string{
		"https://pay.example.com":        {"https://pay.example.com", "https://pay.example.com", ""},
		"https://Pay.Example.com:8443/":  {"https://Pay.Example.com:8443", "https://pay.example.com:8443", ""},
		"https://example.com/licenses//": {"https://example.com/licenses", "https://example.com", "/licenses"},
		"https://example.com:443":        {"https://example.com:443", "https://example.com", ""},
		"http://127.0.0.1:8080":          {"http://127.0.0.1:8080", "http://127.0.0.1:8080", ""},
		"":                               {"", "", ""},
	} {
		s := New(Config{PublicURL: given, Log: zerolog.Nop(), Metrics: metrics.New(prometheus.NewRegistry(), "", "", "")})
		if got := [3]string{s.cfg.PublicURL, s.origin, s.basePath}; got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}
