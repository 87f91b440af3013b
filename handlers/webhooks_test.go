package handlers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/licensing"
	"licet/node/store"
)

func newWebhook(body string) wire {
	return wire{method: "POST", path: "/v1/webhook_endpoints", key: keyAll, body: body}
}

func webhookPath(id, rest string) string { return "/v1/webhook_endpoints/" + id + rest }

// webhook makes an endpoint for all events, and returns its id.
func (s *fixture) webhook(url string) string {
	s.t.Helper()
	s.clock.advance(time.Second)
	return s.sendWire(newWebhook(fmt.Sprintf(`{"url":%q}`, url))).must(s.t, 0).text("id")
}

// changeWebhook changes an endpoint.
func (s *fixture) changeWebhook(id, body string) answer {
	s.t.Helper()
	return s.send("PATCH", webhookPath(id, ""), keyAll, body)
}

// TestWebhookLife makes an endpoint, changes each of its members, rotates its secret, and removes it.
// Other accounts never see the endpoint.
func TestWebhookLife(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const url = "https://shop.example.com/licet"
	made := s.sendWire(newWebhook(`{"url":"`+url+`","event_types":["*"]}`)).must(t, 0)
	id, secret := made.text("id"), made.text("secret")
	if made.status != 201 || made.text("status") != "enabled" || !cmp.Equal(made.data["event_types"], []any{"*"}) {
		t.Fatalf("made %s", made.body)
	}
	got := s.send("GET", webhookPath(id, ""), keyAll, "").must(t, 0)
	if _, shown := got.data["secret"]; shown || got.text("url") != url {
		t.Errorf("looked up: %s", got.body)
	}

	// A missing member stays as it is; null counts as missing.
	changed := s.changeWebhook(id,
		`{"event_types":["order.paid","device.bound"],"description":"for mails","url":null}`).must(t, 0)
	if !cmp.Equal(changed.data["event_types"], []any{"order.paid", "device.bound"}) ||
		changed.text("description") != "for mails" || changed.text("url") != url {
		t.Errorf("changed: %s", changed.body)
	}
	if same := s.changeWebhook(id, `{}`).must(t, 0); !cmp.Equal(same.data, changed.data) {
		t.Errorf("changed nothing: %s", same.body)
	}
	if all := s.changeWebhook(id, `{"event_types":["*"],"description":""}`).must(t,
		0); !cmp.Equal(all.data["event_types"], []any{"*"}) || all.data["description"] != nil {
		t.Errorf("changed: %s", all.body)
	}
	off := s.changeWebhook(id, `{"status":"disabled"}`).must(t, 0)
	if off.text("status") != "disabled" || off.text("disabled_because") != "by_user" || off.text("disabled_at") == "" {
		t.Errorf("disabled: %s", off.body)
	}
	if on := s.changeWebhook(id, `{"status":"enabled"}`).must(t, 0); on.text("status") != "enabled" ||
		on.data["disabled_at"] != nil || on.data["disabled_because"] != nil {
		t.Errorf("enabled: %s", on.body)
	}

	// A new secret, once for an Idempotency-Key.
	rotate := wire{method: "POST", path: webhookPath(id, "/rotate"), key: keyAll}.once("rotation-1")
	rotated := s.sendWire(rotate).must(t, 0)
	if rotated.text("secret") == "" || rotated.text("secret") == secret ||
		rotated.text("previous_secret_until") != s.clock.Now().Add(24*time.Hour).Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("rotated: %s", rotated.body)
	}
	if again := s.sendWire(rotate).must(t, 0); again.data["secret"] != nil ||
		again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("rotated again: %s", again.body)
	}
	s.clock.advance(24 * time.Hour)
	if later := s.send("GET", webhookPath(id, ""), keyAll, "").must(t, 0); later.data["previous_secret_until"] != nil {
		t.Errorf("after the overlap: %s", later.body)
	}

	// For other accounts the endpoint does not exist.
	for _, key := range []string{keyOther, keyLive} {
		for _, w := range []wire{
			{method: "GET", path: webhookPath(id, "")},
			{method: "PATCH", path: webhookPath(id, ""), body: `{"status":"disabled"}`},
			{method: "DELETE", path: webhookPath(id, "")},
			{method: "POST", path: webhookPath(id, "/rotate")},
			{method: "POST", path: webhookPath(id, "/test")},
			{method: "GET", path: webhookPath(id, "/deliveries")},
			{method: "POST", path: webhookPath(id, "/replay"), body: `{"dead":true}`},
		} {
			w.key = key
			s.sendWire(w).must(t, 40405)
		}
		if list := s.send("GET", "/v1/webhook_endpoints", key, "").must(t,
			0); len(list.data["webhook_endpoints"].([]any)) != 0 {
			t.Errorf("%s sees %s", key, list.body)
		}
	}
	if len(s.sent.asked(id)) != 0 {
		t.Error("another account had events delivered again")
	}

	s.send("DELETE", webhookPath(id, ""), keyAll, "").must(t, 0)
	s.send("GET", webhookPath(id, ""), keyAll, "").must(t, 40405)
	s.send("DELETE", webhookPath(id, ""), keyAll, "").must(t, 40405)
}

// TestWebhookPages pages through the largest number of endpoints, also after the last endpoint of a
// page was removed.
func TestWebhookPages(t *testing.T) {
	t.Parallel()
	s := newService(t)
	var want []string
	for range licensing.MaxEndpoints {
		want = append(want, s.webhook("https://shop.example.com/licet"))
	}
	slices.Reverse(want)
	var got []string
	for path := "/v1/webhook_endpoints?limit=3"; path != ""; {
		page := s.send("GET", path, keyAll, "").must(t, 0)
		var last string
		for _, e := range page.data["webhook_endpoints"].([]any) {
			last = e.(map[string]any)["id"].(string)
			got = append(got, last)
		}
		if path = ""; page.text("next_cursor") != "" {
			path = "/v1/webhook_endpoints?limit=3&cursor=" + page.text("next_cursor")
			s.send("DELETE", webhookPath(last, ""), keyAll, "").must(t, 0)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
}

// TestWebhookStateIsOfTheEndpoint: a change of an endpoint resets its delivery state, and a disabled
// endpoint has no next attempt.
func TestWebhookStateIsOfTheEndpoint(t *testing.T) {
	t.Parallel()
	s := newService(t)
	id := s.webhook("https://shop.example.com/licet")
	s.failing(id)
	state := func() map[string]any {
		return s.send("GET", webhookPath(id, ""), keyAll, "").must(t, 0).data["delivery"].(map[string]any)
	}
	if d := state(); d["failing_since"] == nil || d["next_attempt_at"] == nil {
		t.Errorf("the failing endpoint: %v", d)
	}
	s.changeWebhook(id, `{"status":"disabled"}`).must(t, 0)
	if d := state(); d["failing_since"] == nil || d["next_attempt_at"] != nil {
		t.Errorf("the disabled endpoint: %v", d)
	}
	s.clock.advance(time.Second)
	s.changeWebhook(id, `{"status":"enabled"}`).must(t, 0)
	if d := state(); d["failing_since"] != nil || d["next_attempt_at"] != nil || d["pending"] != 2.0 {
		t.Errorf("the enabled endpoint: %v", d)
	}
}

// failing stores the progress of an endpoint whose deliveries have begun to fail.
func (s *fixture) failing(id string) {
	now := s.clock.Now()
	s.sent.progresses[id] = store.DeliveryProgress{
		Pending: 2, Dead: 1, SeenAt: now, Failures: 7, FailingSince: now.Add(-time.Hour),
		NextProbe:   now.Add(time.Minute),
		LastSuccess: now.Add(-2 * time.Hour), SkippedAt: now.Add(-3 * time.Hour), Behind: true,
	}
	failed := func(status int, failure string) store.DeliveryAttempt {
		return store.DeliveryAttempt{At: now.Add(-time.Hour), Duration: 1234567 * time.Microsecond, Status: status,
			Failure: failure}
	}
	s.sent.items[id] = []store.Delivery{
		{
			EventID: "evt_00000000000000000000000007", Type: licensing.EventOrderPaid, Status: store.DeliveryPending,
			Attempts: []store.DeliveryAttempt{failed(0, "timeout"), failed(503, "status")},
			Answer:   "down for <maintenance>", Next: now.Add(time.Minute),
		},
		{
			EventID: "evt_00000000000000000000000008", Type: licensing.EventDeviceBound, Status: store.DeliveryPending,
			Attempts: []store.DeliveryAttempt{failed(302, "redirect")}, Next: now.Add(time.Minute),
		},
		{
			EventID: "evt_00000000000000000000000005", Type: licensing.EventOrderCreated, Status: store.DeliveryDead,
			Attempts: []store.DeliveryAttempt{failed(404, "status")}, Answer: "no such page",
		},
		{
			EventID: "evt_00000000000000000000000004", Type: licensing.EventLicenseIssued,
			Status:   store.DeliveryDelivered,
			Attempts: []store.DeliveryAttempt{failed(0, "connection_refused"), failed(204, "")},
		},
	}
}
