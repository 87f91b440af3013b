package handlers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/oklog/ulid/v2"

	"licet/handlers"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// replay is a request to deliver events to an endpoint again.
func (s *fixture) replay(body string) wire {
	s.t.Helper()
	return wire{method: "POST", path: webhookPath(s.webhook("https://shop.example.com/licet"), "/replay"), key: keyAll,
		body: body}
}

// TestDeliveryPages pages through deliveries. A cursor holds for its endpoint and status alone.
func TestDeliveryPages(t *testing.T) {
	t.Parallel()
	s := newService(t)
	id, other := s.webhook("https://shop.example.com/licet"), s.webhook("https://shop.example.com/other")
	s.failing(id)
	s.failing(other)
	path := webhookPath(id, "/deliveries")
	var statuses []any
	var first string
	for next := path + "?limit=1"; next != ""; {
		page := s.send("GET", next, keyAll, "").must(t, 0)
		for _, d := range page.data["deliveries"].([]any) {
			statuses = append(statuses, d.(map[string]any)["status"])
		}
		if next = ""; page.text("next_cursor") != "" {
			next = path + "?limit=1&cursor=" + page.text("next_cursor")
			first = page.text("next_cursor")
		}
	}
	if want := []any{"pending", "pending", "dead", "delivered"}; !cmp.Equal(statuses, want) {
		t.Errorf("the statuses are %v, want %v", statuses, want)
	}
	for _, wrong := range []string{path + "?status=dead&cursor=" + first,
		webhookPath(other, "/deliveries?cursor=") + first, path + "?cursor=x", path + "?status=gone"} {
		if a := s.send("GET", wrong, keyAll, "").must(t, 42200); len(a.fields) != 1 {
			t.Errorf("%s: %s", wrong, a.body)
		}
	}
	if dead := s.send("GET", path+"?status=dead", keyAll, "").must(t, 0); len(dead.data["deliveries"].([]any)) != 1 ||
		dead.data["next_cursor"] != nil {
		t.Errorf("dead are %s", dead.body)
	}
}

// TestReplays: a valid replay is stored once for each Idempotency-Key. A refused replay stores nothing.
func TestReplays(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.eventful()
	s.send("POST", "/v1/licenses", keyOther, `{"product_id":"theirs","quantity":1}`).must(t, 0)
	their := s.send("GET", "/v1/events", keyOther, "").data["events"].([]any)[0].(map[string]any)["id"].(string)
	const one, two, none = "evt_00000000000000000000000001", "evt_00000000000000000000000003",
		"evt_00000000000000000000000099"
	const paid = "evt_00000000000000000000000002" // at the same revision as two, and before it
	id := s.webhook("https://shop.example.com/licet")
	ask := func(body string) wire {
		return wire{method: "POST", path: webhookPath(id, "/replay"), key: keyAll, body: body}
	}
	for body, code := range map[string]int{
		`{}`: 42200, `{"dead":false}`: 42200, `{"since":"` + one + `"}`: 42200, `{"event_id":"` + one +
			`","dead":true}`: 42200,
		`{"event_id":"` + one + `","until":"` + two + `"}`: 42200, `{"until":"` + two + `","dead":true}`: 42200,
		`{"since":"` + two + `","until":"` + one + `"}`: 42200, `{"since":"` + two + `","until":"` + paid + `"}`: 42200,
		`{"event_id":""}`: 42200, `{"since":"","until":"` + two + `"}`: 42200,
		`{"event_id":"` + none + `"}`: 40406, `{"event_id":"` + their + `"}`: 40406, `{"until":"` + none + `"}`: 40406,
		`{"since":"` + none + `","until":"` + two + `"}`:  40406,
		`{"since":"` + their + `","until":"` + two + `"}`: 40406,
	} {
		s.sendWire(ask(body)).must(t, code)
	}
	if asked := s.sent.asked(id); len(asked) != 0 {
		t.Fatalf("refused, and asked for: %v", asked)
	}
	for range 2 {
		s.sendWire(ask(`{"event_id":"`+one+`"}`).once("again-1")).must(t, 0)
	}
	s.sendWire(ask(`{"event_id":"`+two+`"}`).once("again-1")).must(t, 42201)
	s.sendWire(ask(`{"since":"`+one+`","until":"`+two+`"}`)).must(t, 0)
	s.sendWire(ask(`{"since":"`+paid+`","until":"`+two+`"}`)).must(t, 0)
	s.sendWire(ask(`{"since":"`+two+`","until":"`+two+`"}`)).must(t, 0)
	s.sendWire(ask(`{"until":"`+two+`"}`)).must(t, 0)
	s.sendWire(ask(`{"dead":true}`)).must(t, 0)
	want := []store.Replay{{EventID: one}, {After: one, Until: two}, {After: paid, Until: two},
		{After: two, Until: two}, {Until: two}, {Dead: true}}
	asked := s.sent.asked(id)
	if diff := cmp.Diff(want, asked, cmpopts.IgnoreFields(store.Replay{}, "ID")); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	for i, r := range asked {
		if len(r.ID) != ulid.EncodedSize || i > 0 && r.ID == asked[i-1].ID {
			t.Errorf("the replay %d has the id %s", i, r.ID)
		}
	}
}

// TestReplayInDoubt loses the answer to a replay with an Idempotency-Key: the same request again is not
// stored a second time.
func TestReplayInDoubt(t *testing.T) {
	t.Parallel()
	s := newService(t)
	id := s.webhook("https://shop.example.com/licet")
	w := wire{method: "POST", path: webhookPath(id, "/replay"), key: keyAll, body: `{"dead":true}`}.once("again-1")
	s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
	s.sendWire(w).must(t, 50400)
	s.store.breakWith(nil, nil)
	s.sendWire(w).must(t, 0)
	if asked := s.sent.asked(id); len(asked) != 1 {
		t.Errorf("%d replays are stored, want 1", len(asked))
	}
}

// TestNoDeliveries: a node without deliveries still serves endpoints, without their progress.
func TestNoDeliveries(t *testing.T) {
	t.Parallel()
	s := newService(t, func(_ *handlers.Config, cfg *service.Config) { cfg.Deliveries = nil })
	id := s.webhook("https://shop.example.com/licet")
	s.send("GET", webhookPath(id, ""), keyAll, "").must(t, 0)
	s.send("GET", "/v1/webhook_endpoints", keyAll, "").must(t, 0)
	s.send("GET", webhookPath(id, "/deliveries"), keyAll, "").must(t, 50300)
	s.send("POST", webhookPath(id, "/replay"), keyAll, `{"dead":true}`).must(t, 50300)
	s.send("GET", webhookPath("we_none", "/deliveries"), keyAll, "").must(t, 40405)
}
