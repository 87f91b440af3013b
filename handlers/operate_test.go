package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"

	"licet/handlers"
	"licet/licensing"
	"licet/node/service"
)

// Of all that clients send, only the request id gets into the log.
func TestLogHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const canary = "CANARY"
	secret := testKey(canary)
	s.store.addKey(secret,
		licensing.APIKey{Owner: licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}, Scopes: []string{"*"}})
	made := s.send("POST", "/v1/orders", secret,
		`{"product_id":"p`+canary+`","amount":1,"currency":"USD","description":"`+canary+
			`","buyer_email":"`+canary+`@example.com","metadata":{"`+canary+`":"`+canary+`"},"success_url":"https://example.com/`+canary+`"}`).must(t, 0)
	path := strings.TrimPrefix(made.text("pay_url"), publicURL)
	s.send("GET", path+"?"+canary, "", "")
	s.send("POST", path, "", "action=pay&x="+canary, asForm...)
	paid := s.send("GET", "/v1/orders/"+made.text("order_no"), secret, "").must(t, 0)
	key := paid.text("license_key")
	body := `{"license_key":"` + key + `","device_id":"` + canary + `","device_name":"` + canary + `","` + canary +
		`":"` + canary + `"}`
	s.send("POST", "/v1/licenses/activate", secret, body).must(t, 0)
	s.send("GET", "/v1/licenses/"+key+"?"+canary+"="+canary, secret, "").must(t, 42200)
	s.send("GET", "/v1/licenses/"+key, secret, "").must(t, 0)
	s.send("GET", "/v1/licenses/"+key+"/devices?cursor="+canary, secret, "").must(t, 42200)

	for _, all := range []error{nil, licensing.ErrUnavailable, errors.New(canary),
		fmt.Errorf("%s: %w", canary, licensing.ErrOutcomeUnknown)} {
		s.store.breakWith(nil, all)
		s.send("POST", "/v1/licenses/activate", secret, body)
		s.store.breakWith(all, nil)
		s.send("POST", "/v1/licenses/activate", "", body)
		s.send("DELETE", "/v1/licenses/"+key+"/devices/"+canary, secret, "")
		s.send("GET", path, "", "")
	}
	s.store.breakWith(nil, nil)
	for _, panics := range []func(){
		func() { panic(canary) },
		func() { panic(errors.New(canary)) },
		func() { panic(map[string]string{canary: canary}) },
		func() { var devices []string; _ = devices[len(canary)] },
	} {
		s.store.onRead(panics)
		a := s.send("GET", "/v1/licenses/"+key, secret, "").must(t, 50000)
		if strings.Contains(a.body, canary) || strings.Contains(a.body, "goroutine") ||
			strings.Contains(a.body, "index") {
			t.Errorf("the answer shows the panic: %s", a.body)
		}
		s.send("POST", "/v1/licenses/activate", "", body).must(t, 50000)
	}
	s.store.onRead(nil)

	s.send("GET", "/"+canary, secret, "", canary, canary, "X-Request-Id", canary+" "+canary)
	s.send(canary, "/v1/orders/"+canary, secret, "").must(t, 40500)
	s.send("POST", "/v1/orders", testKey("unknown"+canary), `{"`+canary+`":"`+canary).must(t, 40100)
	s.send("POST", "/v1/orders", secret, `{"`+canary+`":"`+canary).must(t, 40000)
	s.send("POST", "/v1/orders", secret, `{"`+canary+`":"`+canary+`"}`).must(t, 40000)
	s.send("POST", "/v1/orders", secret, canary, "Content-Type", "text/"+canary).must(t, 40000)
	s.send("GET", "/v1/orders/x", "", "", "Authorization", "Basic "+canary).must(t, 40100)
	for _, raw := range []string{
		canary + "\r\n\r\n",
		"GET /" + canary + " " + canary + "\r\n\r\n",
		"GET " + canary + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: " + canary + "[\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\n" + canary + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\n" + canary + ": \x01" + canary + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: " + canary + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: " + canary + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat(canary, 5000) + "\r\n\r\n",
		"GET /" + strings.Repeat(canary, 5000) + " HTTP/1.1\r\nHost: x\r\n\r\n",
		post("Transfer-Encoding: chunked\r\n") + canary + "\r\n",
	} {
		if answers, closed := s.exchangeRaw(raw); len(answers) != 1 || !closed {
			t.Errorf("%q: %d answers, closed %v", cut(raw), len(answers), closed)
		}
	}

	log := s.log.String()
	for _, secret := range []string{canary, strings.ToLower(canary), key, key[4:], strings.TrimPrefix(path, "/pay/"),
		path[strings.LastIndex(path, "/")+1:], "acct_acme"} {
		if at := strings.Index(log, secret); at >= 0 {
			t.Errorf("the log contains %q: …%s…", secret, log[max(0, at-300):min(len(log), at+100)])
		}
	}
	if !strings.Contains(log, "index out of range") || !strings.Contains(log, "memstore_test.go") {
		t.Error("the log lacks a panic's fault or its stack")
	}
}

// Every request has one log line, with the documented members.
func TestRequestLog(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.license()
	before := len(s.log.requests(t))
	for _, c := range []struct {
		w      wire
		method string
		route  string
		code   float64
		level  string
	}{
		{wire{method: "GET", path: "/v1/licenses/" + key, key: keyAll}, "GET", "/v1/licenses/{license_key}", 0, "info"},
		{wire{method: "GET", path: "/v1/nothing"}, "GET", "none", 40400, "info"},
		{wire{method: "BREW", path: "/v1/orders"}, "other", "/v1/orders", 40500, "info"},
		{wire{method: "GET", path: "/livez"}, "GET", "/livez", 0, "debug"},
		{wire{method: "GET", path: "/pay/x/y"}, "GET", "/pay/{order_no}/{token}", 40403, "info"},
	} {
		a := s.send(c.w.method, c.w.path, c.w.key, "", "X-Request-Id", "log/1")
		lines := s.log.requests(t)[before:]
		if len(lines) != 1 {
			t.Fatalf("%s %s: %d lines", c.w.method, c.w.path, len(lines))
		}
		before++
		line := lines[0]
		for name, want := range map[string]any{
			"request_id": "log/1", "method": c.method, "route": c.route, "status": float64(a.status), "code": c.code,
			"bytes": float64(len(a.body)), "level": c.level,
		} {
			if line[name] != want {
				t.Errorf("%s %s: %s is %v, want %v", c.w.method, c.w.path, name, line[name], want)
			}
		}
		if took, ok := line["duration_ms"].(float64); !ok || took < 0 {
			t.Errorf("duration_ms: %v", line["duration_ms"])
		}
	}
}

// Requests cannot create unbounded label values.
func TestRequestMetrics(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.license()
	s.send("GET", "/v1/licenses/"+key, keyAll, "").must(t, 0)
	s.send("GET", "/v1/licenses/"+key+"x", keyAll, "").must(t, 40001)
	s.send("BREW", "/v1/nothing/"+key, "", "").must(t, 40400)
	s.exchangeRaw("nonsense\r\n\r\n")
	got := make(map[string]uint64)
	for _, m := range s.gather("licet_http_request_duration_seconds").GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetValue())
		}
		got[strings.Join(labels, " ")] = m.GetHistogram().GetSampleCount()
	}
	want := map[string]uint64{ // labels in order of their names: code, method, route
		"201 POST /v1/orders":                1,
		"200 GET /v1/licenses/{license_key}": 1,
		"400 GET /v1/licenses/{license_key}": 1,
		"404 other none":                     1,
		"400 other none":                     1,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := s.gather("licet_http_requests_in_flight").GetMetric()[0].GetGauge().GetValue(); n != 0 {
		t.Errorf("%v requests in flight", n)
	}
}

func (s *fixture) gather(name string) *dto.MetricFamily {
	s.t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f
		}
	}
	s.t.Fatalf("no metric %s", name)
	return nil
}

func TestHealth(t *testing.T) {
	t.Parallel()
	s := newService(t)
	admin := serve(t, handlers.NewAdmin(s.config, s.registry, false))
	both := []string{s.addr, admin}
	f := func(live, ready int) {
		t.Helper()
		for _, addr := range both {
			checkCommonHeaders(t, s.sendTo(addr, "GET", "/livez", "", "").must(t, live))
			checkCommonHeaders(t, s.sendTo(addr, "GET", "/readyz", "", "").must(t, ready))
		}
	}
	f(0, 0)
	s.store.breakWith(licensing.ErrUnavailable, nil)
	f(0, 50300)
	s.store.breakWith(nil, nil)
	f(0, 0)
	s.node.StopIntake()
	f(0, 50300)
	s.activate(absentKey(), "d").must(t, 50300)

	scraped := s.sendTo(admin, "GET", "/metrics", "", "", "Accept", "text/plain")
	if scraped.status != 200 || !strings.HasPrefix(scraped.header.Get("Content-Type"), "text/plain") ||
		!strings.Contains(scraped.body, "licet_build_info{") || scraped.header.Get("X-Request-Id") == "" {
		t.Errorf("metrics: %d %v %s", scraped.status, scraped.header, cut(scraped.body))
	}
	s.sendTo(admin, "POST", "/metrics", "", "").must(t, 40500)
	s.sendTo(admin, "GET", "/v1/orders/x", keyAll, "").must(t, 40400)
	s.send("GET", "/metrics", "", "").must(t, 40400)
	unbounded := serve(t, handlers.NewAdmin(s.config,
		prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { panic("CANARY") }), false))
	s.sendTo(unbounded, "GET", "/metrics", "", "").must(t, 50000)
	if strings.Contains(s.log.String(), "CANARY") {
		t.Error("the log contains a panic's value")
	}
}

// TestOldConnections: the first response after a connection's maximum age closes the connection, and
// reaches a client that has sent more meanwhile. Until then the server keeps the connection.
func TestOldConnections(t *testing.T) {
	t.Parallel()
	asked := "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
	refused := activationText("{}")
	f := func(old, full bool, code int, first, then string) {
		t.Helper()
		age := time.Hour
		if old {
			age = time.Nanosecond
		}
		s := newService(t, smallest, func(c *handlers.Config, _ *service.Config) { c.MaxConnectionAge = age })
		if full {
			s.fill()
		}
		c := s.dial()
		c.write(first)
		c.read().must(t, code)
		if !old {
			c.write(then)
			c.read().must(t, code)
		} else if _, err := c.reader.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("an old connection ended with %v", err)
		}
	}
	f(true, false, 0, asked, "")
	f(true, false, 0, asked+asked, "")
	f(false, false, 0, asked, asked)
	f(false, false, 0, asked+asked, "")
	// The connection refuses the request before fasthttp reads it.
	f(true, true, 50301, refused, "")
	f(false, true, 50301, refused, refused)
}

// TestShutdownBeforeRequest: a connection on which the client has sent nothing does not delay a
// shutdown.
func TestShutdownBeforeRequest(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := s.dial()
	s.send("GET", "/livez", "", "").must(t, 0) // the server has accepted c by now
	// fasthttp would wait 5 s for the first request of a connection that it takes for new.
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if _, err := c.reader.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection ended with %v", err)
	}
}

// TestServeAfterShutdown: a server that is shut down before it serves its listener does not serve it.
func TestServeAfterShutdown(t *testing.T) {
	t.Parallel()
	s := newService(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(listener) }()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("it serves")
	}
}

// TestShutdown: a shutdown completes the requests in flight, and accepts no others.
func TestShutdown(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.send("GET", "/livez", "", "").must(t, 0) // leaves an idle connection
	entered, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.store.onRead(func() { once.Do(func() { close(entered) }); <-leave })
	answered := make(chan answer, 1)
	go func() { answered <- s.send("GET", "/v1/orders/x", keyAll, "") }()
	<-entered
	down := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		down <- s.server.Shutdown(ctx)
	}()
	for { // until the listener is closed
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + s.addr +
			"/livez")
		if err != nil {
			break
		}
		response.Body.Close()
	}
	select {
	case err := <-down:
		t.Fatalf("shut down before the request was answered: %v", err)
	default:
	}
	close(leave)
	a := (<-answered).must(t, 40403)
	if !a.closes {
		t.Errorf("the connection is kept: %v", a.header)
	}
	if err := <-down; err != nil {
		t.Fatal(err)
	}
}

// TestDeadline: a request ends at its deadline even if the store does not answer.
func TestDeadline(t *testing.T) {
	t.Parallel()
	// A busy machine has a second to come to the step that hangs.
	s := newService(t, func(c *handlers.Config, _ *service.Config) { c.RequestTimeout = time.Second })
	key := s.license()
	s.store.hang(true, false)
	s.activate(key, "d").must(t, 50300)
	s.store.hang(false, true)
	s.activate(key, "d").must(t, 50400)
}

// Many clients at once: answers never get mixed up. Run with -race.
func TestConcurrentRequests(t *testing.T) {
	t.Parallel()
	s := newService(t, func(c *handlers.Config, _ *service.Config) { c.Log = zerolog.Nop() })
	key := s.send("POST", "/v1/licenses", keyAll, `{"product_id":"p","quantity":1,"max_devices":0}`).must(t, 0).
		data["licenses"].([]any)[0].(map[string]any)["license_key"].(string)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 25 {
				id := fmt.Sprintf("device-%d-%d-%s", i, j, strings.Repeat("x", i*j))
				a := s.activate(key, id)
				if a.code != 0 || a.text("device_id") != id {
					t.Errorf("%s: %s", id, a.body)
				}
				if a := s.send("DELETE", "/v1/licenses/"+key+"/devices/"+id, keyAll, ""); a.data["removed"] != true ||
					a.text("device_id") != id {
					t.Errorf("%s: %s", id, a.body)
				}
			}
		})
	}
	all.Wait()
}
