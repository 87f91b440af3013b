package handlers_test

import (
	"net/http"
	"testing"
	"time"

	"licet/licensing"
)

func TestChangesOnce(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.licenseThatIs("activated")
	extend := changing(key, "renew", `{"extend":"P1M"}`).once("extend")
	first := s.sendWire(extend).must(t, 0)
	if first.text("expires_at") != "2030-03-01T00:00:00.000Z" || first.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("first: %s", first.body)
	}
	s.clock.advance(time.Hour)
	s.activate(key, "d2").must(t, 0)
	replayed := func(w wire, code int) answer {
		t.Helper()
		a := s.sendWire(w).must(t, code)
		if a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("not a replay: %s", a.body)
		}
		return a
	}
	if again := replayed(extend, 0); again.text("expires_at") != "2030-03-01T00:00:00.000Z" ||
		again.data["current_devices"] != 2.0 || again.body != s.get(key).body {
		t.Errorf("again: %s", again.body)
	}

	// A request that changes nothing is recorded too. Its replay shows the current state.
	suspend := changing(key, "suspend", `{"reason":"a"}`).once("suspend")
	s.change(key, "suspend", "").must(t, 0)
	s.sendWire(suspend).must(t, 0)
	s.change(key, "reinstate", "").must(t, 0)
	if again := replayed(suspend, 0); again.text("status") != "activated" {
		t.Errorf("the license as it is now: %s", again.body)
	}

	// The key stands for one request: method, path and body to the byte.
	for name, w := range map[string]wire{
		"another body":    changing(key, "suspend", `{"reason":"b"}`).once("suspend"),
		"another verb":    changing(key, "revoke", `{"reason":"a"}`).once("suspend"),
		"another license": changing(s.license(), "suspend", `{"reason":"a"}`).once("suspend"),
		"an order":        newOrder(`{"product_id":"editor","amount":1,"currency":"USD"}`).once("suspend"),
		"no license":      changing(absentKey(), "suspend", `{"reason":"a"}`).once("suspend"),
	} {
		if a := s.sendWire(w).must(t, 42201); a.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s: %s", name, a.body)
		}
	}
	foreign := suspend
	foreign.key = keyOther
	s.sendWire(foreign).must(t, 40401) // another account's key of the same text

	// A refusal because of the state is kept, also after the state has changed.
	s.change(key, "revoke", "").must(t, 0)
	other := s.licenseThatIs("revoked")
	refused := changing(other, "reinstate", "").once("refused")
	s.sendWire(refused).must(t, 40903)
	if a := replayed(refused, 40903); a.reason != "invalid_license_state" {
		t.Errorf("replayed: %s", a.body)
	}
	// Other failures are not kept.
	gone := changing(absentKey(), "suspend", "").once("gone")
	for range 2 {
		if a := s.sendWire(gone).must(t, 40401); a.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("kept: %s", a.body)
		}
	}
	perpetual := s.license()
	bad := changing(perpetual, "renew", `{"extend":"P1M"}`).once("bad")
	s.sendWire(bad).must(t, 42200)
	s.change(perpetual, "renew", `{"expires_at":"2030-06-30T00:00:00Z"}`).must(t, 0)
	if a := s.sendWire(bad).must(t, 0); a.text("expires_at") != "2030-07-30T00:00:00.000Z" {
		t.Errorf("once it can be: %s", a.body)
	}
}

// TestRenewalReplayedAfterItsTime sends a renewal again when its date has passed.
func TestRenewalReplayedAfterItsTime(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.license()
	w := changing(key, "renew", `{"expires_at":"2030-01-02T04:00:00Z"}`)
	s.sendWire(w.once("k")).must(t, 0)
	s.clock.advance(2 * time.Hour)
	if again := s.sendWire(w.once("k")).must(t, 0); again.header.Get("Idempotent-Replayed") != "true" ||
		again.text("status") != "expired" {
		t.Errorf("again: %s", again.body)
	}
	for name, refused := range map[string]answer{
		"under a key of its own":    s.sendWire(w.once("another")),
		"another one under the key": s.sendWire(changing(key, "renew", w.body+" ").once("k")),
		"without a key":             s.sendWire(w),
	} {
		if refused.must(t, 42200).fields["expires_at"] != "must be in the future" {
			t.Errorf("%s: %s", name, refused.body)
		}
	}
}

// TestRetryableErrors: after an unknown outcome, idempotent requests are retryable.
func TestRetryableErrors(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"self_service_deactivation":true`).must(t, 0)
	key := s.licenseThatIs("activated")
	other := s.licenseThatIs("suspended")
	s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
	for _, c := range []struct {
		w         wire
		retryable bool
	}{
		{changing(key, "suspend", ""), true},
		{changing(other, "reinstate", ""), true},
		{changing(key, "revoke", `{"reason":"x"}`), true},
		{changing(other, "renew", `{"expires_at":"2031-01-01T00:00:00Z"}`), true},
		{changing(other, "renew", `{"extend":"P1M"}`), false},
		{changing(other, "renew", `{"extend":"P1M"}`).once("k"), true},
		{wire{method: "PATCH", path: "/v1/licenses/" + key, key: keyAll, body: `{"max_devices":9}`}, true},
		{wire{method: "PUT", path: "/v1/products/new", key: keyAll, body: `{}`}, true},
		{wire{method: "DELETE", path: "/v1/products/editor", key: keyAll}, true},
		{deactivation(key, `"device_id":"d1"`), true},
	} {
		a := s.sendWire(c.w).must(t, 50400)
		if retryable := a.raw["error"].(map[string]any)["retryable"]; retryable != c.retryable ||
			a.header.Get("Retry-After") == "" {
			t.Errorf("%s %s: %s", c.w.method, c.w.path, a.body)
		}
	}
}

// TestChangedButNotRead: a change counts as made, although reading the license afterwards fails.
func TestChangedButNotRead(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.licenseThatIs("activated")
	w := changing(key, "renew", `{"extend":"P1M"}`).once("k")
	reads := 0
	s.store.onRead(func() {
		if reads++; reads == 3 { // the API key, the license with the claim, the answer
			s.store.breakWith(licensing.ErrUnavailable, nil)
		}
	})
	failed := s.sendWire(w).must(t, 50400)
	if failed.raw["error"].(map[string]any)["retryable"] != true || failed.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("answered %s", failed.body)
	}
	s.store.onRead(nil)
	s.store.breakWith(nil, nil)
	again := s.sendWire(w).must(t, 0)
	if again.header.Get("Idempotent-Replayed") != "true" || again.text("expires_at") != "2030-03-01T00:00:00.000Z" {
		t.Errorf("again: %d %s", again.status, again.body)
	}
	if again.status != http.StatusOK {
		t.Errorf("status %d", again.status)
	}
}
