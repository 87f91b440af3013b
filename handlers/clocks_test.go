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
	s.send("GET", "/readyz", "", "").must(t, 50300) // it has just started, and compared nothing
	nodetest.MeetNodes(comparison, 0, 0)
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

// TestClockInDoubt: a node whose clock differs from that of the only other node serves, except for lists of
// revocations: programs trust a list by its time.
func TestClockInDoubt(t *testing.T) {
	t.Parallel()
	comparison := nodetest.NewComparison(clocks.System())
	s := newService(t, func(_ *handlers.Config, c *service.Config) { c.Clocks = comparison })
	license := s.license()
	nodetest.MeetNodes(comparison, 0)
	s.receiptKeys()
	nodetest.MeetNodes(comparison, -time.Hour)
	a := s.send("GET", revocationsPath, "", "").must(t, 50300)
	if a.header.Get("Retry-After") == "" || a.header.Get("Cache-Control") != "no-store" ||
		!strings.Contains(a.body, "clock") {
		t.Errorf("%s %v", a.body, a.header)
	}
	s.get(license).must(t, 0)
	nodetest.MeetNodes(comparison, 0)
	s.send("GET", revocationsPath, "", "").must(t, 0)
}

// TestClockAhead: a node whose clock is ahead of that of the only other node refuses requests that ask for a receipt,
// for receipt files and for the set of receipt keys. It answers all else, without the receipts that a product adds. A
// node whose clock is behind gives receipts.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	comparison := nodetest.NewComparison(clocks.System())
	s := newService(t, func(_ *handlers.Config, c *service.Config) { c.Clocks = comparison })
	s.product("editor", `"max_devices":3,"receipt":true,"trial":{"validity":"P14D","per":"device"}`).must(t, 0)
	license := s.license()
	s.send("PUT", "/v1/receipt_keys", keyAll, "").must(t, 50300) // the clock is not compared yet
	nodetest.MeetNodes(comparison, 0)
	s.receiptKeys()
	asks := map[string]string{
		"/v1/licenses/activate": `{"license_key":"` + license + `","device_id":"laptop","receipt":true}`,
		"/v1/licenses/validate": `{"license_key":"` + license + `","device_id":"pc","receipt":true}`,
		"/v1/trials": `{"product_id":"editor","account_id":"acct_acme","mode":"test","device_id":"laptop",` +
			`"receipt":true}`,
		"/v1/receipts": `{"request":` + quoted(request(t, license, "lab")) + `}`,
	}
	s.activateFor(license, "pc", "")
	for _, ahead := range []time.Duration{-time.Hour, -5 * time.Second} {
		nodetest.MeetNodes(comparison, ahead) // of the other node
		for path, body := range asks {
			a := s.send("POST", path, "", body).must(t, 50300)
			if a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "clock") {
				t.Errorf("%s: %s %v", path, a.body, a.header)
			}
		}
		s.send("GET", keySetPath, "", "").must(t, 50300)
		s.send("PUT", "/v1/receipt_keys/next", keyAll, "").must(t, 50300)
		if a := s.activateFor(license, "pc", ""); a.data["receipt"] != nil {
			t.Errorf("a receipt by a clock that is ahead: %s", a.body)
		}
	}
	if got := s.get(license).data["current_devices"]; got != 1.0 {
		t.Errorf("%v devices are bound", got)
	}
	nodetest.MeetNodes(comparison, time.Hour)
	for path, body := range asks {
		s.send("POST", path, "", body).must(t, 0)
	}
	s.send("GET", keySetPath, "", "").must(t, 0)
	if a := s.activateFor(license, "pc", ""); a.data["receipt"] == nil {
		t.Errorf("no receipt by a clock that is behind: %s", a.body)
	}
}
