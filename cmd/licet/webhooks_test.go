package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"licet/client/webhook"
)

// shopServer is a shop's receiver of webhooks.
type shopServer struct {
	*httptest.Server
	status   atomic.Int64 // what it answers
	receiver atomic.Pointer[webhook.Receiver]
	came     chan message
}

// message is what came, and passed as the service's.
type message struct {
	*webhook.Event
	body string
}

func newShopServer(t *testing.T) *shopServer {
	t.Helper()
	s := &shopServer{came: make(chan message, 100)}
	s.status.Store(http.StatusNoContent)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // a node was killed
		}
		event, err := s.receiver.Load().Receive(r.Header, body)
		if err != nil {
			t.Errorf("it was sent %v %s: %v", r.Header, body, err)
			return
		}
		status := int(s.status.Load())
		w.WriteHeader(status)
		if status >= 300 {
			_, _ = io.WriteString(w, "not now")
		}
		s.came <- message{event, string(body)}
	}))
	t.Cleanup(s.Close)
	return s
}

// knows takes messages that are signed with one of some secrets.
func (s *shopServer) knows(t *testing.T, secrets ...string) {
	t.Helper()
	receiver, err := webhook.New(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	s.receiver.Store(receiver)
}

// wait waits until an event of a type comes.
func (s *shopServer) wait(t *testing.T, kind string) message {
	t.Helper()
	return s.waitAll(t, kind)
}

// waitAll waits until an event of each of some types has come, in any order, and returns
// the last of them.
func (s *shopServer) waitAll(t *testing.T, kinds ...string) (last message) {
	t.Helper()
	timeout := time.After(time.Minute)
	for len(kinds) > 0 {
		select {
		case last = <-s.came:
			kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == last.Type })
		case <-timeout:
			t.Fatalf("no %v has come", kinds)
		}
	}
	return last
}

// until asks for a thing until it is as it must be.
func (a api) until(t *testing.T, path string, is func(object) bool) object {
	t.Helper()
	var got object
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got = a.want(t, 200, "GET", path, "").Data; is(got) {
			return got
		}
	}
	t.Fatalf("%s is still %v", path, got)
	return nil
}

// TestWebhooks: a service delivers to a shop that is down at first, is killed and goes on, and stops when the shop
// answers 410.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	p := startProcess(t, dir, "--record-activations=false")
	shop := newShopServer(t)
	made := p.want(t, 201, "POST", "/v1/webhook_endpoints",
		`{"url":"`+shop.URL+`/licet","event_types":["order.created","device.bound"]}`).Data
	shop.knows(t, made.text("secret"))
	path := "/v1/webhook_endpoints/" + made.text("id")

	// Failed messages are tried again, and the output reports them meanwhile.
	shop.status.Store(http.StatusServiceUnavailable)
	order := p.want(t, 201, "POST", "/v1/orders",
		`{"product_id":"editor","amount":0,"currency":"USD","buyer_email":"ada@example.com"}`).Data
	failed := shop.wait(t, "order.created")
	pending := p.until(t, path+"/deliveries?status=pending",
		func(o object) bool { return len(o.list("deliveries")) == 1 }).list("deliveries")[0]
	attempts := pending.list("attempts")
	if pending.text("event_id") != failed.ID || pending.text("event_type") != "order.created" ||
		pending.text("answer") != "not now" || pending.text("next_attempt_at") == "" ||
		len(attempts) == 0 || attempts[0].number("status") != 503 || attempts[0].text("failure") != "status" {
		t.Errorf("pending is %v", pending)
	}
	shop.status.Store(http.StatusOK)
	again := shop.wait(t, "order.created")
	if again.ID != failed.ID || again.body != failed.body || again.Data.Order.OrderNo != order.text("order_no") ||
		again.Data.Order.BuyerEmail != "ada@example.com" {
		t.Errorf("it came as %s, and again as %s", failed.body, again.body)
	}
	delivered := p.until(t, path+"/deliveries", func(o object) bool {
		all := o.list("deliveries")
		return len(all) == 1 && all[0].text("status") == "delivered"
	}).list("deliveries")[0]
	if tries := delivered.list("attempts"); len(tries) < 2 || tries[len(tries)-1].number("status") != 200 {
		t.Errorf("delivered is %v", delivered)
	}
	if r := p.want(t, 200, "GET", path, ""); !strings.Contains(r.body,
		`"pending":0,"dead":0,"failing_since":null,"last_success_at":"2`) {
		t.Errorf("the endpoint is %s", r.body)
	}

	// The body is the same as in a look-up. The endpoint wants activations, so they have events.
	if r, err := p.activate(t.Context(), order.text("license_key"), "laptop"); err != nil || r.status != 200 {
		t.Fatalf("%v %s", err, r.body)
	}
	bound := shop.wait(t, "device.bound")
	var looked struct{ Data json.RawMessage }
	if err := json.Unmarshal([]byte(p.want(t, 200, "GET", "/v1/events/"+bound.ID, "").body), &looked); err != nil ||
		string(looked.Data) != bound.body {
		t.Errorf("it sent %s, and a lookup answers %s", bound.body, looked.Data)
	}

	// After a kill it goes on, with a new secret beside the one before.
	p.kill()
	p = startProcess(t, dir, "--record-activations=false")
	turned := p.want(t, 200, "POST", path+"/rotate", `{"overlap":"PT1H"}`).Data
	shop.knows(t, turned.text("secret"), made.text("secret"))
	p.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":5,"currency":"USD"}`)
	next := shop.wait(t, "order.created")
	p.want(t, 200, "POST", path+"/replay", `{"event_id":"`+failed.ID+`"}`)
	if replayed := shop.wait(t, "order.created"); replayed.ID != failed.ID {
		t.Errorf("replayed was %s, after %s", replayed.ID, next.ID)
	}

	// The shop answers 410, and the endpoint is disabled. Enabled again, the endpoint gets the missed events.
	shop.status.Store(http.StatusGone)
	p.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":6,"currency":"USD"}`)
	gone := shop.wait(t, "order.created")
	if e := p.until(t, path,
		func(o object) bool { return o.text("status") == "disabled" }); e.text("disabled_because") != "gone" {
		t.Errorf("it is %v", e)
	}
	events := p.feed(t, next.ID, "webhook.disabled")
	if last := events[len(events)-1]; last.text("actor") != "system" || last.number("sequence") != 1 ||
		strings.Contains(p.want(t, 200, "GET", "/v1/events/"+last.text("id"), "").body, "whsec_") {
		t.Errorf("the last event is %v", last)
	}
	shop.status.Store(http.StatusOK)
	p.want(t, 200, "PATCH", path, `{"status":"enabled"}`)
	if m := shop.wait(t, "order.created"); m.ID != gone.ID {
		t.Errorf("enabled again it sent %s", m.body)
	}
	p.want(t, 200, "DELETE", path, "")
}

// TestWebhooksOfAllKinds: an endpoint that names no kinds gets all of them, those of
// activations too.
func TestWebhooksOfAllKinds(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir())
	shop := newShopServer(t)
	made := p.want(t, 201, "POST", "/v1/webhook_endpoints", `{"url":"`+shop.URL+`/licet"}`).Data
	shop.knows(t, made.text("secret"))
	key := p.want(t, 201, "POST", "/v1/licenses",
		`{"product_id":"pro","quantity":1}`).Data.list("licenses")[0].text("license_key")
	p.want(t, 200, "POST", "/v1/licenses/activate", `{"license_key":"`+key+`","device_id":"laptop"}`)
	p.want(t, 200, "POST", "/v1/licenses/"+key+"/suspend", "")
	shop.waitAll(t, "license.issued", "license.activated", "device.bound", "license.suspended")
}
