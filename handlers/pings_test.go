package handlers_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"licet/delivery/webhook"
	"licet/handlers"
	"licet/licensing"
	"licet/node/service"
)

// receiver is a server that receives messages to endpoints.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T, status int, answer string) *receiver {
	t.Helper()
	r := new(receiver)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		r.header, r.body = request.Header, body
		r.mu.Unlock()
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(r.Close)
	return r
}

// signedBy checks that a secret has signed the last request.
func (r *receiver) signedBy(t *testing.T, secret string, good bool) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	// The clock of the service is a test clock.
	if err := wh.VerifyIgnoringTimestamp(r.body, r.header); (err == nil) != good {
		t.Errorf("signed with %s: %v, want %v", secret, err, good)
	}
}

// withRealClock makes senders use the real clock.
func withRealClock(cfg *handlers.Config, _ *service.Config) {
	cfg.Pings = webhook.NewSender(webhook.Config{Policy: cfg.Webhooks, Version: "test", Clock: time.Now})
}

// TestPing: the endpoint receives a test message in the form of an event, signed with each valid secret.
func TestPing(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newReceiver(t, 202, "thanks")
	made := s.sendWire(newWebhook(`{"url":"`+r.URL+`/licet?shop=1","event_types":["order.paid"]}`)).must(t, 0)
	id, first := made.text("id"), made.text("secret")
	try := func() answer { return s.send("POST", webhookPath(id, "/test"), keyAll, "") }
	a := try().must(t, 0)
	if a.data["delivered"] != true || a.data["status"] != 202.0 || a.text("answer") != "thanks" ||
		a.data["failure"] != nil {
		t.Errorf("the service answers %s", a.body)
	}
	r.signedBy(t, first, true)
	body := string(r.body)
	for _, part := range []string{
		`{"id":"` + a.text("event_id") +
			`","type":"webhook.ping","timestamp":"2030-01-02T03:04:05.678Z","sequence":0,"revision":0,"actor":"key_test_all","data":{"webhook":{"id":"` + id + `",`,
		`"event_types":["order.paid"]`,
	} {
		if !strings.Contains(body, part) {
			t.Errorf("the service sent %s, which lacks %s", body, part)
		}
	}
	if strings.Contains(body, first) || r.header.Get("webhook-id") != a.text("event_id") ||
		strings.HasPrefix(a.text("event_id"), "evt_") {
		t.Errorf("the service sent %v %s", r.header, body)
	}
	s.send("GET", "/v1/events/"+a.text("event_id"), keyAll, "").must(t, 40406)

	second := s.send("POST", webhookPath(id, "/rotate"), keyAll, `{"overlap":"PT1H"}`).must(t, 0).text("secret")
	s.changeWebhook(id, `{"status":"disabled"}`).must(t, 0) // a disabled endpoint gets test messages too
	try().must(t, 0)
	r.signedBy(t, first, true)
	r.signedBy(t, second, true)
	s.clock.advance(time.Hour)
	try().must(t, 0)
	r.signedBy(t, first, false)
	r.signedBy(t, second, true)
}

// TestPingFails: the response names the failure of the receiver.
func TestPingFails(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newReceiver(t, 500, strings.Repeat("ü", 1<<10))
	a := s.send("POST", webhookPath(s.webhook(r.URL), "/test"), keyAll, "").must(t, 0)
	if a.data["delivered"] != false || a.data["status"] != 500.0 || a.text("failure") != "status" ||
		len(a.text("answer")) != 1<<10 {
		t.Errorf("the service answers %s", a.body)
	}
}

// hanging is a receiver that reports each request to the test, and waits for the test before it responds.
type hanging struct {
	*httptest.Server
	arrived, release chan struct{}
}

func newHanging(t *testing.T) *hanging {
	t.Helper()
	h := &hanging{arrived: make(chan struct{}), release: make(chan struct{})}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		for _, step := range []chan struct{}{h.arrived, h.release} {
			select {
			case step <- struct{}{}:
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// TestPingsAreBounded: receivers that hang occupy a few requests of their owner, and none of other owners. A shutdown
// ends the waiting requests.
func TestPingsAreBounded(t *testing.T) {
	t.Parallel()
	s := newService(t, withRealClock)
	hanging := newHanging(t)
	id := s.webhook(hanging.URL)
	path := webhookPath(id, "/test")
	const most = 4
	answers := make(chan answer, most)
	fill := func() {
		for range most {
			go func() { answers <- s.send("POST", path, keyAll, "") }()
		}
		for range most {
			<-hanging.arrived
		}
	}
	fill()
	refused := s.send("POST", path, keyAll, "").must(t, 50301)
	if refused.header.Get("Retry-After") == "" {
		t.Errorf("refused with %v", refused.header)
	}
	their := s.send("POST", "/v1/webhook_endpoints", keyOther, `{"url":"`+newReceiver(t, 204, "").URL+`"}`).must(t,
		0).text("id")
	s.send("POST", webhookPath(their, "/test"), keyOther, "").must(t, 0)
	for range most {
		<-hanging.release
	}
	for range most {
		if a := <-answers; a.data["delivered"] != true {
			t.Errorf("the service answers %s", a.body)
		}
	}

	fill()
	stopped := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		stopped <- s.server.Shutdown(ctx)
	}()
	for range most {
		(<-answers).must(t, 50400)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestPingsOfANodeAreBounded: accounts send test messages up to their limits until the node reaches its own limit.
// Another account is then refused until one of the messages ends.
func TestPingsOfANodeAreBounded(t *testing.T) {
	t.Parallel()
	s := newService(t, withRealClock)
	hanging := newHanging(t)
	const most = 64
	ping := func(account int) wire {
		key := testKey(fmt.Sprint("pings", account))
		s.store.addKey(key, licensing.APIKey{Owner: licensing.Owner{AccountID: fmt.Sprint("acct_pings", account),
			Mode: licensing.Test}, Scopes: []string{"webhooks"}})
		id := s.send("POST", "/v1/webhook_endpoints", key, `{"url":"`+hanging.URL+`"}`).must(t, 0).text("id")
		return wire{method: "POST", path: webhookPath(id, "/test"), key: key}
	}
	answers := make(chan answer, most)
	try := func(w wire) {
		go func() { answers <- s.sendWire(w) }()
		<-hanging.arrived
	}
	// An account has 4 at most, and at most as many as are still free.
	for account, its := range append(slices.Repeat([]int{4}, 15), 2, 1, 1) {
		w := ping(account)
		for range its {
			try(w)
		}
	}
	another := ping(most)
	if refused := s.sendWire(another).must(t, 50301); refused.header.Get("Retry-After") == "" {
		t.Errorf("refused with %v", refused.header)
	}
	<-hanging.release
	(<-answers).must(t, 0)
	try(another)
	s.sendWire(another).must(t, 50301)
	for range most {
		<-hanging.release
	}
	for range most {
		if a := <-answers; a.data["delivered"] != true {
			t.Errorf("the service answers %s", a.body)
		}
	}
}
