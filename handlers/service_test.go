package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"licet/delivery/webhook"
	"licet/handlers"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
	"licet/payment"
)

// ownerAcme is the owner of most of the API keys.
var ownerAcme = licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}

// The API keys of the test service.
var (
	keyAll      = testKey("all")
	keyOther    = keyOf(licensing.Owner{AccountID: "acct_other", Mode: licensing.Test}, "other")
	keyLive     = keyOf(licensing.Owner{AccountID: "acct_acme", Mode: licensing.Live}, "same")
	keyReadOnly = testKey("reader") // licenses:read and orders:read
	keyKeys     = testKey("keys")   // keys and orders
	keyExpired  = testKey("expired")
	keyRevoked  = testKey("revoked")
)

// serviceKeys are the service's license keys.
var serviceKeys = keyring.NewLicenseKeys(keyring.NewKeyCheck(bytes.Repeat([]byte{7}, 32)),
	keyring.NewIDKey([keyring.IDKeySize]byte{7}))

// parsedKey returns the license key with a text.
func parsedKey(text string) licensing.LicenseKey {
	key, _, err := serviceKeys.Parse(text)
	if err != nil {
		panic(err)
	}
	return key
}

// testKey returns an API key of ownerAcme with a name instead of random bytes. The name has up to 20 bytes.
func testKey(name string) string { return keyOf(ownerAcme, name) }

func keyOf(owner licensing.Owner, name string) string {
	var entropy [keyring.APIKeyEntropy]byte
	copy(entropy[:], name)
	return serviceKeys.MintAPIKey(owner, entropy)
}

const publicURL = "https://pay.example.com"

// fixture is a whole server on a real listener, before a memStore.
type fixture struct {
	t        *testing.T
	addr     string
	store    *memStore
	sent     *memDeliveries
	node     *service.Service
	clock    *clock
	log      *logBuffer
	registry *prometheus.Registry
	server   *handlers.Server
	config   handlers.Config
	client   *http.Client
}

// clock is set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// logBuffer contains what was logged.
type logBuffer struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes.String()
}

// lines parses what was logged for requests.
func (l *logBuffer) requests(t *testing.T) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for line := range strings.Lines(l.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		if fields["message"] == "request" {
			lines = append(lines, fields)
		}
	}
	return lines
}

// fixedEntropy returns the same bytes in every run, so that golden files can contain keys and order
// numbers.
type fixedEntropy struct {
	mu     sync.Mutex
	stream *rand.ChaCha8
}

func (e *fixedEntropy) Read(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stream.Read(p)
}

// option changes the configuration of a service.
type option func(*handlers.Config, *service.Config)

func newService(t *testing.T, options ...option) *fixture {
	t.Helper()
	s := &fixture{
		t:        t,
		store:    newMemStore(),
		clock:    &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC)},
		log:      &logBuffer{},
		registry: prometheus.NewRegistry(),
	}
	s.sent = newMemDeliveries(s.store)
	log := zerolog.New(s.log)
	instruments := metrics.New(s.registry, "test", "test", "test")
	nodeConfig := service.Config{
		Config: node.Config{
			Records:     s.store,
			Queries:     s.store,
			LicenseKeys: serviceKeys,
			Clock:       s.clock.Now,
			Metrics:     instruments,
			Log:         log,
		},
		Sweeps:     s.store,
		Events:     s.store,
		Deliveries: s.sent,
		Keys:       s.store,
		Ring:       testRing(t),
		Entropy:    &fixedEntropy{stream: rand.NewChaCha8([32]byte{})},
	}
	policy := webhook.Policy{Loopback: true}
	s.config = handlers.Config{
		Metrics: instruments, Log: log, PublicURL: publicURL, Ring: nodeConfig.Ring,
		Webhooks: policy, Pings: webhook.NewSender(webhook.Config{Policy: policy, Version: "test", Clock: s.clock.Now}),
	}
	t.Cleanup(s.config.Pings.Close)
	for _, o := range options {
		o(&s.config, &nodeConfig)
	}
	s.node = service.New(nodeConfig)
	s.config.Node = s.node
	s.config.Desk = payment.NewDesk(s.node, payment.ForMode(licensing.Test, payment.Sandbox{Node: s.node}))

	acme := ownerAcme
	s.store.addKey(keyAll, licensing.APIKey{Owner: acme, Name: "all", Scopes: []string{"*"}, SecretVersion: 1,
		MasterID: "m1", CreatedAt: s.clock.Now()})
	s.store.addKey(keyOther,
		licensing.APIKey{Owner: licensing.Owner{AccountID: "acct_other", Mode: licensing.Test}, Scopes: []string{"*"}})
	s.store.addKey(keyLive,
		licensing.APIKey{Owner: licensing.Owner{AccountID: "acct_acme", Mode: licensing.Live}, Scopes: []string{"*"}})
	s.store.addKey(keyReadOnly, licensing.APIKey{Owner: acme, Scopes: []string{"licenses:read", "orders:read"}})
	s.store.addKey(keyKeys, licensing.APIKey{Owner: acme, Scopes: []string{"keys", "orders"}})
	s.store.addKey(keyExpired, licensing.APIKey{Owner: acme, Scopes: []string{"*"}, ExpiresAt: s.clock.Now()})
	s.store.addKey(keyRevoked, licensing.APIKey{Owner: acme, Scopes: []string{"*"}, RevokedAt: s.clock.Now()})

	t.Cleanup(func() {
		for _, response := range unlisted(t, s.registry) {
			t.Errorf("the row of the route in the table of routes does not list the response: %s", response)
		}
	})
	s.server = handlers.New(s.config)
	s.addr = serve(t, s.server)
	s.client = &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       2 * time.Minute,
	}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

func testRing(t testing.TB) keyring.MasterRing {
	t.Helper()
	ring, err := keyring.ParseMasterRing("m1:" + strings.Repeat("A", 43) + "=")
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// serve runs a server on a free port until the test ends.
func serve(t *testing.T, server *handlers.Server) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, server, listener)
	return listener.Addr().String()
}

func serveOn(t *testing.T, server *handlers.Server, listener net.Listener) {
	t.Helper()
	server.Tap(func(ctx *fasthttp.RequestCtx) { checkExchange(t, ctx) })
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("shut down: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

// answer is a complete HTTP response.
type answer struct {
	status int
	header http.Header
	closes bool // the connection ends with it
	body   string
	code   int
	reason string
	data   map[string]any
	fields map[string]string
	raw    map[string]any
}

// send makes a request as a client does. headers come in pairs.
func (s *fixture) send(method, path, key, body string, headers ...string) answer {
	s.t.Helper()
	return s.sendTo(s.addr, method, path, key, body, headers...)
}

func (s *fixture) sendTo(addr, method, path, key, body string, headers ...string) answer {
	s.t.Helper()
	request, err := http.NewRequest(method, "http://"+addr, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.URL.Opaque = path // sent as it is
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
		if headers[i+1] == "-" {
			request.Header.Del(headers[i])
		}
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return readAnswer(s.t, response)
}

func readAnswer(t *testing.T, response *http.Response) answer {
	t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: response.StatusCode, header: response.Header, closes: response.Close, body: string(body)}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") || len(body) == 0 {
		return a
	}
	var envelope struct {
		Code  int
		Data  map[string]any
		Error struct {
			Reason string
			Fields []struct{ Field, Problem string }
		}
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		t.Fatalf("answer %q: %v", body, err)
	}
	if err := json.Unmarshal(body, &a.raw); err != nil {
		t.Fatal(err)
	}
	a.code, a.reason, a.data = envelope.Code, envelope.Error.Reason, envelope.Data
	a.fields = make(map[string]string)
	for _, f := range envelope.Error.Fields {
		a.fields[f.Field] = f.Problem
	}
	return a
}

// must fails the test unless the answer has the code.
func (a answer) must(t *testing.T, code int) answer {
	t.Helper()
	if a.code != code || code != 0 && a.status != code/100 || code == 0 && a.status > 299 {
		t.Fatalf("got status %d: %s\nwant code %d", a.status, a.body, code)
	}
	return a
}

func (a answer) text(name string) string {
	value, _ := a.data[name].(string)
	return value
}

// grantedKey is the key of the first license of a grant.
func (a answer) grantedKey() string {
	licenses, _ := a.data["licenses"].([]any)
	if len(licenses) == 0 {
		return ""
	}
	first, _ := licenses[0].(map[string]any)
	key, _ := first["license_key"].(string)
	return key
}

// order makes an order and returns the response.
func (s *fixture) order(amount string) answer {
	s.t.Helper()
	return s.send("POST", "/v1/orders", keyAll,
		`{"product_id":"editor","amount":`+amount+`,"currency":"USD"}`).must(s.t, 0)
}

// license makes a license and returns its key.
func (s *fixture) license() string {
	s.t.Helper()
	return s.order("0").text("license_key")
}

func (s *fixture) activate(key, device string) answer {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"license_key": key, "device_id": device})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.send("POST", "/v1/licenses/activate", "", string(body))
}

// leased returns the key of a license of the product "render": two devices, with leases of ten minutes, or of a day.
func (s *fixture) leased() string {
	s.t.Helper()
	s.product("render", `"max_devices":2,"device_mode":"leased","lease_seconds":600,"max_lease_seconds":86400`).
		must(s.t, 0)
	return s.send("POST", "/v1/licenses", keyAll, `{"product_id":"render","quantity":1}`).must(s.t, 0).grantedKey()
}

// graced returns the key of a license of the product "trialware": ten days from now on, and a grace of a week.
func (s *fixture) graced() string {
	s.t.Helper()
	s.product("trialware", `"validity":"P10D","grace":"P7D"`).must(s.t, 0)
	return s.send("POST", "/v1/licenses", keyAll, `{"product_id":"trialware","quantity":1}`).must(s.t, 0).grantedKey()
}

// giveNotices gives the notices that are due before ends of licenses, and records the ends.
func (s *fixture) giveNotices() {
	s.t.Helper()
	if err := s.node.GiveNotices(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}
