package handlers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
)

// Routes for callers with an API key, and no others, need scopes, which API keys can have.
func TestScopesOfRoutes(t *testing.T) {
	for _, r := range apiRoutes() {
		name, scopes := r.method+" "+r.pattern, slices.Collect(r.scopes())
		for _, scope := range scopes {
			if !licensing.ValidScope(scope) {
				t.Errorf("%s asks for a key with the scope %q, which no key has", name, scope)
			}
		}
		if needed := r.access == RequiredAuth; needed != (len(scopes) > 0) {
			t.Errorf("%s needs an API key: %v, with the scopes %q", name, needed, scopes)
		}
	}
}

// Each code has one reason.
func TestCodesDiffer(t *testing.T) {
	seen := make(map[int]licensing.Reason)
	for reason, k := range kinds() {
		if other, twice := seen[k.code()]; twice {
			t.Errorf("code %d has the reasons %s and %s", k.code(), reason, other)
		}
		seen[k.code()] = reason
	}
}

// A body limit is looked up by the raw path, before anything is matched.
func TestBodyLimitsAreOnPlainPatterns(t *testing.T) {
	for _, r := range apiRoutes() {
		if r.limit != 0 && strings.Contains(r.pattern, "{") {
			t.Errorf("%s %s has a limit of its own and variable segments", r.method, r.pattern)
		}
		if r.access == OptionalAuth && r.body != noBody && r.limit != openBodyLimit {
			t.Errorf("%s %s is open, and its limit is %d", r.method, r.pattern, r.limit)
		}
	}
}

func TestPublicURL(t *testing.T) {
	instruments := metrics.New(prometheus.NewRegistry(), "", "", "")
	n := service.New(service.Config{Config: node.Config{Clock: time.Now, Metrics: instruments}})
	for given, want := range map[string][3]string{
		"https://pay.example.com":        {"https://pay.example.com", "https://pay.example.com", ""},
		"https://Pay.Example.com:8443/":  {"https://Pay.Example.com:8443", "https://pay.example.com:8443", ""},
		"https://example.com/licenses//": {"https://example.com/licenses", "https://example.com", "/licenses"},
		"https://example.com:443":        {"https://example.com:443", "https://example.com", ""},
		"http://127.0.0.1:8080":          {"http://127.0.0.1:8080", "http://127.0.0.1:8080", ""},
		"":                               {"", "", ""},
	} {
		s := New(Config{Node: n, PublicURL: given, Log: zerolog.Nop(), Metrics: instruments})
		if got := [3]string{s.cfg.PublicURL, s.origin, s.basePath}; got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}
