package handlers_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"licet/handlers"
	"licet/internal/nodetest"
	"licet/node/clocks"
	"licet/node/service"
)

// TestWrongClock: a node whose clock differs from most nodes' clocks answers every request with 50300 and is not ready,
// and says why. It serves again once its clock agrees.
func TestWrongClock(t *testing.T) {
	t.Parallel()
	comparison := nodetest.NewComparison(clocks.System())
	s := newService(t, withDocs, func(_ *handlers.Config, c *service.Config) { c.Clocks = comparison })
	license := s.license()
	s.get(license).must(t, 0)
	s.send("GET", "/readyz", "", "").must(t, 0)

	nodetest.MeetNodes(comparison, 9*24*time.Hour, 9*24*time.Hour)
	variable := regexp.MustCompile(`\{\w+\}`)
	for _, r := range handlers.Routes() {
		path := variable.ReplaceAllString(r.Pattern, license)
		for _, key := range []string{keyAll, "", testKey("nobody")} {
			a := s.send(r.Method, path, key, "{}")
			switch {
			case r.Pattern == "/livez":
				a.must(t, 0)
			case r.Page && a.status != 503:
				t.Errorf("%s %s answers %d", r.Method, path, a.status)
			case !r.Page && (a.code != 50300 || a.header.Get("Retry-After") == "" ||
				!strings.Contains(a.body, "clock")):
				t.Errorf("%s %s answers %d %s", r.Method, path, a.status, a.body)
			}
		}
	}
	if got := s.gather("licet_ready").GetMetric()[0].GetGauge().GetValue(); got != 0 {
		t.Errorf("licet_ready is %v", got)
	}

	nodetest.MeetNodes(comparison, 0, 0)
	s.get(license).must(t, 0)
	s.send("GET", "/readyz", "", "").must(t, 0)
}
