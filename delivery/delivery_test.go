package delivery

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"licet/delivery/webhook"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// TestDeliversAll: without failures each event arrives once, and the store says so.
func TestDeliversAll(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	r := newReceiver(t)
	endpoint := s.subscribe(r)
	s.grant(300)
	s.startEngine()
	s.grant(50)
	events := s.waitForEvents(350)
	r.waitForAll(l, events)
	l.waitUntil("the endpoint has caught up, and the feed has no event behind its place", func() bool {
		p := s.progress(endpoint.ID)
		behind := store.FeedPage{After: p.Place, Limit: 100, Types: endpoint.Types}
		rest, err := s.service.Feed(l.ctx(), l.owner, behind, service.FeedWait{})
		return err == nil && len(rest.Events) == 0 &&
			!p.Behind && p.Pending == 0 && !p.LastSuccess.IsZero() && p.SeenAt.Equal(endpoint.ResetAt)
	})
	if n := r.attempts(); n != 350 {
		t.Errorf("350 events were sent %d times", n)
	}
	delivered := store.DeliveryPage{Status: store.DeliveryDelivered, Limit: 100}
	log, err := s.deliveries.Deliveries(l.ctx(), endpoint.ID, delivered)
	if err != nil || len(log.Items) != 100 {
		t.Errorf("the log has %d deliveries (%v)", len(log.Items), err)
	}
}

// TestFailingFifth: all events arrive although a fifth of all attempts fails.
func TestFailingFifth(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	r := newReceiver(t)
	r.respondWith(func(w http.ResponseWriter, _ *http.Request, _ string, _ int) bool {
		if rand.IntN(5) == 0 {
			w.WriteHeader([]int{500, 404, 429, 301}[rand.IntN(4)])
			return false
		}
		return true
	})
	endpoint := s.subscribe(r)
	s.startEngine()
	s.grant(500)
	events := s.waitForEvents(500)
	l.waitUntil("all have arrived", func() bool {
		l.advanceClock(time.Minute)
		_, taken := r.count()
		return taken == len(events)
	})
	r.waitForAll(l, events)
	l.waitUntil("nothing is pending", func() bool {
		p := s.progress(endpoint.ID)
		return p.Pending == 0 && p.Dead == 0 && !p.Behind
	})
}

// TestSlowEndpointsDelayNoOther: an endpoint that never responds, and an endpoint that responds byte by byte, don't
// delay a healthy endpoint of the same node.
func TestSlowEndpointsDelayNoOther(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	s.sendWithin(shortTimeout)
	hangs, drips, well := newReceiver(t), newReceiver(t), newReceiver(t)
	hangs.respondWith(func(_ http.ResponseWriter, r *http.Request, _ string, _ int) bool {
		<-r.Context().Done()
		return false
	})
	drips.respondWith(func(w http.ResponseWriter, r *http.Request, _ string, _ int) bool {
		for r.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
			if _, err := w.Write([]byte("x")); err != nil {
				return false
			}
			_ = http.NewResponseController(w).Flush()
		}
		return false
	})
	slow := s.subscribe(hangs)
	s.subscribe(drips)
	s.subscribe(well)
	s.startEngine()
	granted := 0
	l.waitUntil("the slow endpoints get attempts", func() bool {
		s.grant(1)
		granted++
		h, _ := hangs.count()
		d, _ := drips.count()
		return h > 0 && d > 0
	})
	s.grant(1000)
	events := s.waitForEvents(granted + 1000)
	began := time.Now()
	well.waitForAll(l, events)
	// Meanwhile the slow endpoints have had one or two timeouts of the sender.
	if n := hangs.attempts(); n > 4*firstWindow {
		t.Errorf("%d attempts to the endpoint that never responds, in %v", n, time.Since(began))
	}
	l.waitUntil("the endpoint that never responds is failing", func() bool {
		return s.progress(slow.ID).Failures >= failingAfter
	})
}

// TestSlowEndpointsLeaveSlots: endpoints that accept each message slowly don't take all extra slots of the node.
func TestSlowEndpointsLeaveSlots(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	s.sendWithin(slowAfter * 3 / 2)
	var drips []*receiver
	for range 6 {
		r := newReceiver(t)
		r.respondWith(func(w http.ResponseWriter, r *http.Request, _ string, _ int) bool {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return true
		})
		s.subscribe(r)
		drips = append(drips, r)
	}
	s.startEngine()
	places := cap(s.engine.extraSlots)
	s.grant(6 * places)
	// Each endpoint has accepted enough messages for the widest window.
	l.waitUntil("the slow endpoints have had several rounds", func() bool {
		for _, r := range drips {
			if r.attempts() < 5*firstWindow {
				return false
			}
		}
		return true
	})
	if n := len(s.engine.extraSlots); n > 6*firstWindow {
		t.Errorf("slow endpoints have %d extra slots of %d", n, places)
	}
}

// TestLastSlotsAreForFastEndpoints: slow endpoints get none of the last quarter of the extra slots.
func TestLastSlotsAreForFastEndpoints(t *testing.T) {
	e := New(Config{Node: &service.Service{}})
	e.busyLimit.busy = func() bool { return false }
	for range cap(e.extraSlots) * 3 / 4 {
		if !e.takeExtraSlot(true) {
			t.Fatalf("a slow endpoint gets none of %d slots although only %d are taken",
				cap(e.extraSlots), len(e.extraSlots))
		}
	}
	if e.takeExtraSlot(true) {
		t.Error("a slow endpoint gets one of the last slots")
	}
	for range cap(e.extraSlots) / 4 {
		if !e.takeExtraSlot(false) {
			t.Fatal("a quick endpoint gets none of the last slots")
		}
	}
	if e.takeExtraSlot(false) {
		t.Error("there are more slots than the node has")
	}
}

// TestRetryAfter: an endpoint that responds with Retry-After gets no attempt until then.
func TestRetryAfter(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	r := newReceiver(t)
	r.respondWith(func(w http.ResponseWriter, _ *http.Request, _ string, _ int) bool {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
		return false
	})
	endpoint := s.subscribe(r)
	s.startEngine()
	s.grant(20)
	events := s.waitForEvents(20)
	// All attempts of the first window start before the first response.
	l.waitUntil("the first attempts have failed", func() bool { return s.progress(endpoint.ID).Pending >= firstWindow })
	asked := r.attempts()
	if asked > firstWindow {
		t.Errorf("%d attempts before the first response", asked)
	}
	r.respondWith(nil)
	l.advanceClock(60 * time.Second)
	s.grant(1) // which wakes the loop
	events = s.waitForEvents(21)
	if n := r.attempts(); n != asked {
		t.Errorf("%d attempts before the time of Retry-After", n-asked)
	}
	l.advanceClock(61 * time.Second)
	l.waitUntil("all events arrive except those whose attempts failed", func() bool {
		_, taken := r.count()
		return taken >= len(events)-asked
	})
	l.advanceClock(30 * time.Second)
	r.waitForAll(l, events)
}

// TestGone: 410 disables an endpoint, and the endpoint gets its events once it is enabled again.
func TestGone(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	r := newReceiver(t)
	r.respondWith(status(http.StatusGone))
	endpoint := s.subscribe(r)
	s.startEngine()
	s.grant(30)
	l.waitUntil("the endpoint is disabled", func() bool {
		return s.endpoint(endpoint.ID).DisabledBecause == licensing.DisabledGone
	})
	l.waitUntil("no loop delivers to it", func() bool { return len(s.engine.leasedIDs()) == 0 })
	disabled := 0
	l.waitUntil("the feed has the event of that", func() bool {
		page := store.FeedPage{Types: []licensing.EventType{licensing.EventWebhookDisabled}, Limit: 10}
		feed, err := s.service.Feed(l.ctx(), l.owner, page, service.FeedWait{})
		disabled = len(feed.Events)
		return err == nil && disabled > 0
	})
	if disabled != 1 {
		t.Errorf("%d events say that the endpoint was disabled", disabled)
	}
	r.respondWith(nil)
	on := true
	s.update(licensing.UpdateEndpoint{ID: endpoint.ID, Enabled: &on})
	events := slices.DeleteFunc(s.eventIDs(), func(id string) bool {
		return s.eventType(id) != licensing.EventLicenseIssued
	})
	if len(events) != 30 {
		t.Fatalf("%d events", len(events))
	}
	l.waitUntil("all have arrived", func() bool {
		l.advanceClock(spreadOver)
		_, taken := r.count()
		return taken == len(events)
	})
}

// TestDeadLetters: a message is dead after its last attempt, and a replay delivers it.
func TestDeadLetters(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	r := newReceiver(t)
	var poison string
	r.respondWith(func(w http.ResponseWriter, _ *http.Request, id string, _ int) bool {
		if id == poison {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte("can't read it"))
			return false
		}
		return true
	})
	s.grant(5)
	poison = s.waitForEvents(5)[2]
	endpoint := s.subscribeFrom(r, "")
	s.startEngine()
	l.waitUntil("the message is dead", func() bool {
		l.advanceClock(2 * time.Hour)
		return s.progress(endpoint.ID).Dead == 1
	})
	page := store.DeliveryPage{Status: store.DeliveryDead, Limit: 10}
	dead, err := s.deliveries.Deliveries(l.ctx(), endpoint.ID, page)
	if err != nil || len(dead.Items) != 1 || dead.Items[0].EventID != poison ||
		len(dead.Items[0].Attempts) != webhook.Attempts ||
		dead.Items[0].Answer != "can't read it" || dead.Items[0].Attempts[9].Status != 500 {
		t.Fatalf("dead messages: %+v (%v)", dead.Items, err)
	}
	if now := s.endpoint(endpoint.ID); !now.Enabled() {
		t.Error("the endpoint is disabled because of one message")
	}
	r.respondWith(nil)
	s.replay(endpoint.ID, store.Replay{Dead: true})
	l.waitUntil("the message has arrived", func() bool { _, taken := r.count(); return taken == 5 })
	l.waitUntil("nothing is dead", func() bool { p := s.progress(endpoint.ID); return p.Dead == 0 && p.Pending == 0 })
}

// TestLongDeadIsDisabled: an endpoint that has failed for MaxFailing is disabled, and no sooner.
func TestLongDeadIsDisabled(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	r := newReceiver(t)
	r.respondWith(status(http.StatusBadGateway))
	endpoint := s.subscribe(r)
	s.startEngine()
	s.grant(300) // more than the attempts of these days, so that a message is always due
	began := l.now()
	disabled := func() bool {
		now := s.endpoint(endpoint.ID)
		return !now.Enabled()
	}
	for !disabled() && l.now().Sub(began) < 2*webhook.MaxFailing {
		before := s.progress(endpoint.ID).Failures
		l.advanceClock(time.Hour)
		// The next attempt's time depends on when this attempt ends, so wait for its end.
		l.waitUntil("one more attempt fails", func() bool {
			l.advanceClock(checkpointDelay / 2)
			return s.progress(endpoint.ID).Failures > before || disabled()
		})
	}
	after := s.endpoint(endpoint.ID)
	if after.DisabledBecause != licensing.DisabledFailing {
		t.Errorf("disabled because of %q", after.DisabledBecause)
	}
	if d := after.DisabledAt.Sub(began); d < webhook.MaxFailing || d > webhook.MaxFailing+2*time.Hour {
		t.Errorf("disabled after %v", d)
	}
}

// TestReplays: replays of one event, of a span, and of the whole feed.
func TestReplays(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	r := newReceiver(t)
	endpoint := s.subscribe(r)
	s.startEngine()
	s.grant(250)
	events := s.waitForEvents(250)
	r.waitForAll(l, events)
	s.replay(endpoint.ID, store.Replay{EventID: events[7]})
	l.waitUntil("the event comes again", func() bool { return r.timesReceived(events[7]) == 2 })
	s.replay(endpoint.ID, store.Replay{After: events[9], Until: events[219]})
	l.waitUntil("the span comes again", func() bool { return r.attempts() == 250+1+210 })
	for i, id := range events {
		want := 1
		if i == 7 || i > 9 && i <= 219 {
			want = 2
		}
		if n := r.timesReceived(id); n != want {
			t.Errorf("event %d arrived %d times, want %d", i, n, want)
		}
	}
	s.replay(endpoint.ID, store.Replay{})
	l.waitUntil("all come again", func() bool { return r.attempts() == 250+1+210+250 })
	l.waitUntil("all replays are done", func() bool {
		state, err := s.jobs(endpoint.ID)
		return err == nil && len(state) == 0
	})
}

// TestProgressSkipsTrimmedEvents: the progress says that events were trimmed before their delivery, and later events
// arrive.
func TestProgressSkipsTrimmedEvents(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	r := newReceiver(t)
	endpoint := s.subscribe(r)
	s.grant(20)
	s.waitForEvents(20)
	l.waitUntil("the events are swept", func() bool {
		l.advanceClock(time.Hour)
		_, err := s.store.SweepEvents(l.ctx(), l.now(), store.EventRetention{Age: time.Minute, Bytes: 1 << 30})
		return err == nil && len(s.eventIDs()) == 0
	})
	s.grant(10)
	events := s.waitForEvents(10)
	s.startEngine()
	r.waitForAll(l, events)
	l.waitUntil("the progress says so", func() bool { return !s.progress(endpoint.ID).SkippedAt.IsZero() })
}

// TestRotationSignsWithTwo: after a rotation both secrets sign until the overlap ends.
func TestRotationSignsWithTwo(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	r := newReceiver(t)
	endpoint := s.subscribe(r) // the receiver trusts the first secret only
	s.startEngine()
	s.grant(3)
	s.waitForEvents(3)
	l.waitUntil("the events have arrived", func() bool { _, taken := r.count(); return taken == 3 })
	rotation := service.EndpointRotation{Owner: l.owner, ID: endpoint.ID, Overlap: time.Hour}
	if _, _, err := s.service.RotateWebhookSecret(l.ctx(), rotation); err != nil {
		t.Fatal(err)
	}
	l.waitUntil("both secrets sign", func() bool {
		s.grant(1)
		return r.withSignatures(2) > 0
	})
	r.trustAll()
	l.advanceClock(2 * time.Hour)
	before := r.withSignatures(1)
	l.waitUntil("one secret signs", func() bool {
		s.grant(1)
		return r.withSignatures(1) > before
	})
}

// TestEndpointChangesWhileSending: a deleted or disabled endpoint gets no more events, and an endpoint with a new
// URL gets the rest there.
func TestEndpointChangesWhileSending(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	// Each receiver accepts some messages, and keeps the others waiting, so that events are left.
	goOn := make(chan struct{})
	acceptsSome := func() func(http.ResponseWriter, *http.Request, string, int) bool {
		var taken atomic.Int64
		return func(_ http.ResponseWriter, r *http.Request, _ string, _ int) bool {
			if taken.Add(1) <= 100 {
				return true
			}
			select {
			case <-goOn:
				return true
			case <-r.Context().Done():
				return false
			}
		}
	}
	deleted, disabled, moved, target := newReceiver(t), newReceiver(t), newReceiver(t), newReceiver(t)
	for _, r := range []*receiver{deleted, disabled, moved} {
		r.respondWith(acceptsSome())
	}
	first, second, third := s.subscribe(deleted), s.subscribe(disabled), s.subscribe(moved)
	s.startEngine()
	s.grant(3000)
	events := s.waitForEvents(3000)
	l.waitUntil("all endpoints get events", func() bool {
		_, a := deleted.count()
		_, b := disabled.count()
		_, c := moved.count()
		return a > 0 && b > 0 && c > 0
	})
	if err := s.service.DeleteWebhook(l.ctx(), l.owner, first.ID, licensing.System); err != nil {
		t.Fatal(err)
	}
	off := false
	s.update(licensing.UpdateEndpoint{ID: second.ID, Enabled: &off})
	s.update(licensing.UpdateEndpoint{ID: third.ID, URL: &target.server.URL})
	l.waitUntil("no loop delivers to the two", func() bool {
		leased := s.engine.leasedIDs()
		return !slices.Contains(leased, first.ID) && !slices.Contains(leased, second.ID)
	})
	a, b := deleted.attempts(), disabled.attempts()
	close(goOn)
	l.waitUntil("the endpoint with the new URL has all events", func() bool {
		_, here := moved.count()
		_, there := target.count()
		return here+there >= len(events)
	})
	if deleted.attempts() != a || disabled.attempts() != b {
		t.Error("a deleted or disabled endpoint got an event")
	}
	if a == len(events) || b == len(events) {
		t.Error("an endpoint got all events before the change, so the test shows nothing")
	}
	on := true
	disabled.respondWith(nil)
	s.update(licensing.UpdateEndpoint{ID: second.ID, Enabled: &on})
	disabled.waitForAll(l, events)
	l.waitUntil("the store has nothing of the deleted endpoint", func() bool {
		if err := s.service.SweepWebhooks(context.Background()); err != nil {
			t.Fatal(err)
		}
		read, err := s.deliveries.Progresses(l.ctx(), first.ID)
		return err == nil && len(read) == 0
	})
}
