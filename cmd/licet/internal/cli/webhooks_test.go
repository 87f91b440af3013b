package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestWebhooks walks through all commands of webhooks, with a receiver that is well
// first and then is not.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	var status atomic.Int64
	status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
		_, _ = w.Write([]byte("thanks\u0007"))
	}))
	t.Cleanup(server.Close)

	got := u.run("webhooks", "create", server.URL+"/licet", "--event-types", "order.paid,license.revoked",
		"--description", "Mails to buyers", "--idempotency-key", "mails-1")
	if got.err != nil || !strings.Contains(got.stdout, "SECRET                 whsec_") ||
		!strings.Contains(got.stdout, "order.paid,license.revoked") ||
		!strings.Contains(got.stderr, "licet can't print it again") ||
		!strings.Contains(got.stderr, "licet webhooks test we_") {
		t.Fatalf("%+v", got)
	}
	listed := u.asJSON("webhooks", "list")["webhook_endpoints"].([]any)
	id := listed[0].(map[string]any)["id"].(string)
	if text := u.must("webhooks", "list"); !strings.Contains(text, id) ||
		!strings.Contains(text, "0 pending, 0 dead") || len(listed) != 1 {
		t.Errorf("listed\n%s", text)
	}
	if text := u.must("webhooks", "get", id); !strings.Contains(text, "DELIVERY PENDING          0\n") ||
		!strings.Contains(text, "DESCRIPTION               Mails to buyers") || strings.Contains(text, "SECRET  ") {
		t.Errorf("looked up\n%s", text)
	}
	// Its secret was shown once.
	u.refuses(false, []string{"rotate its secret", "shown once"}, "webhooks", "create", server.URL+"/licet",
		"--event-types", "order.paid,license.revoked", "--description", "Mails to "+
			"buyers", "--idempotency-key", "mails-1")

	if text := u.must("webhooks", "test", id); !strings.Contains(text, "DELIVERED    yes") ||
		!strings.Contains(text, "thanks ") {
		t.Errorf("tried\n%s", text)
	}
	status.Store(http.StatusServiceUnavailable)
	if got := u.run("webhooks", "test", id); got.err == nil || !strings.Contains(got.err.Error(),
		"not delivered: status") || !strings.Contains(got.stdout, "STATUS       503") {
		t.Errorf("tried %+v", got)
	}

	if e := u.asJSON("webhooks", "update", id, "--event-types", "*", "--endpoint-url", server.URL, "--description",
		""); e["url"] != server.URL || e["event_types"].([]any)[0] != "*" || e["description"] != nil {
		t.Errorf("changed %v", e)
	}
	if e := u.asJSON("webhooks", "update", id, "--enabled=false"); e["status"] != "disabled" || e["url"] != server.URL {
		t.Errorf("disabled %v", e)
	}
	if e := u.asJSON("webhooks", "update", id, "--enabled"); e["status"] != "enabled" {
		t.Errorf("enabled %v", e)
	}
	if got := u.run("webhooks", "rotate", id, "--overlap", "0s"); got.err != nil ||
		!strings.Contains(got.stdout, "whsec_") || !strings.Contains(got.stdout, "PREVIOUS SECRET UNTIL  -") ||
		!strings.Contains(got.stderr, "licet can't print it again. Replace the previous secret in the receiver") {
		t.Errorf("rotated %+v", got)
	}

	u.must("webhooks", "update", id, "--enabled=false")
	event := u.asJSON("licenses", "events", u.grant(1)[0])["events"].([]any)[0].(map[string]any)["id"].(string)
	for _, line := range []string{"--event-id " + event, "--until " + event, "--since " + event + " --until " + event,
		"--dead"} {
		if r := u.asJSON(append([]string{"webhooks", "replay", id},
			strings.Fields(line)...)...); r["accepted"] != true {
			t.Errorf("%s: %v", line, r)
		}
	}
	if text := u.must("webhooks", "deliveries", id, "--status", "delivered"); text != "" {
		t.Errorf("the deliveries are\n%s", text)
	}

	u.refuses(true, []string{"ENDPOINT_URL must begin with https://", "--event-types must be", "42200"}, "webhooks",
		"create", "http://shop.example.com/", "--event-types", "order")
	// Nothing is not all: it is the value of a variable that is not set.
	u.refuses(true, []string{"--event-types must be"}, "webhooks", "create", server.URL, "--event-types", "")
	u.refuses(true, []string{"--event-types must be"}, "webhooks", "update", id, "--event-types", "")
	u.refuses(true, []string{"--since is empty"}, "webhooks", "replay", id, "--since", "", "--until", event)
	u.refuses(true, []string{"--endpoint-url must be"}, "webhooks", "update", id, "--endpoint-url", "x")
	u.refuses(true, []string{"--status must be one of pending, dead, delivered"}, "webhooks", "deliveries", id,
		"--status", "failed")
	u.refuses(false, []string{"no such event", "40406"}, "webhooks", "replay", id, "--event-id", "evt_x")
	u.refuses(false, []string{"40405"}, "webhooks", "get", "we_x")

	u.must("webhooks", "delete", id)
	u.refuses(false, []string{"no such webhook endpoint"}, "webhooks", "delete", id)
}
