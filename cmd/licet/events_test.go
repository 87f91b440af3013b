package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/internal/etcdtest"
	"licet/kv"
)

// feed reads the whole feed after an event, and waits until it ends with a kind.
func (a api) feed(t *testing.T, after, until string) []object {
	t.Helper()
	var all []object
	at := ""
	if after != "" {
		at = "&after=" + after
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		page := a.want(t, 200, "GET", "/v1/events?limit=3&wait=5"+at, "").Data
		all = append(all, page.list("events")...)
		if len(all) > 0 && all[len(all)-1].text("type") == until {
			return all
		}
		at = "&cursor=" + page.text("next_cursor")
	}
	t.Fatalf("there is no %s; events are %v", until, all)
	return nil
}

// TestFeed acts as a shop and its buyers. The feed has each change with its actor, and the next node returns events
// that a killed node recorded last.
func TestFeed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	p := startProcess(t, dir)
	order := p.want(t, 201, "POST", "/v1/orders",
		`{"product_id":"editor","amount":5,"currency":"USD","buyer_email":"ada@example.com"}`).Data
	orderNo := order.text("order_no")
	key := p.want(t, 200, "PUT", "/v1/orders/"+orderNo+"/sandbox_payment", "").Data.text("license_key")
	if r, err := p.activate(t.Context(), key, "laptop"); err != nil || r.status != 200 {
		t.Fatalf("%v %s", err, r.body)
	}
	p.want(t, 200, "POST", "/v1/licenses/"+key+"/suspend", `{"reason":"chargeback"}`)
	events := p.feed(t, "", "license.suspended")
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, e.text("type")+" "+strings.Replace(e.text("actor"), p.keyID, "the shop", 1))
	}
	want := []string{
		"order.created the shop", "order.paid provider", "license.issued provider", "license.activated end_user",
		"device.bound end_user", "license.suspended the shop",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("types are %q, want %q", kinds, want)
	}

	// Redacting the buyer redacts the events.
	p.want(t, 200, "POST", "/v1/redactions", `{"buyer_email":"ada@example.com"}`)
	for _, path := range []string{"/v1/events", "/v1/orders/" + orderNo + "/events", "/v1/licenses/" + key + "/events",
		"/v1/events/" + events[0].text("id")} {
		r := p.want(t, 200, "GET", path, "")
		if strings.Contains(r.body, "ada@") || strings.Contains(r.body, "chargeback") {
			t.Errorf("%s tells of the buyer: %s", path, r.body)
		}
	}

	p.want(t, 200, "POST", "/v1/licenses/"+key+"/revoke", "")
	p.kill()
	p = startProcess(t, dir)
	after := p.feed(t, events[len(events)-1].text("id"), "license.revoked")
	if len(after) != 1 || after[0].number("sequence") != 5 {
		t.Errorf("the feed then has %v", after)
	}
	if again := p.feed(t, events[0].text("id"), "license.revoked"); len(again) != len(events) {
		t.Errorf("after the first are %d events, want %d", len(again), len(events))
	}
}

// TestEventsOfAKilledNodeReachTheFeed kills nodes right after each has answered a change, before its event is in the
// feed: the living node brings the event into the feed, and wakes callers that wait.
func TestEventsOfAKilledNodeReachTheFeed(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	start := func() *process {
		p := startServe(t, "--etcd-endpoints", strings.Join(cluster.Endpoints(), ","))
		p.key = key
		return p
	}
	lives := start()
	at := lives.want(t, 200, "GET", "/v1/events?after=now", "").Data.text("next_cursor")
	for range 3 {
		dies := start()
		license := dies.grant(t, 1)
		dies.kill()
		began := time.Now()
		page := lives.want(t, 200, "GET", "/v1/events?wait=25&cursor="+at, "")
		events := page.Data.list("events")
		if len(events) != 1 || events[0].text("type") != "license.issued" || !strings.Contains(page.body, license) {
			t.Fatalf("the events are %s", page.body)
		}
		t.Logf("the feed has the event %v after the node was killed", time.Since(began))
		at = page.Data.text("next_cursor")
	}
}

// TestWaitsForEvents waits for events: the response comes soon after an event, and a stopping service answers
// waiting callers at once.
func TestWaitsForEvents(t *testing.T) {
	t.Parallel()
	p := startProcess(t, filepath.Join(t.TempDir(), "data"), "--metrics-listen", "127.0.0.1:0")
	at := p.want(t, 200, "GET", "/v1/events?after=now", "").Data.text("next_cursor")
	answers := make(chan reply, 1)
	wait := func(cursor string) {
		r, err := p.send(t.Context(), "GET", "/v1/events?wait=25&cursor="+cursor, "")
		if err != nil {
			t.Error(err)
		}
		answers <- r
	}
	go wait(at)
	p.grant(t, 1)
	r := <-answers
	if events := r.Data.list("events"); r.status != 200 || len(events) != 1 ||
		events[0].text("type") != "license.issued" {
		t.Fatalf("the events are %s", r.body)
	}
	inFlight := func() float64 { return p.metric(t, "licet_http_requests_in_flight") }
	before := inFlight()
	go wait(r.Data.text("next_cursor"))
	waitFor(t, func() bool { return inFlight() > before })
	select {
	case r := <-answers:
		t.Errorf("it did not wait: %s", r.body)
	case <-time.After(300 * time.Millisecond):
	}
	if code := p.terminate(t); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	if r := <-answers; r.status != 200 || len(r.Data.list("events")) != 0 || r.Data.text("next_cursor") == "" {
		t.Errorf("who waited was answered %d %s", r.status, r.body)
	}
}
