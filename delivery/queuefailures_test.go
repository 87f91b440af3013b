package delivery

import (
	"encoding/base64"
	"testing"
	"time"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/service"
)

// TestLocalFailuresPause: while this node fails to send, the queue pauses and does not make the feed's events pending,
// also if concurrent attempts fail one after the other.
func TestLocalFailuresPause(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	q := newQueue(stateOf(licensing.Endpoint{ID: "we_1", ResetAt: now}), now, func() float64 { return 0.5 })
	page := service.EventFeed{Next: "pos_1"}
	for _, id := range []string{"evt_1", "evt_2", "evt_3", "evt_4", "evt_5", "evt_6"} {
		view := service.EventView{}
		view.ID = id
		page.Events = append(page.Events, view)
	}
	q.addPage(&q.feed, 0, page, now)
	var tries, rested int
	for end := now.Add(time.Minute); now.Before(end); now = now.Add(100 * time.Millisecond) {
		var flying []*message
		for m := q.next(now); m != nil; m = q.next(now) {
			flying = append(flying, m)
		}
		for i, m := range flying {
			tries++
			failed := now.Add(time.Duration(i) * 150 * time.Millisecond)
			if q.localFailure(failed) > 0 {
				rested++
			}
			q.putBack(m, failed)
		}
	}
	if tries == 0 || tries > 10*firstWindow || rested > 10 {
		t.Errorf("%d attempts and %d pauses in a minute", tries, rested)
	}
	if n := len(q.pending); n > firstWindow {
		t.Errorf("%d messages are pending", n)
	}
}

// TestSecretThatIsMissing: a node that can't sign for an endpoint, since the node started before the master key was
// added, leaves the events in the feed.
func TestSecretThatIsMissing(t *testing.T) {
	l := newTestCluster(t)
	old := l.node()
	first, second := make([]byte, 32), make([]byte, 32)
	second[0] = 1
	encode := base64.StdEncoding.EncodeToString
	ring, err := keyring.ParseMasterRing("m2:" + encode(second) + "\nm1:" + encode(first) + "\n")
	if err != nil {
		t.Fatal(err)
	}
	l.ring = ring
	fresh := l.node()
	r := newReceiver(t)
	endpoint := fresh.subscribe(r)
	old.startEngine()
	fresh.grant(200)
	fresh.waitForEvents(200)
	l.waitUntil("an attempt has failed", func() bool { return fresh.progress(endpoint.ID).Pending > 0 })
	fresh.grant(1)
	events := fresh.waitForEvents(201)
	if n := fresh.progress(endpoint.ID).Pending; n > firstWindow {
		t.Errorf("%d messages are pending, want %d at most", n, firstWindow)
	}
	if err := old.engine.Stop(l.ctx()); err != nil {
		t.Fatal(err)
	}
	fresh.startEngine()
	r.waitForAll(l, events)
}
