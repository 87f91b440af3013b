package webhooks

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// sound is evidence of a run in which all is as it must be: two licenses with some
// events each.
func sound() *evidence {
	e := &evidence{changes: map[Change]bool{}}
	reliable := books{name: "reliable", live: true, seen: map[string][]byte{}, taken: map[string]int{}}
	hanging := books{name: "hanging", seen: map[string][]byte{}, taken: map[string]int{}}
	for i := range 8 {
		id := fmt.Sprintf("evt_%02d", i)
		one := event{
			text: []byte(`{"id":"` + id + `"}`), id: id,
			Change: Change{"device.bound", fmt.Sprint("LIC-", i%2), fmt.Sprint("device ", i)},
		}
		e.feed = append(e.feed, one)
		e.changes[one.Change] = true
		e.followed = append(e.followed, id)
		reliable.seen[id], reliable.taken[id] = one.text, 1
	}
	reliable.taken["evt_03"] = 3 // at least once, so more is right too
	hanging.seen["evt_00"] = e.feed[0].text
	e.endpoints = []books{reliable, hanging}
	return e
}

func TestAuditAcceptsACorrectRun(t *testing.T) {
	e := sound()
	e.changes[e.feed[2].Change] = false // its outcome was unknown, and it has happened
	e.changes[Change{"device.bound", "LIC-1", "lost"}] = false
	if found := audit(e); len(found) > 0 {
		t.Errorf("it says %q", found)
	}
}

// TestAuditFindsDefects seeds one after the other.
func TestAuditFindsDefects(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(e *evidence)
		says  string
	}{
		{"one delivery is lost", func(e *evidence) {
			delete(e.endpoints[0].seen, "evt_05")
			delete(e.endpoints[0].taken, "evt_05")
		}, "an event was not delivered to the endpoint reliable: evt_05"},
		{"one is called and never answered well", func(e *evidence) { delete(e.endpoints[0].taken, "evt_02") },
			"not delivered to the endpoint reliable: evt_02"},
		{"one is made up", func(e *evidence) { e.endpoints[0].seen["evt_99"] = []byte(`{"id":"evt_99"}`) },
			`that is not in the feed: {"id":"evt_99"}`},
		{"one is made up for an endpoint that takes nothing",
			func(e *evidence) { e.endpoints[1].seen["evt_99"] = []byte(`{"id":"evt_99"}`) },
			"the endpoint hanging got an event that is not in the feed"},
		{"one is sent with another body",
			func(e *evidence) { e.endpoints[0].seen["evt_01"] = []byte(`{"id":"evt_01","more":1}`) },
			"got another event than the feed has"},
		{"a change has no event", func(e *evidence) { e.changes[Change{"device.removed", "LIC-1", "device 1"}] = true },
			"a change has no event: device.removed of LIC-1 device 1"},
		{"an event has no change", func(e *evidence) { delete(e.changes, e.feed[4].Change) },
			"an event without a change: evt_04"},
		{"one change has two events", func(e *evidence) { e.feed[6].Change = e.feed[4].Change },
			"one change has two events"},
		{"the feed has one twice", func(e *evidence) { e.feed = append(e.feed, e.feed[7]) },
			"an event is in the feed twice: evt_07"},
		{"a follower misses one", func(e *evidence) { e.followed = slices.Delete(e.followed, 5, 6) },
			"another event: evt_06 in place of evt_05"},
		{"a follower gets one again", func(e *evidence) { e.followed = append(e.followed, "evt_07") },
			"another event: evt_07 in place of nothing"},
		{"an event is gone from the feed", func(e *evidence) { e.feed = slices.Delete(e.feed, 5, 6) },
			"the endpoint reliable got an event that is not in the feed"},
	} {
		e := sound()
		c.spoil(e)
		if found := strings.Join(audit(e), "\n"); !strings.Contains(found, c.says) {
			t.Errorf("%s: it does not say %q:\n%s", c.name, c.says, found)
		}
	}
}

// TestParseEvent reads what of an event the journal has too.
func TestParseEvent(t *testing.T) {
	for text, want := range map[string]Change{
		`"type":"order.paid","data":{"order":{"order_no":"ord_1","license_key":"LIC-1"}}`: {"order.paid", "ord_1", ""},
		`"type":"device.bound","data":{"license":{"license_key":"LIC-1"},"device":{"device_id":"a b"}}`: {
			"device.bound", "LIC-1", "a b"},
		`"type":"license.activated","data":{"license":{"license_key":"LIC-1"},"device":{"device_id":"other"}}`: {
			"license.activated", "LIC-1", ""},
	} {
		e, err := parseEvent([]byte(`{"id":"evt_1",` + text + "}"))
		if err != nil || e.Change != want || e.id != "evt_1" {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
	if _, err := parseEvent([]byte(`[]`)); err == nil {
		t.Error("what is no event is read")
	}
}
