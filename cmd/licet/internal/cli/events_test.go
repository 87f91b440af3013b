package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestTail follows events from one on, goes on after it was broken off, and comes to
// what the list has.
func TestTail(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.grant(3)
	first := u.asJSON("licenses", "events", u.grant(1)[0])["events"].([]any)[0].(map[string]any)["id"].(string)
	keys := u.grant(120)
	for _, key := range keys[:2] {
		u.must("licenses", "revoke", key, "--yes")
	}

	var followed []string
	after := first
	const all = 122
	for _, part := range []int{1, all} { // a page is printed at once
		until := max(part-len(followed), 1)
		ctx, cancel := context.WithCancel(t.Context())
		u.ctx = ctx
		var stderr bytes.Buffer
		out := &untilLines{lines: until, then: cancel}
		if err := u.runInto(out, &stderr, "events", "tail", "--after", after, "--output", "json"); err != nil {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		for _, e := range jsonLines(t, out.text.String()) {
			after = e["id"].(string)
			followed = append(followed, after)
		}
		if !strings.HasSuffix(strings.TrimSpace(stderr.String()), "--after "+after) {
			t.Errorf("it does not say how to go on: %s", stderr.String())
		}
	}
	u.ctx = t.Context()
	var listed []string
	for _, e := range jsonLines(t, u.must("events", "list", "--after", first, "--all", "--output", "json")) {
		listed = append(listed, e["id"].(string))
	}
	if len(listed) != all || strings.Join(listed, " ") != strings.Join(followed, " ") {
		t.Errorf("listed %d events, and followed %d: %q and %q", len(listed), len(followed), listed, followed)
	}

	revoked := u.asJSON("licenses", "get", keys[1])["id"].(string)
	if text := u.must("events", "list", "--types", "license.revoked"); strings.Count(text, "license.revoked") != 2 ||
		!strings.Contains(text, revoked) {
		t.Errorf("listed\n%s", text)
	}
	if e := u.asJSON("events", "get", first); e["id"] != first || e["type"] != "license.issued" {
		t.Errorf("the event is %v", e)
	}
	u.refuses(false, []string{"no such event"}, "events", "get", "evt_x")
	u.refuses(true, []string{"--after must be"}, "events", "tail", "--after", "evt_x")
	u.refuses(true, []string{"--types must be"}, "events", "list", "--types", "gone")
}

// TestTailFromNow tells nothing of what was before, and prints a table.
func TestTailFromNow(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	old := u.grant(1)[0]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	u.ctx = ctx
	var stderr bytes.Buffer
	out := &untilLines{lines: 2, then: cancel}
	ended := make(chan error, 1)
	go func() { ended <- u.runInto(out, &stderr, "events", "tail") }()
	other := *u
	other.ctx = t.Context()
	for { // until the tail has begun
		other.grant(1)
		select {
		case err := <-ended:
			if err != nil || !strings.Contains(out.text.String(), "license.issued") ||
				strings.Contains(out.text.String(), old) {
				t.Fatalf("%v: %s%s", err, out.text.String(), stderr.String())
			}
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// untilLines takes lines until there are enough, and does something then.
type untilLines struct {
	text  bytes.Buffer
	lines int
	then  func()
}

func (u *untilLines) Write(p []byte) (int, error) {
	n, _ := u.text.Write(p)
	if bytes.Count(u.text.Bytes(), []byte("\n")) >= u.lines {
		u.then()
	}
	return n, nil
}

// TestAbout says in a word what an event is about.
func TestAbout(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"order":{"order_no":"ord_1","pay_url":null}}`: "ord_1",
		`{"license":{"id":"lic_1","license_key":"LIC-1"},` +
			`"device":{"device_id":"a\u0007b","bound_at":null}}`: "lic_1 a b",
		// of a newer version
		`{"seat":{"row":7},"license":{"license_key":"LIC-1","seats":3}}`: "LIC-1",
		`{"product":{}}`: "-",
		`{}`:             "-", // a placeholder
		`[]`:             "-",
	} {
		o := object{{name: "data", value: json.RawMessage(data)}}
		if got := o.cell("about"); got != want {
			t.Errorf("%s is about %q, want %q", data, got, want)
		}
	}
}
