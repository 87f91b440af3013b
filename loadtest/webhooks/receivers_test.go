package webhooks

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"licet/client/webhook"
)

var testSecret = "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))

// call sends an event as the service does, and returns the status of the answer; 0:
// there was none.
func call(ctx context.Context, t *testing.T, r *receiver, secret, id string, body string) int {
	t.Helper()
	header, err := webhook.Sign(secret, id, time.Now(), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	response, err := http.DefaultTransport.RoundTrip(request) // follows no redirects
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

func listen(t *testing.T, name string, answer answer) *receiver {
	t.Helper()
	r := newReceiver(name, answer)
	t.Cleanup(r.stop)
	if err := r.know(testSecret); err != nil {
		t.Fatal(err)
	}
	return r
}

func body(id string) string { return `{"id":"` + id + `","type":"order.paid"}` }

func TestReceiverKeepsBooks(t *testing.T) {
	t.Parallel()
	r := listen(t, "reliable", well)
	for _, id := range []string{"evt_1", "evt_2", "evt_1"} {
		if status := call(t.Context(), t, r, testSecret, id, body(id)); status != http.StatusNoContent {
			t.Errorf("%s is answered %d", id, status)
		}
	}
	if d := r.soFar(); d.calls != 3 || d.failed != 0 || len(d.taken) != 2 || d.repeats() != 1 || len(d.problems) > 0 {
		t.Errorf("%+v", d)
	}
	// Of what was signed with an older secret something may still be on its way:
	newer := "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, 32))
	if err := r.know(newer); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{testSecret, newer} {
		if status := call(t.Context(), t, r, secret, "evt_2", body("evt_2")); status != http.StatusNoContent ||
			len(r.soFar().problems) > 0 {
			t.Errorf("one of two secrets is answered %d, %q", status, r.soFar().problems)
		}
	}
	for _, link := range []string{`"https://shop.example/pay/ord_1/a"`, "null"} { // paid between two calls
		call(t.Context(), t, r, testSecret, "evt_4",
			`{"id":"evt_4","type":"order.created","data":{"order":{"pay_url":`+link+`}}}`)
	}
	if found := r.soFar().problems; len(found) > 0 {
		t.Errorf("a pay link that ended is no other body: %q", found)
	}
	// What it must complain of:
	other := "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{8}, 32))
	if status := call(t.Context(), t, r, other, "evt_3", body("evt_3")); status != http.StatusBadRequest {
		t.Errorf("the status for a message with a foreign signature is %d", status)
	}
	call(t.Context(), t, r, testSecret, "evt_1", `{"id":"evt_1","type":"order.refunded"}`)
	found := strings.Join(r.soFar().problems, "\n")
	for _, want := range []string{`endpoint reliable: a call with webhook-id "evt_3": webhook: no signature`,
		"event evt_1 came with two bodies"} {
		if !strings.Contains(found, want) {
			t.Errorf("it does not say %q:\n%s", want, found)
		}
	}
	if b := r.soFar(); b.seen["evt_3"] != nil || b.taken["evt_3"] != 0 {
		t.Error("the books have a message with a foreign signature")
	}
}

// TestUnreliableReceiver fails its share of calls, and enters only what it has
// answered well.
func TestUnreliableReceiver(t *testing.T) {
	t.Parallel()
	const calls = 500
	r := listen(t, "unreliable", unreliable(1, 0.2, 0, 0))
	good := 0
	for i := range calls {
		id := fmt.Sprintf("evt_%d", i)
		status := call(t.Context(), t, r, testSecret, id, body(id))
		if status == http.StatusNoContent {
			good++
		}
		if taken := r.soFar().taken[id]; (taken == 1) != (status == http.StatusNoContent) {
			t.Errorf("%s is answered %d, and was taken %d times", id, status, taken)
		}
	}
	d := r.soFar()
	if d.calls != calls || d.failed != calls-good || d.failed < calls/8 || d.failed > calls*3/10 {
		t.Errorf("of %d calls %d failed, and %d were answered well", d.calls, d.failed, good)
	}
}

// TestUnreliableReceiverFailsAnEventOnlySoOften sends the same ones until they are
// taken.
func TestUnreliableReceiverFailsAnEventOnlySoOften(t *testing.T) {
	t.Parallel()
	r := listen(t, "unreliable", unreliable(1, 0.9, 2, time.Millisecond))
	for i := range 20 {
		id, failures := fmt.Sprintf("evt_%d", i), 0
		for call(t.Context(), t, r, testSecret, id, body(id)) != http.StatusNoContent {
			if failures++; failures > 2 {
				t.Fatalf("%s fails more than twice", id)
			}
		}
	}
	if d := r.soFar(); len(d.taken) != 20 || d.failed < 20 {
		t.Errorf("%+v", d)
	}
}

// TestHangingReceiver is called twice: it is silent, and it drips.
func TestHangingReceiver(t *testing.T) {
	t.Parallel()
	r := listen(t, "hanging", hanging())
	for n, id := range []string{"evt_1", "evt_2"} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for r.soFar().calls <= n && ctx.Err() == nil { // until the call has come
				time.Sleep(time.Millisecond)
			}
			time.AfterFunc(200*time.Millisecond, cancel)
		}()
		if status := call(ctx, t, r, testSecret, id, body(id)); status != 0 {
			t.Errorf("%s is answered %d", id, status)
		}
		cancel()
	}
	if d := r.soFar(); d.calls != 2 || d.failed != 2 || len(d.taken) != 0 {
		t.Errorf("%+v", d)
	}
	answered := make(chan int)
	go func() { answered <- call(t.Context(), t, r, testSecret, "evt_3", body("evt_3")) }()
	go func() { answered <- call(t.Context(), t, r, testSecret, "evt_4", body("evt_4")) }()
	for r.soFar().calls < 4 {
		time.Sleep(time.Millisecond)
	}
	r.stop() // breaks them off
	for range 2 {
		if status := <-answered; status != 0 {
			t.Errorf("a call that is broken off is answered %d", status)
		}
	}
}
