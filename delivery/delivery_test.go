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

// TestDeliversAll: everything arrives once where nothing goes wrong, and is stored so.
func TestDeliversAll(t *testing.T) {
	l := newLab(t)
	s := l.site()
	r := newReceiver(t)
	endpoint := s.subscribe(r)
	s.record(300)
	s.deliver()
	s.record(50)
	events := s.recorded(350)
	r.mustHaveAll(l, events)
	l.until("the endpoint has caught up", func() bool {
		p := s.progress(endpoint.ID)
		return !p.Behind && p.Pending == 0 && !p.LastSuccess.IsZero() && p.SeenAt.Equal(endpoint.ResetAt)
	})
	if n := r.attempts(); n != 350 {
		t.Errorf("350 events were sent %d times", n)
	}
	// What the place says of the feed is that there is nothing more.
	rest, err := s.node.Feed(l.ctx(), l.owner, store.FeedPage{After: s.progress(endpoint.ID).Place, Limit: 100, Types: endpoint.Types}, service.FeedWait{})
	if err != nil || len(rest.Events) > 0 {
		t.Errorf("behind the place are still %d events (%v)", len(rest.Events), err)
	}
	log, err := s.deliveries.Deliveries(l.ctx(), endpoint.ID, store.DeliveryPage{Status: store.DeliveryDelivered, Limit: 100})
	if err != nil || len(log.Items) != 100 {
		t.Errorf("the log has %d deliveries (%v)", len(log.Items), err)
	}
}

// TestFailingFifth: a fifth of all calls fails, and all events arrive.
func TestFailingFifth(t *testing.T) {
	l := newLab(t)
	s := l.site()
	r := newReceiver(t)
	r.decide(func(w http.ResponseWriter, _ *http.Request, _ string, _ int) bool {
		if rand.IntN(5) == 0 {
			w.WriteHeader([]int{500, 404, 429, 301}[rand.IntN(4)])
			return false
		}
		return true
	})
	endpoint := s.subscribe(r)
	s.deliver()
	s.record(500)
	events := s.recorded(500)
	l.until("all have arrived", func() bool {
		l.pass(time.Minute)
		_, taken := r.count()
		return taken == len(events)
	})
	r.mustHaveAll(l, events)
	l.until("nothing is pending", func() bool {
		p := s.progress(endpoint.ID)
		return p.Pending == 0 && p.Dead == 0 && !p.Behind
	})
}

// TestSlowEndpointsDelayNobody: one that never answers and one that drips its answer
// are at the same node as one that is well.
func TestSlowEndpointsDelayNobody(t *testing.T) {
	l := newLab(t)
	s := l.site()
	s.sendWithin(shortTimeout)
	hangs, drips, well := newReceiver(t), newReceiver(t), newReceiver(t)
	hangs.decide(func(_ http.ResponseWriter, r *http.Request, _ string, _ int) bool {
		<-r.Context().Done()
		return false
	})
	drips.decide(func(w http.ResponseWriter, r *http.Request, _ string, _ int) bool {
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
	s.deliver()
	l.until("the slow ones are tried", func() bool {
		s.record(1)
		h, _ := hangs.count()
		d, _ := drips.count()
		return h > 0 && d > 0
	})
	s.record(1000)
	var events []string
	l.until("the events are in the feed", func() bool { events = s.feed(); return len(events) > 1000 })
	began := time.Now()
	well.mustHaveAll(l, events)
	// The two have had one timeout of the sender or two meanwhile, at the most.
	if n := hangs.attempts(); n > 4*firstWindow {
		t.Errorf("%d attempts at the endpoint that hangs in %v", n, time.Since(began))
	}
	l.until("the one that hangs is failing", func() bool { return s.progress(slow.ID).Failures >= failingAfter })
}

// TestSlowEndpointsLeavePlaces: endpoints that take each message, and their time, do not
// have all places of the node for more than one attempt.
func TestSlowEndpointsLeavePlaces(t *testing.T) {
	l := newLab(t)
	s := l.site()
	s.sendWithin(shortTimeout)
	var drips []*receiver
	for range 6 {
		r := newReceiver(t)
		r.decide(func(w http.ResponseWriter, r *http.Request, _ string, _ int) bool {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return true
		})
		s.subscribe(r)
		drips = append(drips, r)
	}
	s.deliver()
	places := cap(s.engine.extra)
	s.record(6 * places)
	// Each was answered often enough for its window to be the widest.
	l.until("the slow ones have had several rounds", func() bool {
		for _, r := range drips {
			if r.attempts() < 5*firstWindow {
				return false
			}
		}
		return true
	})
	if n := len(s.engine.extra); n > 6*firstWindow {
		t.Errorf("slow endpoints have %d places of %d", n, places)
	}
}

// TestLastPlacesAreForTheQuick: who takes its time gets none of the last quarter.
func TestLastPlacesAreForTheQuick(t *testing.T) {
	e := New(Config{Node: &service.Service{}})
	e.yield.busy = func() bool { return false }
	for range cap(e.extra) * 3 / 4 {
		if !e.takeExtra(true) {
			t.Fatalf("a slow one gets no place of %d, and %d are taken", cap(e.extra), len(e.extra))
		}
	}
	if e.takeExtra(true) {
		t.Error("a slow one takes one of the last places")
	}
	for range cap(e.extra) / 4 {
		if !e.takeExtra(false) {
			t.Fatal("a quick one does not")
		}
	}
	if e.takeExtra(false) {
		t.Error("there are more than there are")
	}
}

// TestRetryAfter: who asks to be left alone is.
func TestRetryAfter(t *testing.T) {
	l := newLab(t)
	s := l.site()
	r := newReceiver(t)
	r.decide(func(w http.ResponseWriter, _ *http.Request, _ string, _ int) bool {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
		return false
	})
	endpoint := s.subscribe(r)
	s.deliver()
	s.record(20)
	events := s.recorded(20)
	// All of the first window are begun before there is an answer.
	l.until("it has asked", func() bool { return s.progress(endpoint.ID).Pending >= firstWindow })
	asked := r.attempts()
	if asked > firstWindow {
		t.Errorf("%d attempts before the first answer", asked)
	}
	r.decide(nil)
	l.pass(60 * time.Second)
	s.record(1) // which wakes all up
	events = s.recorded(21)
	if n := r.attempts(); n != asked {
		t.Errorf("%d attempts while it wants none", n-asked)
	}
	l.pass(61 * time.Second)
	l.until("all but those that it has refused arrive", func() bool {
		_, taken := r.count()
		return taken >= len(events)-asked
	})
	l.pass(30 * time.Second)
	r.mustHaveAll(l, events)
}

// TestGone: 410 disables, and what was not delivered is once it is enabled again.
func TestGone(t *testing.T) {
	l := newLab(t)
	s := l.site()
	r := newReceiver(t)
	r.decide(status(http.StatusGone))
	endpoint := s.subscribe(r)
	s.deliver()
	s.record(30)
	l.until("it is disabled", func() bool { return s.endpoint(endpoint.ID).DisabledBecause == licensing.DisabledGone })
	l.until("nobody delivers to it", func() bool { return len(s.engine.claimed()) == 0 })
	told := 0
	l.until("it is told", func() bool {
		feed, err := s.node.Feed(l.ctx(), l.owner, store.FeedPage{Types: []licensing.EventType{licensing.EventWebhookDisabled}, Limit: 10}, service.FeedWait{})
		told = len(feed.Events)
		return err == nil && told > 0
	})
	if told != 1 {
		t.Errorf("it is told %d times", told)
	}
	r.decide(nil)
	on := true
	if _, err := s.node.UpdateWebhook(l.ctx(), l.owner, licensing.UpdateEndpoint{ID: endpoint.ID, Enabled: &on}); err != nil {
		t.Fatal(err)
	}
	events := slices.DeleteFunc(s.feed(), func(id string) bool { return s.kind(id) != licensing.EventLicenseIssued })
	if len(events) != 30 {
		t.Fatalf("%d events", len(events))
	}
	l.until("all have arrived", func() bool {
		l.pass(spreadOver)
		_, taken := r.count()
		return taken == len(events)
	})
}

// TestDeadLetters: what has failed as often as it may is given up, and can be asked for.
func TestDeadLetters(t *testing.T) {
	l := newLab(t)
	s := l.site()
	r := newReceiver(t)
	var poison string
	r.decide(func(w http.ResponseWriter, _ *http.Request, id string, _ int) bool {
		if id == poison {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte("can't read it"))
			return false
		}
		return true
	})
	s.record(5)
	poison = s.recorded(5)[2]
	endpoint := s.subscribeFrom(r, "")
	s.deliver()
	l.until("it is given up", func() bool {
		l.pass(2 * time.Hour)
		return s.progress(endpoint.ID).Dead == 1
	})
	dead, err := s.deliveries.Deliveries(l.ctx(), endpoint.ID, store.DeliveryPage{Status: store.DeliveryDead, Limit: 10})
	if err != nil || len(dead.Items) != 1 || dead.Items[0].EventID != poison || len(dead.Items[0].Attempts) != webhook.Attempts ||
		dead.Items[0].Answer != "can't read it" || dead.Items[0].Attempts[9].Status != 500 {
		t.Fatalf("given up: %+v (%v)", dead.Items, err)
	}
	if now := s.endpoint(endpoint.ID); !now.Enabled() {
		t.Error("the endpoint is disabled because of one message")
	}
	r.decide(nil)
	s.replay(endpoint.ID, store.Replay{Dead: true})
	l.until("it has arrived", func() bool { _, taken := r.count(); return taken == 5 })
	l.until("nothing is dead", func() bool { p := s.progress(endpoint.ID); return p.Dead == 0 && p.Pending == 0 })
}

// TestLongDeadIsDisabled: an endpoint with which nothing comes through for days is
// disabled, and no sooner.
func TestLongDeadIsDisabled(t *testing.T) {
	l := newLab(t)
	s := l.site()
	r := newReceiver(t)
	r.decide(status(http.StatusBadGateway))
	endpoint := s.subscribe(r)
	s.deliver()
	s.record(300) // more than are tried in days, so that there always is one that is due
	began := l.now()
	disabled := func() bool {
		now := s.endpoint(endpoint.ID)
		return !now.Enabled()
	}
	for !disabled() && l.now().Sub(began) < 2*webhook.MaxFailing {
		before := s.progress(endpoint.ID).Failures
		l.pass(time.Hour)
		// Not only until it is tried: what is due next is reckoned from when that has ended.
		l.until("it fails once more", func() bool {
			l.pass(checkpointAfter / 2)
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

// TestReplays: one event, a span, and all of a span while it goes on.
func TestReplays(t *testing.T) {
	l := newLab(t)
	s := l.site()
	r := newReceiver(t)
	endpoint := s.subscribe(r)
	s.deliver()
	s.record(250)
	events := s.recorded(250)
	r.mustHaveAll(l, events)
	s.replay(endpoint.ID, store.Replay{EventID: events[7]})
	l.until("the event comes again", func() bool { return r.times(events[7]) == 2 })
	s.replay(endpoint.ID, store.Replay{After: events[9], Until: events[219]})
	l.until("the span comes again", func() bool { return r.attempts() == 250+1+210 })
	for i, id := range events {
		want := 1
		if i == 7 || i > 9 && i <= 219 {
			want = 2
		}
		if n := r.times(id); n != want {
			t.Errorf("event %d came %d times, not %d", i, n, want)
		}
	}
	s.replay(endpoint.ID, store.Replay{})
	l.until("all come again", func() bool { return r.attempts() == 250+1+210+250 })
	l.until("all replays are done", func() bool {
		state, err := s.jobs(endpoint.ID)
		return err == nil && len(state) == 0
	})
}

// TestSkipsWhatIsGone: what was swept before it was delivered is said, and the rest
// goes on.
func TestSkipsWhatIsGone(t *testing.T) {
	l := newLab(t)
	s := l.site()
	r := newReceiver(t)
	endpoint := s.subscribe(r)
	s.record(20)
	s.recorded(20)
	l.until("they are swept", func() bool {
		l.pass(time.Hour)
		_, err := s.store.SweepEvents(l.ctx(), l.now(), store.EventRetention{Age: time.Minute, Bytes: 1 << 30})
		return err == nil && len(s.feed()) == 0
	})
	s.record(10)
	events := s.recorded(10)
	s.deliver()
	r.mustHaveAll(l, events)
	l.until("it is said", func() bool { return !s.progress(endpoint.ID).SkippedAt.IsZero() })
}

// TestRotationSignsWithTwo: while a secret is new, both sign.
func TestRotationSignsWithTwo(t *testing.T) {
	l := newLab(t)
	s := l.site()
	r := newReceiver(t)
	endpoint := s.subscribe(r) // and trusts the first secret alone
	s.deliver()
	s.record(3)
	s.recorded(3)
	l.until("they have arrived", func() bool { _, taken := r.count(); return taken == 3 })
	if _, _, err := s.node.RotateWebhookSecret(l.ctx(), service.EndpointRotation{Owner: l.owner, ID: endpoint.ID, Overlap: time.Hour}); err != nil {
		t.Fatal(err)
	}
	l.until("both sign", func() bool {
		s.record(1)
		return r.withSignatures(2) > 0
	})
	r.trustAll()
	l.pass(2 * time.Hour)
	before := r.withSignatures(1)
	l.until("one signs", func() bool {
		s.record(1)
		return r.withSignatures(1) > before
	})
}

// TestEndpointChangesWhileSending: what is deleted or disabled gets nothing more, and
// what has moved gets the rest elsewhere.
func TestEndpointChangesWhileSending(t *testing.T) {
	l := newLab(t)
	s := l.site()
	// They take some, and hold on to the rest, so that there is a rest.
	goOn := make(chan struct{})
	holding := func() func(http.ResponseWriter, *http.Request, string, int) bool {
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
		r.decide(holding())
	}
	first, second, third := s.subscribe(deleted), s.subscribe(disabled), s.subscribe(moved)
	s.deliver()
	s.record(3000)
	events := s.recorded(3000)
	l.until("all get something", func() bool {
		_, a := deleted.count()
		_, b := disabled.count()
		_, c := moved.count()
		return a > 0 && b > 0 && c > 0
	})
	if err := s.node.DeleteWebhook(l.ctx(), l.owner, first.ID, licensing.System); err != nil {
		t.Fatal(err)
	}
	off := false
	if _, err := s.node.UpdateWebhook(l.ctx(), l.owner, licensing.UpdateEndpoint{ID: second.ID, Enabled: &off}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.node.UpdateWebhook(l.ctx(), l.owner, licensing.UpdateEndpoint{ID: third.ID, URL: &target.server.URL}); err != nil {
		t.Fatal(err)
	}
	l.until("nobody delivers to the two", func() bool {
		claimed := s.engine.claimed()
		return !slices.Contains(claimed, first.ID) && !slices.Contains(claimed, second.ID)
	})
	a, b := deleted.attempts(), disabled.attempts()
	close(goOn)
	l.until("the one that has moved has got all", func() bool {
		_, here := moved.count()
		_, there := target.count()
		return here+there >= len(events)
	})
	if deleted.attempts() != a || disabled.attempts() != b {
		t.Error("something was sent to an endpoint that is deleted or disabled")
	}
	if a == len(events) || b == len(events) {
		t.Error("they got everything, so nothing is shown")
	}
	on := true
	disabled.decide(nil)
	if _, err := s.node.UpdateWebhook(l.ctx(), l.owner, licensing.UpdateEndpoint{ID: second.ID, Enabled: &on}); err != nil {
		t.Fatal(err)
	}
	disabled.mustHaveAll(l, events)
	l.until("nothing is left of the one that was deleted", func() bool {
		if err := s.node.SweepWebhooks(context.Background()); err != nil {
			t.Fatal(err)
		}
		read, err := s.deliveries.Progresses(l.ctx(), first.ID)
		return err == nil && len(read) == 0
	})
}
