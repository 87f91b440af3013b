package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	receiving "licet/client/webhook"
)

// hook is a receiver of webhooks.
type hook struct {
	server *httptest.Server
	mu     sync.Mutex
	secret string
	kinds  map[string]int
	wrong  []string
	news   chan struct{}
}

func newHook(t *testing.T) *hook {
	h := &hook{kinds: map[string]int{}, news: make(chan struct{}, 1)}
	h.server = httptest.NewServer(h)
	t.Cleanup(h.server.Close)
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var event *receiving.Event
	receiver, err := receiving.New(h.secret)
	if err == nil {
		event, err = receiver.Receive(r.Header, body)
	}
	if err != nil || event.ID != r.Header.Get("webhook-id") {
		h.wrong = append(h.wrong, string(body))
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.kinds[string(event.Type)]++
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// await waits until so many kinds of events have come.
func (h *hook) await(t *testing.T, kinds ...string) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		h.mu.Lock()
		missing := 0
		for _, kind := range kinds {
			if h.kinds[kind] == 0 {
				missing++
			}
		}
		h.mu.Unlock()
		if missing == 0 {
			return
		}
		select {
		case <-h.news:
		case <-timeout:
			t.Fatalf("of %v came %v; refused: %v", kinds, h.kinds, h.wrong)
		}
	}
}

// TestWebhooksAreDelivered: from an endpoint's creation over HTTP to signed events at
// its receiver, in licet dev.
func TestWebhooksAreDelivered(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir())
	h := newHook(t)
	made := p.want(t, 201, "POST", "/v1/webhook_endpoints", `{"url":"`+h.server.URL+`/hook"}`).Data
	h.mu.Lock()
	h.secret = made.text("secret")
	h.mu.Unlock()
	key := p.want(t, 201, "POST", "/v1/licenses", `{"product_id":"pro","quantity":1}`).Data.list("licenses")[0].text("license_key")
	p.want(t, 200, "POST", "/v1/licenses/activate", `{"license_key":"`+key+`","device_id":"d1"}`)
	p.want(t, 200, "POST", "/v1/licenses/"+key+"/suspend", `{}`)
	h.await(t, "license.issued", "license.activated", "device.bound", "license.suspended")
	if len(h.wrong) > 0 {
		t.Errorf("the receiver refused %v", h.wrong)
	}
}

// TestWebhookPolicy: what the flags let webhooks reach.
func TestWebhookPolicy(t *testing.T) {
	f := func(networks, url string, loopback, allowed bool) {
		t.Helper()
		cfg := eventsConfig{Ports: []uint{443, 8443}, Loopback: loopback}
		if networks != "" {
			cfg.Networks = strings.Split(networks, ",")
		}
		policy, err := cfg.policy()
		if err != nil {
			t.Fatal(err)
		}
		if problem := policy.CheckURL(url); (problem == "") != allowed {
			t.Errorf("with %q and loopback %v, %s is refused with %q", networks, loopback, url, problem)
		}
	}
	f("", "https://203.0.114.7/hook", false, true)
	f("", "https://203.0.114.7:8443/hook", false, true)
	f("", "https://203.0.114.7:9443/hook", false, false)
	f("", "https://10.1.2.3/hook", false, false)
	f("192.0.2.0/24,10.0.0.0/8", "https://10.1.2.3/hook", false, true)
	f("", "http://127.0.0.1:9000/hook", false, false)
	f("", "http://127.0.0.1:9000/hook", true, true)
	f("127.0.0.0/8", "http://127.0.0.1:9000/hook", false, true)
	f("127.0.0.1", "http://localhost:9000/hook", false, true)
	f("::1", "http://[::1]:9000/hook", false, true)
	f("10.0.0.0/8", "http://127.0.0.1:9000/hook", false, false)
	f("0.0.0.0/0", "http://127.0.0.1:9000/hook", false, false)
}
