package handlers_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"licet/handlers"
	"licet/internal/nodetest"
	"licet/node/service"
	"licet/receipt"
)

// TestWrongClock: a node whose clock differs from most nodes' clocks answers every request with 50300 and is not ready,
// and says why. It serves again once its clock agrees.
func TestWrongClock(t *testing.T) {
	t.Parallel()
	comparison := nodetest.NewComparison(new(nodetest.Clock).Source)
	s := newService(t, withDocs, func(_ *handlers.Config, c *service.Config) { c.Clocks = comparison })
	license := s.license()
	s.get(license).must(t, 0)
	s.send("GET", "/readyz", "", "").must(t, 50300) // it has just started, and compared nothing
	nodetest.CompareWith(comparison, 0, 0)
	s.send("GET", "/readyz", "", "").must(t, 0)

	nodetest.CompareWith(comparison, 9*24*time.Hour, 9*24*time.Hour)
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

	nodetest.CompareWith(comparison, 0, 0)
	s.get(license).must(t, 0)
	s.send("GET", "/readyz", "", "").must(t, 0)
}

// TestClockInDoubt: a node whose clock differs from that of the only other node serves, except for lists of
// revocations, as programs trust a list by its time, and new rollouts, which tell licenses by their time of issue.
func TestClockInDoubt(t *testing.T) {
	t.Parallel()
	comparison := nodetest.NewComparison(new(nodetest.Clock).Source)
	s := newService(t, func(_ *handlers.Config, c *service.Config) { c.Clocks = comparison })
	license := s.license()
	nodetest.CompareWith(comparison, 0)
	s.receiptKeys()
	nodetest.CompareWith(comparison, -time.Hour)
	a := s.send("GET", revocationsPath, "", "").must(t, 50300)
	if a.header.Get("Retry-After") == "" || a.header.Get("Cache-Control") != "no-store" ||
		!strings.Contains(a.body, "clock") {
		t.Errorf("%s %v", a.body, a.header)
	}
	s.get(license).must(t, 0)
	const rollout, terms = "/v1/products/editor/rollout", `{"terms":["max_devices"]}`
	if a := s.send("POST", rollout, keyAll, terms).must(t, 50300); a.header.Get("Retry-After") == "" ||
		!strings.Contains(a.body, "clock") {
		t.Errorf("%s %v", a.body, a.header)
	}
	s.send("GET", rollout, keyAll, "").must(t, 40408)
	nodetest.CompareWith(comparison, 0)
	s.send("GET", revocationsPath, "", "").must(t, 0)
	s.send("POST", rollout, keyAll, terms).must(t, 0)
}

// TestClocksTooFarApart: of two nodes whose clocks differ by half of revocation_max_age or more, neither gives
// receipts: if the later clock is right, devices would refuse each receipt soon after they got it, or at once. Requests
// that ask for a receipt or a receipt file are refused before they bind a device. The nodes answer all else, without
// the receipts that a product adds.
func TestClocksTooFarApart(t *testing.T) {
	t.Parallel()
	comparison := nodetest.NewComparison(new(nodetest.Clock).Source)
	s := newService(t, func(_ *handlers.Config, c *service.Config) { c.Clocks = comparison })
	s.product("editor", `"max_devices":3,"receipt":true,"revocation_max_age":"PT10M",`+
		`"trial":{"validity":"P14D","per":"device"}`).must(t, 0)
	license := s.license()
	s.send("PUT", "/v1/receipt_keys", keyAll, "").must(t, 50300) // the clock is not compared yet
	nodetest.CompareWith(comparison, 0)
	s.receiptKeys()
	asks := map[string]string{
		"/v1/licenses/activate": `{"license_key":"` + license + `","device_id":"laptop","receipt":true}`,
		"/v1/licenses/validate": `{"license_key":"` + license + `","device_id":"pc","receipt":true}`,
		"/v1/trials": `{"product_id":"editor","account_id":"acct_acme","mode":"test","device_id":"laptop",` +
			`"receipt":true}`,
		"/v1/receipts": `{"request":` + quoted(request(t, license, "lab")) + `}`,
	}
	s.activateFor(license, "pc", "")
	for _, ahead := range []time.Duration{-time.Hour, time.Hour, -5 * time.Minute, 5 * time.Minute} {
		nodetest.CompareWith(comparison, ahead) // of the other node
		for path, body := range asks {
			a := s.send("POST", path, "", body).must(t, 50300)
			if a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "clock") {
				t.Errorf("%s: %s %v", path, a.body, a.header)
			}
		}
		s.send("PUT", "/v1/receipt_keys/next", keyAll, "").must(t, 50300)
		if a := s.activateFor(license, "pc", ""); a.data["receipt"] != nil {
			t.Errorf("a receipt by clocks that are %v apart: %s", ahead, a.body)
		}
	}
	if got := s.get(license).data["current_devices"]; got != 1.0 {
		t.Errorf("%v devices are bound", got)
	}
	for _, ahead := range []time.Duration{-4 * time.Minute, 4 * time.Minute} {
		nodetest.CompareWith(comparison, ahead)
		for path, body := range asks {
			s.send("POST", path, "", body).must(t, 0)
		}
		if a := s.activateFor(license, "pc", ""); a.data["receipt"] == nil {
			t.Errorf("no receipt by clocks that are %v apart: %s", ahead, a.body)
		}
	}
}

// TestReceiptsOfTwoClocks: of two nodes whose clocks differ by minutes or hours, both make receipts, receipt files and
// sets of receipt keys. Devices accept all of these at once, whichever clock is right, also after documents of the
// other node, and no receipt for longer than revocation_max_age.
func TestReceiptsOfTwoClocks(t *testing.T) {
	t.Parallel()
	comparison := nodetest.NewComparison(new(nodetest.Clock).Source)
	s := newService(t, func(_ *handlers.Config, c *service.Config) { c.Clocks = comparison })
	s.product("editor", `"max_devices":3,"receipt":true,"revocation_max_age":"P1D"`).must(t, 0)
	license := s.license()
	nodetest.CompareWith(comparison, 0)
	root, err := receipt.ParseRoot(s.receiptKeys().text("root"))
	if err != nil {
		t.Fatal(err)
	}
	const behind, ahead = 0, 1
	for _, apart := range []time.Duration{4 * time.Minute, 6 * time.Minute, 11 * time.Hour} {
		for _, right := range []int{behind, ahead} {
			s.clock.advance(24 * time.Hour)
			now := s.clock.Now() // the right time
			v := receipt.Verifier{Root: root, AccountID: "acct_acme", Mode: "test", ProductID: "editor"}
			seen := map[string]receipt.Seen{}
			check := func(set, document, device string) {
				t.Helper()
				v.DeviceID = device
				verified, after, err := v.Verify(receipt.Documents{Keys: set, Receipt: document}, seen[device], now)
				if err != nil {
					t.Fatalf("clocks %v apart, %d is right: %v", apart, right, err)
				}
				seen[device] = after
				if verified.IssuedAt > now.Unix() {
					t.Errorf("clocks %v apart, %d is right: the receipt is ahead by %d s", apart, right,
						verified.IssuedAt-now.Unix())
				}
				_, _, err = v.Verify(receipt.Documents{Keys: set, Receipt: document}, after, now.Add(24*time.Hour))
				var refused *receipt.Error
				if !errors.As(err, &refused) || refused.Reason != receipt.Stale {
					t.Errorf("clocks %v apart, %d is right: after revocation_max_age %v", apart, right, err)
				}
			}
			for _, node := range []int{ahead, behind, ahead} {
				by := apart * time.Duration(node-right)
				s.clock.advance(by)
				nodetest.CompareWith(comparison, apart*time.Duration(1-2*node)) // of the other node
				document := s.activateFor(license, "pc", `,"receipt":true`).text("receipt")
				var set struct{ Signed string }
				if err := json.Unmarshal([]byte(s.send("GET", keySetPath, "", "").body), &set); err != nil {
					t.Fatal(err)
				}
				check(set.Signed, document, "pc")
				made := s.makeFile("", request(t, license, "lab"), "").must(t, 0)
				file, err := receipt.ParseFile(made.text("receipt_file"))
				if err != nil {
					t.Fatal(err)
				}
				check(file.Keys, file.Receipt, "lab")
				s.clock.advance(-by)
			}
		}
	}
}
