package handlers_test

import (
	"net/http"
	"testing"
	"time"

	"licet/licensing"
)

// TestReplayAfterItsTime sends a grant again after its expires_at: the response shows the first licenses,
// and no new ones are made.
func TestReplayAfterItsTime(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const body = `{"product_id":"editor","quantity":1,"expires_at":"2030-01-02T04:00:00Z"}`
	grant := func(body, key string) answer {
		t.Helper()
		return s.send("POST", "/v1/licenses", keyAll, body, "Idempotency-Key", key)
	}
	first := grant(body, "k").must(t, 0)
	s.clock.advance(2 * time.Hour)
	again := grant(body, "k").must(t, 0)
	if again.status != http.StatusCreated || again.header.Get("Idempotent-Replayed") != "true" ||
		again.grantedKey() != first.grantedKey() {
		t.Errorf("again: %d %s", again.status, again.body)
	}
	for name, refused := range map[string]answer{
		"under a key of its own":        grant(body, "another"),
		"another one under the key":     grant(body+" ", "k"),
		"without a key":                 s.send("POST", "/v1/licenses", keyAll, body),
		"with something else wrong too": grant(`{"quantity":0,"expires_at":"2030-01-02T04:00:00Z"}`, "k"),
	} {
		if refused.must(t, 42200).fields["expires_at"] != "must be in the future" ||
			refused.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s: %s", name, refused.body)
		}
	}
}

// TestFailedReadIsNoReplay: a replay whose read fails is no replay.
func TestFailedReadIsNoReplay(t *testing.T) {
	t.Parallel()
	s := newService(t)
	w := newOrder(`{"product_id":"editor","amount":1,"currency":"USD"}`).once("k")
	made := s.sendWire(w).must(t, 0)
	reads := 0
	s.store.onRead(func() {
		if reads++; reads == 3 { // the API key, the claim, the order
			s.store.breakWith(licensing.ErrUnavailable, nil)
		}
	})
	if failed := s.sendWire(w).must(t, 50300); failed.header.Get("Idempotent-Replayed") != "" {
		t.Error("a failure is marked as a replay of the first request")
	}
	s.store.onRead(nil)
	s.store.breakWith(nil, nil)
	again := s.sendWire(w).must(t, 0)
	if again.header.Get("Idempotent-Replayed") != "true" || again.text("order_no") != made.text("order_no") {
		t.Errorf("afterwards: %s", again.body)
	}
}

// TestUnknownIsRetryableUnderAKey: without an Idempotency-Key, a retry could make a second license.
func TestUnknownIsRetryableUnderAKey(t *testing.T) {
	t.Parallel()
	s := newService(t)
	w := newOrder(`{"product_id":"editor","amount":1,"currency":"USD"}`)
	s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
	for _, c := range []struct {
		request   wire
		retryable bool
	}{{w, false}, {w.once("k"), true}} {
		failed := s.sendWire(c.request).must(t, 50400)
		if retryable := failed.raw["error"].(map[string]any)["retryable"]; retryable != c.retryable {
			t.Errorf("retryable is %v, want %v", retryable, c.retryable)
		}
	}
}
