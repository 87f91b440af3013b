package handlers_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/handlers"
	"licet/handlers/limits"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node"
	"licet/node/service"
)

// limited makes a service have limits that use its clock.
func limited(cfg limits.Config) []option {
	return []option{func(h *handlers.Config, n *service.Config) {
		cfg := cfg // other tests use the same option
		cfg.Clock = n.Clock
		l, err := limits.New(cfg)
		if err != nil {
			panic(err)
		}
		h.Limits = l
	}}
}

// TestWriteLimits: a refusal by a limit of the node carries the same headers as other limits, and changes nothing.
func TestWriteLimits(t *testing.T) {
	t.Parallel()
	s := newService(t, func(_ *handlers.Config, n *service.Config) {
		n.WriteLimits.NewDevices = node.WriteLimit{Count: 2, Per: 20 * time.Second}
	})
	key := s.license()
	for i := range 2 {
		s.activate(key, fmt.Sprint(i)).must(t, 0).wantCounts(t, "", "")
	}
	refused := s.activate(key, "third")
	refused.wantLimited(t, "10")
	refused.wantCounts(t, `"new_devices";q=2;w=20`, `"new_devices";r=0;t=10`)
	s.activate(key, "0").must(t, 0).wantCounts(t, "", "")
	view := s.send("GET", "/v1/licenses/"+key, keyAll, "").must(t, 0)
	if got := view.data["current_devices"]; got != 2.0 {
		t.Errorf("current_devices is %v after a refusal, want 2", got)
	}
	s.clock.advance(10 * time.Second)
	s.activate(key, "third").must(t, 0)
}

// TestAccountBytesLimit: an account that has written too much creates nothing more for a while. It may still look up,
// revoke and remove, and other accounts notice nothing.
func TestAccountBytesLimit(t *testing.T) {
	t.Parallel()
	s := newService(t, func(_ *handlers.Config, n *service.Config) {
		n.WriteLimits.AccountBytes = node.WriteLimit{Count: 16 << 10, Per: 16 * time.Second}
	})
	key := s.license()
	large := `{"product_id":"editor","quantity":2,"metadata":{"a":"` + strings.Repeat("x", 16000) + `"}}`
	s.send("POST", "/v1/licenses", keyAll, large).must(t, 0)
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/licenses", large},
		{"POST", "/v1/orders", `{"product_id":"editor","amount":1,"currency":"EUR"}`},
		{"PUT", "/v1/products/other", `{}`},
		{"POST", "/v1/webhook_endpoints", `{"url":"https://example.com","event_types":["*"]}`},
		{"POST", "/v1/keys", `{"name":"more","scopes":["*"]}`},
		{"PATCH", "/v1/licenses/" + key, `{"metadata":{"a":1}}`},
	} {
		got := s.send(c.method, c.path, keyAll, c.body).must(t, 42900)
		if policy := got.header.Get("RateLimit-Policy"); !strings.HasSuffix(policy, `"account_bytes";q=16384;w=16`) {
			t.Errorf("%s %s: RateLimit-Policy: %s", c.method, c.path, policy)
		}
	}
	s.send("GET", "/v1/licenses/"+key, keyAll, "").must(t, 0)
	s.change(key, "revoke", "").must(t, 0)
	s.send("POST", "/v1/licenses", keyOther, `{"product_id":"theirs","quantity":1}`).must(t, 0)
	s.clock.advance(30 * time.Second)
	s.send("POST", "/v1/licenses", keyAll, large).must(t, 0)
}

// behindProxy makes the tests a trusted proxy, which names clients in X-Forwarded-For.
func behindProxy(h *handlers.Config, _ *service.Config) {
	h.Proxies = limits.Proxies{netip.MustParsePrefix("127.0.0.0/8")}
}

// guess is an activation with a license key that does not exist.
func guess() wire { return activation("LIC-00000-00000-00000-00000-00000", `"device_id":"d1"`) }

// from returns the same request from a client behind the proxy.
func (w wire) from(client string) wire {
	w.headers = append(slices.Clone(w.headers), "X-Forwarded-For", client)
	return w
}

// with returns the same request with an API key.
func (w wire) with(key string) wire {
	w.key = key
	return w
}

// wantCounts checks the rate limit headers of a response.
func (a answer) wantCounts(t *testing.T, policy, state string) {
	t.Helper()
	if got := a.header.Get("RateLimit-Policy"); got != policy {
		t.Errorf("RateLimit-Policy: %s, want %s", got, policy)
	}
	if got := a.header.Get("RateLimit"); got != state {
		t.Errorf("RateLimit: %s, want %s", got, state)
	}
}

// wantLimited checks that a response is the refusal of a rate limit.
func (a answer) wantLimited(t *testing.T, retryAfter string) {
	t.Helper()
	a.must(t, 42900)
	checkCommonHeaders(t, a)
	if got := a.header.Get("Retry-After"); got != retryAfter {
		t.Errorf("Retry-After: %q, want %q", got, retryAfter)
	}
	if failure := a.raw["error"].(map[string]any); failure["reason"] != "rate_limited" || failure["retryable"] != true {
		t.Errorf("got %s", a.body)
	}
}

// TestAddressLimit is a table of requests: whether they count against the limit of the client's address, their
// response, and their response beyond the limit.
func TestAddressLimit(t *testing.T) {
	t.Parallel()
	perMinute := limits.Rate{Count: 2, Per: time.Minute}
	s := newService(t, append(limited(limits.Config{Address: perMinute}), behindProxy)...)
	key, revoked, full := s.license(), s.license(), s.license()
	s.change(revoked, "revoke", "").must(t, 0)
	for i := range 3 {
		s.activate(full, fmt.Sprint(i)).must(t, 0)
	}
	asText := func(w wire) wire {
		w.headers = []string{"Content-Type", "-", "Content-Type", "text/plain"}
		return w
	}
	for i, c := range []struct {
		name  string
		wire  wire
		code  int
		costs bool
	}{
		{"not JSON", activationBody(`{`), 40000, true},
		{"a wrong type", activation(key, `"device_id":1`), 40000, true},
		{"no body", activationBody(""), 40000, true},
		{"mistyped", guess(), 40001, true},
		{"nobody's license", activation(absentKey(), `"device_id":"d"`), 40401, true},
		{"another account's", activation(key, `"device_id":"d","account_id":"acct_other"`), 40401, true},

		{"a good one", activation(key, `"device_id":"d"`), 0, false},
		{"bad members", activation(key, `"device_id":""`), 42200, false},
		{"no license key", activationBody(`{"device_id":"d"}`), 42200, false},
		{"not JSON by its type", asText(guess()), 41500, false},
		{"another product's", activation(key, `"device_id":"d","product_id":"viewer"`), 40304, false},
		{"a revoked license", activation(revoked, `"device_id":"d"`), 40301, false},
		{"a full license", activation(full, `"device_id":"d"`), 40901, false},
		{"bad credentials", guess().with(keyRevoked), 40100, false},
		{"a method that is not there", wire{method: "GET", path: "/v1/licenses/activate"}, 40500, false},
		{"a route that is not there", wire{method: "GET", path: "/v1/nothing"}, 40400, false},

		{"with an API key: mistyped", guess().with(keyAll), 40001, false},
		{"with an API key: another account's", activation(key, `"device_id":"d"`).with(keyOther), 40401, false},
		{"a lookup: mistyped", wire{method: "GET", path: "/v1/licenses/x", key: keyAll}, 40001, false},
		{"a lookup: nobody's license", wire{method: "GET", path: "/v1/licenses/" + absentKey(), key: keyAll}, 40401,
			false},
		{"an order: not JSON", newOrder(`{`), 40000, false},
		{"an order without API key", newOrder(`{`).with(""), 40100, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := fmt.Sprintf("203.0.113.%d", i)
			const policy = `"address";q=2;w=60`
			if c.costs {
				s.sendWire(c.wire.from(client)).must(t, c.code).wantCounts(t, policy, `"address";r=1;t=30`)
			} else {
				s.sendWire(c.wire.from(client)).must(t, c.code).wantCounts(t, "", "")
				s.sendWire(guess().from(client)).must(t, 40001).wantCounts(t, policy, `"address";r=1;t=30`)
			}
			s.sendWire(guess().from(client)).must(t, 40001).wantCounts(t, policy, `"address";r=0;t=30`)
			s.sendWire(guess().from(client)).wantLimited(t, "30")

			a := s.sendWire(c.wire.from(client))
			if c.costs {
				a.wantLimited(t, "30")
				a.wantCounts(t, policy, `"address";r=0;t=30`)
			} else {
				a.must(t, c.code).wantCounts(t, "", "")
			}
		})
	}
}

// TestAddressLimitRefills: the limit refills by the clock, one request every 30 s.
func TestAddressLimitRefills(t *testing.T) {
	t.Parallel()
	s := newService(t, limited(limits.Config{Address: limits.Rate{Count: 2, Per: time.Minute}})...)
	for range 2 {
		s.sendWire(guess()).must(t, 40001)
	}
	s.clock.advance(20500 * time.Millisecond)
	s.sendWire(guess()).wantLimited(t, "10")
	s.clock.advance(9500 * time.Millisecond)
	s.sendWire(guess()).must(t, 40001)
	s.sendWire(guess()).wantLimited(t, "30")
	s.clock.advance(time.Hour)
	s.sendWire(guess()).must(t, 40001).wantCounts(t, `"address";q=2;w=60`, `"address";r=1;t=30`)
}

// TestAddressOfTheClient: a client can't choose its address by a header. With IPv6, a /64 is one client.
func TestAddressOfTheClient(t *testing.T) {
	t.Parallel()
	one := limits.Config{Address: limits.Rate{Count: 1, Per: time.Minute}}
	for _, c := range []struct {
		name          string
		options       []option
		first, second string
		same          bool
	}{
		{"no proxy before the service", nil, "203.0.113.1", "203.0.113.2", true},
		{"two clients of a proxy", []option{behindProxy}, "203.0.113.1", "203.0.113.2", false},
		{"one client of a proxy", []option{behindProxy}, "203.0.113.1", "203.0.113.1", true},
		{"a client that lies", []option{behindProxy}, "1.1.1.1, 203.0.113.1", "2.2.2.2, 203.0.113.1", true},
		{"a client that names the proxy", []option{behindProxy}, "203.0.113.1", "127.0.0.1, 203.0.113.1", true},
		{"one network", []option{behindProxy}, "2001:db8:1:2::1", "2001:db8:1:2:ffff::1", true},
		{"two networks", []option{behindProxy}, "2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"nonsense counts for the proxy", []option{behindProxy}, "unknown", "x", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, append(limited(one), c.options...)...)
			s.sendWire(guess().from(c.first)).must(t, 40001)
			if a := s.sendWire(guess().from(c.second)); c.same != (a.code == 42900) {
				t.Errorf("%q after %q: %s", c.second, c.first, a.body)
			}
		})
	}
}

// TestGuessesDoNotReachTheStore: many guessed keys cost the store nothing, even before the limit refuses them. The
// limit accepts as many as it allows.
func TestGuessesDoNotReachTheStore(t *testing.T) {
	t.Parallel()
	const allowed, workers, each = 30, 8, 20
	s := newService(t, limited(limits.Config{Address: limits.Rate{Count: allowed, Per: time.Minute}})...)
	key := s.license()
	var read atomic.Int64
	s.store.onRead(func() { read.Add(1) })
	var group sync.WaitGroup
	var allowedCount, refused atomic.Int64
	for range workers {
		group.Go(func() {
			for range each {
				switch a := s.sendWire(guess()); a.code {
				case 40001:
					allowedCount.Add(1)
				case 42900:
					refused.Add(1)
				default:
					t.Errorf("got %s", a.body)
				}
			}
		})
	}
	group.Wait()
	if allowedCount.Load() != allowed || refused.Load() != workers*each-allowed {
		t.Errorf("%d requests got 40001, and %d got 42900", allowedCount.Load(), refused.Load())
	}
	if n := read.Load(); n != 0 {
		t.Errorf("the store was read %d times", n)
	}
	if got := s.limitedBy("address"); got != workers*each-allowed {
		t.Errorf("%v are counted as limited", got)
	}
	s.activate(key, "d1").must(t, 0)
}

// limitedBy returns the number of requests that a limit has refused, by the metric.
func (s *fixture) limitedBy(name string) float64 {
	for _, m := range s.gather("licet_rate_limited_total").GetMetric() {
		if m.GetLabel()[0].GetValue() == name {
			return m.GetCounter().GetValue()
		}
	}
	return 0
}

// TestAccountLimit: every request with a sufficient API key counts for the key's account and mode. A refusal comes
// before the body is read.
func TestAccountLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		wire func(license string) wire
		code int // without the limit
	}{
		{"a lookup", func(key string) wire { return wire{method: "GET", path: "/v1/licenses/" + key} }, 0},
		{"an order", func(string) wire { return newOrder(`{"product_id":"editor","amount":1,"currency":"USD"}`) }, 0},
		{"an activation", func(key string) wire { return activation(key, `"device_id":"d"`) }, 0},
		{"not JSON", func(string) wire { return newOrder("{") }, 40000},
		{"mistyped", func(string) wire { return guess() }, 40001},
		{"not found", func(string) wire { return wire{method: "GET", path: "/v1/orders/x"} }, 40403},
		{"bad members", func(string) wire { return newOrder("{}") }, 42200},
		{"not JSON by its type", func(string) wire {
			return wire{method: "POST", path: "/v1/orders", body: "{}",
				headers: []string{"Content-Type", "-", "Content-Type", "text/plain"}}
		}, 41500},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, limited(limits.Config{Account: limits.Rate{Count: 2, Per: 5 * time.Second}})...)
			w := c.wire(s.license()).with(keyAll)
			s.clock.advance(5 * time.Second)
			const policy = `"account";q=2;w=5`
			s.sendWire(w).must(t, c.code).wantCounts(t, policy, `"account";r=1;t=3`)
			s.sendWire(w).must(t, c.code).wantCounts(t, policy, `"account";r=0;t=3`)
			before := s.store.atRevision()
			a := s.sendWire(w)
			a.wantLimited(t, "3")
			a.wantCounts(t, policy, `"account";r=0;t=3`)
			if after := s.store.atRevision(); after != before {
				t.Errorf("something was written: revision %d became %d", before, after)
			}

			// The limit applies to all keys of the account in this mode, and to no others. End users have none.
			s.sendWire(wire{method: "GET", path: "/v1/orders/x", key: keyReadOnly}).wantLimited(t, "3")
			s.sendWire(wire{method: "GET", path: "/v1/orders/x", key: keyLive}).must(t, 40403)
			s.sendWire(wire{method: "GET", path: "/v1/orders/x", key: keyOther}).must(t, 40403).wantCounts(t, policy,
				`"account";r=1;t=3`)
			s.sendWire(guess()).must(t, 40001).wantCounts(t, "", "")
			s.clock.advance(2500 * time.Millisecond)
			s.sendWire(w).must(t, c.code)
			if got := s.limitedBy("account"); got != 2 {
				t.Errorf("%v are counted as limited", got)
			}
		})
	}
}

// authenticationLimit limits failed authentications, of clients behind a proxy.
func authenticationLimit(count int) []option {
	rate := limits.Rate{Count: count, Per: time.Minute}
	return append(limited(limits.Config{Authentication: rate}), behindProxy)
}

// followKeys lets the node remember API keys, and makes it remember some.
func (s *fixture) followKeys(keys ...string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.node.FollowKeys(ctx)
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
	for _, key := range keys {
		for remembered := false; !remembered; _, remembered = s.node.RememberedKey(key) {
			if _, err := s.node.Authenticate(ctx, key); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// TestGuessedAPIKeys: an address may guess a number of API keys. Then the node looks up no more keys for this address.
// API keys that the node remembers still work there, and all keys work from elsewhere.
func TestGuessedAPIKeys(t *testing.T) {
	t.Parallel()
	const allowed, address = 10, "203.0.113.1"
	s := newService(t, authenticationLimit(allowed)...)
	s.followKeys(keyAll)
	var reads atomic.Int64
	s.store.onRead(func() { reads.Add(1) })
	lookup := func(key string) wire { return wire{method: "GET", path: "/v1/orders/x", key: key}.from(address) }
	for range 3 * allowed { // good keys count for nothing, remembered or not
		s.sendWire(lookup(keyAll)).must(t, 40403).wantCounts(t, "", "")
	}
	s.sendWire(lookup(keyOther)).must(t, 40403).wantCounts(t, "", "")
	reads.Store(0)
	const policy = `"authentication";q=10;w=60`
	for i := range allowed {
		a := s.sendWire(lookup(testKey(fmt.Sprint("guess", i)))).must(t, 40100)
		a.wantCounts(t, policy, fmt.Sprintf(`"authentication";r=%d;t=6`, allowed-1-i))
	}
	if n := reads.Load(); n != allowed {
		t.Errorf("%d guesses cost %d requests to the store", allowed, n)
	}
	for i := range allowed {
		a := s.sendWire(lookup(testKey(fmt.Sprint("more", i))))
		a.wantLimited(t, "6")
		a.wantCounts(t, policy, `"authentication";r=0;t=6`)
	}
	s.sendWire(guess().with(testKey("guess")).from(address)).wantLimited(t, "6")
	s.sendWire(lookup(keyReadOnly)).wantLimited(t, "6") // the node does not remember this key
	if n := reads.Load(); n != allowed {
		t.Errorf("guesses above the limit cost %d requests to the store", n-allowed)
	}
	if got := s.limitedBy("authentication"); got != allowed+2 {
		t.Errorf("%v are counted as limited", got)
	}
	s.sendWire(lookup(keyAll)).must(t, 40403)
	s.sendWire(lookup(keyReadOnly).from("203.0.113.2")).must(t, 40403)
	s.sendWire(lookup(keyReadOnly)).must(t, 40403) // the node remembers it now
}

// TestGuessedExternalKeys: an address may guess a number of external keys. Then the node looks up no more of them for
// this address, so not even a right guess is answered. External keys that the node remembers still work there, and all
// work from elsewhere and with an API key.
func TestGuessedExternalKeys(t *testing.T) {
	t.Parallel()
	const allowed, address = 10, "203.0.113.1"
	perMinute := limits.Rate{Count: allowed, Per: time.Minute}
	s := newService(t, append(limited(limits.Config{Address: perMinute}), behindProxy)...)
	s.followKeys(keyAll)
	for _, key := range []string{"OLD-1", "OLD-2", "OLD-3"} {
		s.sendWire(externalGrant(key, 1)).must(t, 0)
	}
	many := make([]string, 5*allowed)
	for i := range many {
		many[i] = fmt.Sprint("MANY-", i)
		s.sendWire(externalGrant(many[i], 1)).must(t, 0)
	}
	use := func(key, mode string) wire {
		return activation(key, fmt.Sprintf(`"account_id":"acct_acme","mode":%q,"device_id":"d"`, mode)).from(address)
	}
	var machines sync.WaitGroup // behind one address, which start at once
	for _, key := range many {
		machines.Go(func() { s.sendWire(use(key, "test")).must(t, 0).wantCounts(t, "", "") })
	}
	machines.Wait()
	for range 3 * allowed {
		s.sendWire(use("OLD-1", "test")).must(t, 0).wantCounts(t, "", "")
	}
	s.sendWire(use("OLD-1", "sandbox")).must(t, 40401)
	var reads atomic.Int64
	s.store.onRead(func() { reads.Add(1) })
	for i := range allowed - 1 {
		s.sendWire(use(fmt.Sprint("GUESS-", i), "test")).must(t, 40401)
	}
	if n := reads.Load(); n != allowed-1 {
		t.Errorf("%d guesses cost %d requests to the store", allowed-1, n)
	}
	s.sendWire(use("GUESS", "test")).wantLimited(t, "6")
	s.sendWire(use("OLD-2", "test")).wantLimited(t, "6")
	s.sendWire(use("OLD-2", "live")).wantLimited(t, "6")
	if n := reads.Load(); n != allowed-1 {
		t.Errorf("guesses above the limit cost %d requests to the store", n-allowed+1)
	}
	s.sendWire(use("OLD-1", "test")).must(t, 0)
	s.sendWire(use("OLD-3", "test").with(keyAll)).must(t, 0)
	s.sendWire(use("OLD-2", "test").from("203.0.113.2")).must(t, 0)
	s.sendWire(use("OLD-2", "test")).must(t, 0) // the node remembers it now
}

// TestRevokedKeyInALoop: a client that sends a revoked API key all the time is limited, and keeps no other client of
// its address from working, whether or not the node remembers the other client's API key.
func TestRevokedKeyInALoop(t *testing.T) {
	t.Parallel()
	s := newService(t, authenticationLimit(10)...)
	s.followKeys(keyAll, keyRevoked)
	lookup := wire{method: "GET", path: "/v1/orders/x"}
	for range 5 {
		s.sendWire(lookup.with(keyRevoked)).must(t, 40100)
	}
	for range 100 {
		s.sendWire(lookup.with(keyRevoked)).wantLimited(t, "6")
		s.sendWire(lookup.with("")).must(t, 40100) // no credentials, so nothing to guess
	}
	s.sendWire(lookup.with(keyAll)).must(t, 40403)
	s.sendWire(lookup.with(keyOther)).must(t, 40403)
}

// TestBadCredentialsCount: whatever makes credentials bad, they count as a failed authentication.
func TestBadCredentialsCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		headers []string
		code    int
	}{
		"another scheme": {[]string{"Authorization", "Basic " + keyAll}, 40100},
		"two headers":    {[]string{"Authorization", "Bearer " + keyAll, "Authorization", "Bearer " + keyAll}, 40100},
		"a signature": {[]string{"Authorization", "Bearer " + keyAll, "Signature-Input", "x", "Signature", "y"},
			40101},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withRing := func(h *handlers.Config, n *service.Config) { h.Ring = n.Ring }
			s := newService(t, append(authenticationLimit(4), withRing)...)
			w := wire{method: "GET", path: "/v1/orders/x", headers: c.headers}
			s.sendWire(w).must(t, c.code)
			s.sendWire(w).must(t, c.code).wantCounts(t, `"authentication";q=4;w=60`, `"authentication";r=0;t=15`)
			s.sendWire(w).wantLimited(t, "15")
		})
	}
}

// TestGuessedPayTokens: an address may guess a number of payment links. Then the node looks up no more orders for this
// address.
func TestGuessedPayTokens(t *testing.T) {
	t.Parallel()
	const allowed, address = 10, "203.0.113.1"
	s := newService(t, authenticationLimit(allowed)...)
	good := strings.TrimPrefix(s.order("100").must(t, 0).text("pay_url"), publicURL)
	open := func(path string) answer { return s.sendWire(wire{method: "GET", path: path}.from(address)) }
	for range 3 * allowed {
		if a := open(good); a.status != 200 || a.header.Get("RateLimit") != "" {
			t.Fatalf("a good link: %d %v", a.status, a.header)
		}
	}
	var reads atomic.Int64
	s.store.onRead(func() { reads.Add(1) })
	wrong := good[:len(good)-4]
	for i := range allowed {
		if a := open(fmt.Sprint(wrong, 1000+i)); a.status != 404 {
			t.Fatalf("guess %d: %d %s", i, a.status, a.body)
		}
	}
	before := reads.Load()
	for _, w := range []wire{
		{method: "GET", path: wrong + "0000"}, {method: "GET", path: good},
		{method: "POST", path: good, body: "action=pay", headers: []string{"Content-Type", "-", "Content-Type",
			"application/x-www-form-urlencoded"}},
	} {
		a := s.sendWire(w.from(address))
		if a.status != 429 || a.header.Get("Retry-After") != "6" || !strings.Contains(a.body, "try again") {
			t.Errorf("above the limit: %d %v %s", a.status, a.header, a.body)
		}
		a.wantCounts(t, `"authentication";q=10;w=60`, `"authentication";r=0;t=6`)
	}
	if n := reads.Load(); n != before {
		t.Errorf("guesses above the limit cost %d requests to the store", n-before)
	}
	if a := s.sendWire(wire{method: "GET", path: good}.from("203.0.113.2")); a.status != 200 {
		t.Errorf("from elsewhere: %d", a.status)
	}
	s.clock.advance(6 * time.Second)
	if a := open(good); a.status != 200 {
		t.Errorf("later: %d", a.status)
	}
}

// TestLookUpsAtOnce: while the store is slow, the look-ups of one client address leave places to the look-ups of other
// addresses.
func TestLookUpsAtOnce(t *testing.T) {
	t.Parallel()
	const most, greedy = 256, "203.0.113.1"
	patient := func(h *handlers.Config, _ *service.Config) { h.RequestTimeout = time.Minute }
	s := newService(t, behindProxy, patient)
	lookup := func(i int) wire {
		return wire{method: "GET", path: "/v1/orders/x", key: testKey(fmt.Sprint("guess", i))}
	}
	began, goOn := make(chan struct{}, most), make(chan struct{})
	s.store.onRead(func() {
		began <- struct{}{}
		<-goOn
	})
	var group sync.WaitGroup
	for i := range most {
		group.Go(func() { s.sendWire(lookup(i).from(greedy)).must(t, 40100) })
	}
	for range most / 2 {
		<-began
	}
	s.server.AwaitLookUpsWaiting(most / 2)
	if len(began) != 0 {
		t.Errorf("%d more look-ups of one address are under way than allowed", len(began))
	}
	s.store.onRead(nil)
	s.sendWire(wire{method: "GET", path: "/v1/orders/x", key: keyAll}.from("203.0.113.2")).must(t, 40403)
	close(goOn)
	group.Wait()
}

// TestUnknownLicensesAtOnce: an address with 1,000 and more licenses under way that the node does not know, while the
// store is slow, leaves places for such licenses to other addresses.
func TestUnknownLicensesAtOnce(t *testing.T) {
	t.Parallel()
	const sent, limit = 2600, 5024
	s := newService(t, behindProxy, func(h *handlers.Config, _ *service.Config) { h.RequestTimeout = time.Minute })
	look := func(i int) wire {
		entropy := [keyring.LicenseKeyEntropy]byte{byte(i), byte(i >> 8)}
		return activation(serviceKeys.Text(serviceKeys.Mint("LIC", ownerAcme, entropy)), `"device_id":"d1"`)
	}
	began, refused, goOn := make(chan struct{}, sent), make(chan struct{}, sent), make(chan struct{})
	s.store.onRead(func() {
		began <- struct{}{}
		<-goOn
	})
	var group sync.WaitGroup
	for i := range sent {
		group.Go(func() {
			if s.sendWire(look(i).from("203.0.113.1")).code == 50301 {
				refused <- struct{}{}
			}
		})
	}
	underWay := 0
	for range sent {
		select {
		case <-began:
			underWay++
		case <-refused:
		}
	}
	if underWay < 1000 || underWay > limit/3+1 {
		t.Errorf("%d look-ups of one address are under way", underWay)
	}
	s.store.onRead(nil)
	s.sendWire(look(sent).from("203.0.113.2")).must(t, 40401)
	close(goOn)
	group.Wait()
}

// TestGuessesAtOnce: guesses that come at the same time don't exceed the limit either.
func TestGuessesAtOnce(t *testing.T) {
	t.Parallel()
	const allowed = 10
	s := newService(t, authenticationLimit(allowed)...)
	var reads atomic.Int64
	s.store.onRead(func() { reads.Add(1) })
	var group sync.WaitGroup
	for i := range 10 * allowed {
		group.Go(func() { s.send("GET", "/v1/orders/x", testKey(fmt.Sprint("guess", i)), "") })
	}
	group.Wait()
	if n := reads.Load(); n != allowed {
		t.Errorf("the store was asked %d times, want %d", n, allowed)
	}
}

func (s *memStore) atRevision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// TestAccountLimitComesAfterScope: errors of the scope, and of all checks before, win over the limit.
func TestAccountLimitComesAfterScope(t *testing.T) {
	t.Parallel()
	s := newService(t, limited(limits.Config{Account: limits.Rate{Count: 1, Per: time.Minute}})...)
	lookup := wire{method: "GET", path: "/v1/orders/x", key: keyReadOnly}
	unscoped := newOrder("{}").with(keyReadOnly)
	for range 3 {
		s.sendWire(unscoped).must(t, 40300).wantCounts(t, "", "")
	}
	s.sendWire(lookup).must(t, 40403)
	s.sendWire(lookup).wantLimited(t, "60")
	s.sendWire(unscoped).must(t, 40300)
	s.sendWire(wire{method: "PUT", path: "/v1/orders", key: keyReadOnly}).must(t, 40500)
	s.sendWire(lookup.with(keyExpired)).must(t, 40100)
}

// TestLargeRequestsCountMore: a request counts as one more request of its account for every 16 KiB that it reads from
// the store or returns. The bytes of a change count eight times. A new API key counts as 100 more, and so does a new
// secret. Each order that a redaction changes counts as four more.
func TestLargeRequestsCountMore(t *testing.T) {
	t.Parallel()
	const tokens, token, apiKeyTokens = 1000, 16 << 10, 100
	s := newService(t, append(limited(limits.Config{Account: limits.Rate{Count: tokens, Per: tokens * time.Second}}),
		maxAPIKeys(1000)...)...)
	key := s.send("POST", "/v1/licenses", keyAll, `{"product_id":"large","quantity":1,"max_devices":0}`).must(t, 0).
		data["licenses"].([]any)[0].(map[string]any)["license_key"].(string)
	for i := range 250 {
		s.activate(key, fmt.Sprint(i)).must(t, 0)
	}
	for i := range 300 {
		s.store.addKey(fmt.Sprintf("lk_many%03d", i), licensing.APIKey{
			Owner: licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}, RevokedAt: s.clock.Now(),
		})
	}
	for range 10 {
		s.sendWire(newOrder(`{"product_id":"editor","amount":1,"currency":"USD","buyer_email":"ten@example.com"}`)).
			must(t, 0)
	}
	// The server counts the response's memory: up to twice its length.
	returned := func(factor int) func(answer) (least, most int) {
		return func(a answer) (least, most int) {
			return factor * len(a.body) / token, factor * 2 * len(a.body) / token
		}
	}
	fixed := func(least, most int) func(answer) (int, int) {
		return func(answer) (int, int) { return least, most }
	}
	metadata := fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 10_000))
	const path = "/v1/licenses/"
	for _, c := range []struct {
		what string
		wire wire
		more func(answer) (least, most int) // requests that it counts as, besides itself
	}{
		{"a lookup", wire{method: "GET", path: path + key}, returned(1)},
		{"a change", wire{method: "PATCH", path: path + key, body: `{"metadata":{"a":1}}`}, returned(8)},
		{"a grant", wire{method: "POST", path: "/v1/licenses", body: `{"product_id":"large","quantity":20,"metadata":` +
			metadata + `}`}, returned(8)},
		{"a small lookup", wire{method: "GET", path: path + s.license()}, fixed(0, 0)},
		{"a small change", wire{method: "PATCH", path: path + s.license(), body: `{"metadata":{"a":1}}`}, fixed(0, 0)},
		{"another API key", newKey(`{"name":"shop","scopes":["orders"]}`),
			fixed(apiKeyTokens+300*listedKey/token, apiKeyTokens+310*listedKey/token)},
		{"a new secret", wire{method: "POST", path: "/v1/keys/" + keyID(keyAll) + "/rotate"},
			fixed(apiKeyTokens, apiKeyTokens)},
		{"a redaction of ten orders", wire{method: "POST", path: "/v1/redactions",
			body: `{"buyer_email":"ten@example.com"}`}, fixed(40, 42)},
	} {
		s.clock.advance(tokens * time.Second) // all tokens are back
		const policy = `"account";q=1000;w=1000`
		a := s.sendWire(c.wire.with(keyAll)).must(t, 0)
		next := s.sendWire(wire{method: "GET", path: "/v1/orders/x", key: keyAll}).must(t, 40403)
		var remaining int
		if _, err := fmt.Sscanf(next.header.Get("RateLimit"), `"account";r=%d;t=1`, &remaining); err != nil {
			t.Fatal(err)
		}
		if least, most := c.more(a); tokens-2-remaining < least || tokens-2-remaining > most {
			t.Errorf("%s of %d bytes counts as %d more requests, want %d to %d", c.what, len(a.body),
				tokens-2-remaining, least, most)
		}
		s.sendWire(wire{method: "GET", path: "/v1/orders/x", key: keyOther}).must(t, 40403).wantCounts(t, policy,
			`"account";r=999;t=1`)
	}
}

// TestLargePagesAtOnce: pages of a list that wait for a place are refused once the pages before them have read more
// than the account's limit allows.
func TestLargePagesAtOnce(t *testing.T) {
	t.Parallel()
	const pages, places = 8, 4 // of one owner
	owner := licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}
	s := newService(t, limited(limits.Config{Account: limits.Rate{Count: 1 + pages, Per: time.Minute}})...)
	s.send("GET", "/v1/keys?limit=1", keyAll, "").must(t, 0)
	for i := range 100 { // a page counts as 6 more requests
		s.store.addKey(fmt.Sprint("lk_", i), licensing.APIKey{Owner: owner})
	}
	reading, goOn := make(chan struct{}, pages), make(chan struct{})
	s.store.listingKeys = func() {
		reading <- struct{}{}
		<-goOn
	}
	answers := make(chan answer)
	for range pages {
		go func() { answers <- s.send("GET", "/v1/keys?limit=100", keyAll, "") }()
	}
	for range places {
		<-reading
	}
	s.awaitInFlight(pages)
	close(goOn)
	read := 0
	for range pages {
		if a := <-answers; a.code != 42900 {
			a.must(t, 0)
			read++
		} else {
			a.wantLimited(t, a.header.Get("Retry-After"))
			a.wantCounts(t, `"account";q=9;w=60`, a.header.Get("RateLimit"))
		}
	}
	if read < places || read == pages {
		t.Errorf("%d pages of %d were read, want %d", read, pages, places)
	}
}

// TestLimitedOrderIsMadeLater: a refusal is no result of its Idempotency-Key.
func TestLimitedOrderIsMadeLater(t *testing.T) {
	t.Parallel()
	s := newService(t, limited(limits.Config{Account: limits.Rate{Count: 1, Per: time.Minute}})...)
	s.order("1")
	w := newOrder(`{"product_id":"editor","amount":1,"currency":"USD"}`).once("k")
	s.sendWire(w).wantLimited(t, "60")
	s.clock.advance(time.Minute)
	if made := s.sendWire(w).must(t, 0); made.status != 201 || made.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("afterwards: %d %s", made.status, made.body)
	}
}

// TestLicenseLimit: activations and validations of a license count, from any client.
func TestLicenseLimit(t *testing.T) {
	t.Parallel()
	s := newService(t, limited(limits.Config{
		Account: limits.Rate{Count: 100, Per: time.Second}, License: limits.Rate{Count: 2, Per: time.Minute},
	})...)
	key, other := s.license(), s.license()
	s.clock.advance(time.Second)
	const policy = `"license";q=2;w=60`
	w := activation(key, `"device_id":"d"`)
	s.sendWire(activation(key, `"device_id":""`)).must(t, 42200).wantCounts(t, "", "")
	s.sendWire(guess()).must(t, 40001).wantCounts(t, "", "")
	s.sendWire(w).must(t, 0).wantCounts(t, policy, `"license";r=1;t=30`)
	s.sendWire(activation(strings.ToLower(key), `"device_id":"d"`).with(keyAll)).must(t, 0).
		wantCounts(t, `"account";q=100;w=1, `+policy, `"account";r=99;t=1, "license";r=0;t=30`)

	before := s.store.atRevision()
	a := s.sendWire(activation(key, `"device_id":"another"`))
	a.wantLimited(t, "30")
	a.wantCounts(t, policy, `"license";r=0;t=30`)
	a = s.sendWire(w.with(keyAll))
	a.wantLimited(t, "30")
	a = s.sendWire(validation(key, `"device_id":"d"`))
	a.wantLimited(t, "30")
	if after := s.store.atRevision(); after != before {
		t.Errorf("something was written: revision %d became %d", before, after)
	}
	if got := s.limitedBy("license"); got != 3 {
		t.Errorf("%v are counted as limited", got)
	}

	// The limit applies to no other request about the license, and to no other license.
	s.send("GET", "/v1/licenses/"+key, keyAll, "").must(t, 0)
	s.activate(other, "d").must(t, 0)
	s.clock.advance(30 * time.Second)
	s.sendWire(w).must(t, 0)
	s.sendWire(w).wantLimited(t, "30")
}

// TestOverloadCostsNothing: the refusals of a full node count against no limit.
func TestOverloadCostsNothing(t *testing.T) {
	t.Parallel()
	once := limits.Rate{Count: 1, Per: time.Minute}
	s := newService(t, append(limited(limits.Config{Address: once, Account: once, License: once}), smallest)...)
	free := s.fill()
	for _, w := range []wire{guess(), guess().with(keyAll), activation(absentKey(), `"device_id":"d"`)} {
		s.sendWire(w).must(t, 50301).wantCounts(t, "", "")
	}
	free()
	s.sendWire(guess()).must(t, 40001)
	s.sendWire(guess()).wantLimited(t, "60")
}

// TestScriptsSeeLimits: scripts of other sites may read the rate limit headers of routes for end users.
func TestScriptsSeeLimits(t *testing.T) {
	t.Parallel()
	s := newService(t, limited(limits.Config{Address: limits.Rate{Count: 1, Per: time.Minute}})...)
	for range 2 {
		if got := s.sendWire(guess()).header.Get("Access-Control-Expose-Headers"); got != "X-Request-Id, "+
			"Retry-After, ETag, RateLimit, RateLimit-Policy" {
			t.Errorf("the response exposes %q", got)
		}
	}
}
