package delivery

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"licet/delivery/webhook"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// simulation is a queue with a feed, a store and a receiver in memory.
type simulation struct {
	t   *rapid.T
	now time.Time

	events   int // in the feed: evt_00001, evt_00002, ...
	oldest   int // the oldest event of the feed
	q        *queue
	inFlight []*message
	requests []pageRequest

	// These are the stored state.
	stored    bool
	progress  store.DeliveryProgress
	pending   map[string]store.Delivery
	delivered map[string]int
	dead      map[string]store.Delivery

	accepted      map[string]int // by the receiver, by event id
	endpoint      licensing.Endpoint
	revision      int64              // of the endpoint's last change
	needed        map[int]bool       // events that the endpoint has always wanted since they were recorded
	page          *service.EventFeed // read for the request, not given to the queue yet
	expired       bool               // the read found that the position has expired
	pendingLimit  int
	checkpoint    *store.Checkpoint // taken and not stored yet
	skippedBefore int               // the queue skips the events before this event
}

type pageRequest struct {
	generation, limit int
	after             store.FeedPosition
}

func eventName(n int) string { return fmt.Sprintf("evt_%05d", n) }

// behind returns the number of the last event before a position.
func (s *simulation) behind(at store.FeedPosition) int {
	n := 0
	if at != "" {
		if _, err := fmt.Sscanf(string(at)[4:], "%d", &n); err != nil {
			s.t.Fatalf("position %q", at)
		}
	}
	return n
}

// kindOf returns the type of an event. The endpoint does not want every third event.
func kindOf(n int) licensing.EventType {
	if n%3 == 0 {
		return licensing.EventOrderCreated
	}
	return licensing.EventOrderPaid
}

// stateOf returns the state of an endpoint without deliveries.
func stateOf(endpoint licensing.Endpoint) store.DeliveryState {
	return store.DeliveryState{Endpoint: store.EndpointAt{Endpoint: endpoint, Found: true, Revision: 1}}
}

// at returns the endpoint as a read finds it.
func (s *simulation) at() store.EndpointAt {
	return store.EndpointAt{Endpoint: s.endpoint, Found: true, Revision: s.revision}
}

// change changes the endpoint in the store.
func (s *simulation) change(to licensing.Endpoint) {
	s.endpoint = to
	s.revision++
	for n := range s.needed {
		s.needed[n] = s.needed[n] && to.Wants(kindOf(n))
	}
}

// record appends events to the feed.
func (s *simulation) record(events int) {
	for range events {
		s.events++
		s.needed[s.events] = s.endpoint.Wants(kindOf(s.events))
	}
}

func newSimulation(t *rapid.T) *simulation {
	s := &simulation{
		needed: map[int]bool{}, revision: 1,
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), oldest: 1,
		pending: map[string]store.Delivery{}, delivered: map[string]int{}, dead: map[string]store.Delivery{},
		accepted: map[string]int{},
	}
	s.pendingLimit = rapid.IntRange(1, 200).Draw(t, "pending at most")
	s.endpoint = licensing.Endpoint{
		ID: "we_1", Types: []licensing.EventType{licensing.EventOrderPaid}, Since: "pos_00000", ResetAt: s.now,
	}
	s.resume()
	return s
}

// resume restarts the queue from the stored state, as after a crash.
func (s *simulation) resume() {
	state := store.DeliveryState{Endpoint: s.at(), Progress: s.progress, Found: s.stored}
	for id, d := range s.pending {
		pending := store.PendingDelivery{EventID: id, Attempts: len(d.Attempts), Next: d.Next}
		state.Pending = append(state.Pending, pending)
	}
	slices.SortFunc(state.Pending, func(a, b store.PendingDelivery) int { return a.Next.Compare(b.Next) })
	s.q = newQueue(state, s.now, func() float64 { return rapid.Float64Range(0, 0.999).Draw(s.t, "random") })
	s.q.pendingLimit = s.pendingLimit
	s.inFlight, s.requests, s.checkpoint, s.page, s.expired = nil, nil, nil, nil, false
}

// send starts all attempts and reads that may start.
func (s *simulation) send() {
	for {
		m := s.q.next(s.now)
		if m == nil {
			break
		}
		s.inFlight = append(s.inFlight, m)
		if m.probe && len(s.inFlight) > 1 {
			s.t.Fatalf("a failing endpoint has %d attempts in flight", len(s.inFlight))
		}
		if len(s.inFlight) > maxWindow {
			s.t.Fatalf("%d attempts are in flight", len(s.inFlight))
		}
	}
	if len(s.requests) == 0 {
		c := &s.q.feed
		if limit := s.q.pageLimit(c, s.now); limit > 0 {
			c.mayHaveMore = false
			s.requests = append(s.requests, pageRequest{c.generation, limit, c.read})
		}
	}
	if len(s.q.pending) > s.pendingLimit {
		s.t.Fatalf("%d messages are pending", len(s.q.pending))
	}
}

// read reads the requested page, or hands the page to the queue.
func (s *simulation) read() {
	switch {
	case len(s.requests) == 0:
	case s.page == nil && !s.expired:
		s.fetch(s.requests[0])
	default:
		a := s.requests[0]
		s.requests = nil
		if s.page != nil {
			s.q.addPage(&s.q.feed, a.generation, *s.page, s.now)
		} else if a.generation == s.q.feed.generation {
			s.q.skipExpired(&s.q.feed, s.now)
			s.skippedBefore = s.oldest
		}
		s.page, s.expired = nil, false
	}
}

func (s *simulation) fetch(a pageRequest) {
	from := s.behind(a.after)
	if a.after != "" && from < s.oldest-1 {
		s.expired = true
		return
	}
	if a.after == "" {
		s.skippedBefore = s.oldest // since the queue skipped to it
	}
	page := service.EventFeed{Endpoint: s.at()}
	from = max(from, s.oldest-1)
	to := from
	for to < s.events && len(page.Events) < a.limit {
		to++
		if s.endpoint.Wants(kindOf(to)) {
			view := service.EventView{}
			view.ID, view.Type, view.At = eventName(to), kindOf(to), s.now
			page.Events = append(page.Events, view)
		}
	}
	page.Next = store.FeedPosition(fmt.Sprintf("pos_%05d", to))
	if len(page.Events) == a.limit {
		page.Next = store.FeedPosition(page.Events[a.limit-1].ID)
	}
	page.More = to < s.events
	s.page = &page
}

// end ends one attempt.
func (s *simulation) end(outcome webhook.Outcome, status int, retryAfter time.Duration) {
	if len(s.inFlight) == 0 {
		return
	}
	at := rapid.IntRange(0, len(s.inFlight)-1).Draw(s.t, "which")
	m := s.inFlight[at]
	s.inFlight = slices.Delete(s.inFlight, at, at+1)
	if outcome == webhook.Delivered {
		s.accepted[m.id]++
	}
	failing := s.q.health.isFailing()
	attempt := &webhook.Attempt{Outcome: outcome, At: s.now, Status: status, RetryAfter: retryAfter}
	s.q.attemptEnded(m, s.before(m), attempt, s.now)
	failedProbe := m.probe && outcome == webhook.Retry && s.q.isCurrent(m)
	if probe := s.q.health.nextProbe; !failing && s.q.health.isFailing() || failedProbe {
		if pause := probe.Sub(s.now); pause < 4*time.Second || pause > longestProbePause {
			s.t.Fatalf("the next probe is in %v", pause)
		}
	}
}

func (s *simulation) before(m *message) store.Delivery {
	switch {
	case m.unstored != nil:
		return *m.unstored
	case m.step == nil:
		return s.pending[m.id]
	}
	return store.Delivery{Type: m.view.Type}
}

func (s *simulation) takeCheckpoint() {
	if s.checkpoint == nil && !s.q.checkpointAt().IsZero() {
		c := s.q.takeCheckpoint(s.now)
		s.checkpoint = &c
	}
}

// storeCheckpoint stores the checkpoint that was taken, and checks the stored state.
func (s *simulation) storeCheckpoint() {
	c := s.checkpoint
	if c == nil {
		return
	}
	s.checkpoint = nil
	if n := len(c.Pending) + len(c.Delivered) + len(c.Dead); n > maxCheckpoint {
		s.t.Fatalf("a checkpoint of %d results", n)
	}
	for _, d := range c.Pending {
		s.pending[d.EventID] = d
		delete(s.dead, d.EventID)
	}
	for _, d := range c.Delivered {
		delete(s.pending, d.EventID)
		delete(s.dead, d.EventID)
		s.delivered[d.EventID]++
		if s.delivered[d.EventID] > s.accepted[d.EventID] {
			s.t.Fatalf("%s is stored as delivered %d times, and was accepted %d times",
				d.EventID, s.delivered[d.EventID], s.accepted[d.EventID])
		}
	}
	for _, d := range c.Dead {
		delete(s.pending, d.EventID)
		s.dead[d.EventID] = d
		if len(d.Attempts) != webhook.Attempts {
			s.t.Fatalf("%s was given up after %d attempts", d.EventID, len(d.Attempts))
		}
	}
	before := s.behind(s.progress.Place)
	s.progress, s.stored = c.Progress, true
	s.q.checkpointStored(c)
	place := s.behind(s.progress.Place)
	if place < before && s.skippedBefore == 0 {
		s.t.Fatalf("the place moved back from %d to %d", before, place)
	}
	for n := max(1, s.skippedBefore); n <= place; n++ {
		if s.needed[n] {
			s.mustBeKnown(n)
		}
	}
}

func (s *simulation) mustBeKnown(n int) {
	id := eventName(n)
	_, pending := s.pending[id]
	_, dead := s.dead[id]
	if s.delivered[id] == 0 && !pending && !dead {
		s.t.Fatalf("%s is before the place, and neither delivered, nor pending, nor dead", id)
	}
}

// TestQueueLosesNothing: no order of events, failures and crashes skips an event.
func TestQueueLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t)
		fails := rapid.IntRange(0, 100).Draw(t, "percent of failures")
		s.t.Repeat(map[string]func(*rapid.T){
			"record": func(t *rapid.T) {
				s.record(rapid.IntRange(1, 150).Draw(t, "events"))
				s.q.newEvents()
			},
			"pass": func(t *rapid.T) {
				s.now = s.now.Add(time.Duration(rapid.IntRange(1, 600_000).Draw(t, "ms")) * time.Millisecond)
			},
			"pass long": func(t *rapid.T) {
				s.now = s.now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "hours")) * time.Hour)
			},
			"read": func(*rapid.T) { s.read() },
			"end some": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "how many") {
					s.send()
					outcome, status := webhook.Delivered, 200
					if rapid.IntRange(1, 100).Draw(t, "luck") <= fails {
						outcome, status = webhook.Retry, rapid.SampledFrom([]int{0, 429, 500}).Draw(t, "status")
					}
					s.end(outcome, status, time.Duration(rapid.IntRange(0, 1000).Draw(t, "retry after"))*time.Second)
				}
			},
			"put back": func(t *rapid.T) {
				if len(s.inFlight) > 0 {
					m := s.inFlight[0]
					s.inFlight = s.inFlight[1:]
					s.q.putBack(m, s.now)
				}
			},
			"take":  func(*rapid.T) { s.takeCheckpoint() },
			"store": func(*rapid.T) { s.storeCheckpoint() },
			"crash": func(*rapid.T) { s.resume() },
			"change types": func(t *rapid.T) {
				other := s.endpoint
				other.Types = rapid.SampledFrom([][]licensing.EventType{
					nil, {licensing.EventOrderPaid}, {licensing.EventOrderCreated},
				}).Draw(t, "types")
				s.change(other)
			},
			"look": func(*rapid.T) { s.q.updateEndpoint(s.at(), s.now) },
			"enable": func(*rapid.T) {
				other := s.endpoint
				other.ResetAt = s.now
				s.change(other)
			},
			"sweep": func(t *rapid.T) {
				if s.events > 0 && rapid.IntRange(0, 9).Draw(t, "seldom") == 0 {
					s.oldest = max(s.oldest, rapid.IntRange(1, s.events).Draw(t, "oldest"))
				}
			},
			"": func(*rapid.T) { s.send() },
		})
		s.finish()
	})
}

// finish delivers all events, and checks the end state.
func (s *simulation) finish() {
	last := s.endpoint
	last.ResetAt = s.now.Add(time.Millisecond)
	s.change(last)
	s.q.updateEndpoint(s.at(), s.now)
	s.q.newEvents()
	for range 100_000 {
		s.send()
		s.read()
		s.end(webhook.Delivered, 200, 0)
		s.takeCheckpoint()
		s.storeCheckpoint()
		if len(s.inFlight) > 0 || len(s.requests) > 0 {
			continue
		}
		readAll := !s.q.feed.more && !s.q.feed.mayHaveMore && s.q.feed.unsent() == 0
		if s.q.idle() && len(s.q.pending) == 0 && readAll && s.q.movedSince.IsZero() {
			break
		}
		s.now = s.now.Add(time.Second)
		if len(s.q.pending) == 0 && s.q.idle() {
			s.now = s.now.Add(placeDelay)
		}
	}
	if place := s.behind(s.progress.Place); place != s.events {
		s.t.Fatalf("in the end the place is %d of %d events; %d are pending", place, s.events, len(s.q.pending))
	}
	if s.progress.Behind || len(s.pending) > 0 || s.progress.Pending > 0 {
		s.t.Fatalf("in the end there is still something to do: %+v, %d pending", s.progress, len(s.pending))
	}
	for id := range s.delivered {
		if n := s.behind(store.FeedPosition(id)); n < 1 || n > s.events {
			s.t.Fatalf("%s was delivered, and is no event", id)
		}
	}
}

// queueOf returns a queue that has read a page of events.
func queueOf(events int, now time.Time) *queue {
	endpoint := licensing.Endpoint{ID: "we_1", Since: "pos_00000", ResetAt: now}
	q := newQueue(stateOf(endpoint), now, func() float64 { return 0.5 })
	page := service.EventFeed{Next: store.FeedPosition(eventName(events)), Endpoint: stateOf(q.endpoint).Endpoint}
	for n := 1; n <= events; n++ {
		view := service.EventView{}
		view.ID, view.Type = eventName(n), licensing.EventOrderPaid
		page.Events = append(page.Events, view)
	}
	q.addPage(&q.feed, q.feed.generation, page, now)
	return q
}

// TestStaleAnswers: a response of an endpoint's old URL does not count for the new URL.
func TestStaleAnswers(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	gone := &webhook.Attempt{Outcome: webhook.Gone, Status: 410, At: now}
	q := queueOf(3, now)
	old := q.next(now)
	moved := q.endpoint
	moved.ResetAt = now.Add(time.Second)
	q.setEndpoint(moved, now)
	q.attemptEnded(old, store.Delivery{}, gone, now)
	if q.disableReason != "" || q.health.failures != 0 {
		t.Errorf("an old answer has it disabled because of %q, after %d failures", q.disableReason, q.health.failures)
	}
	if len(q.pending) != 1 {
		t.Errorf("%d messages are pending", len(q.pending))
	}
	q.attemptEnded(q.next(now), store.Delivery{}, gone, now)
	if q.disableReason != licensing.DisabledGone {
		t.Errorf("410 has it disabled because of %q", q.disableReason)
	}
	if m := q.next(now.Add(time.Hour)); m != nil {
		t.Errorf("%s is sent to an endpoint that is to be disabled", m.id)
	}
}

// TestOlderReadChangesNothing: an older read of an endpoint never replaces a later read, in whatever order they arrive.
func TestOlderReadChangesNothing(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	q := queueOf(3, now)
	at := func(revision int64, url string) store.EndpointAt {
		endpoint := q.endpoint
		endpoint.URL = url
		return store.EndpointAt{Endpoint: endpoint, Found: true, Revision: revision}
	}
	q.updateEndpoint(at(5, "https://new.example"), now)
	q.updateEndpoint(at(3, "https://old.example"), now)
	q.updateEndpoint(store.EndpointAt{Revision: 4}, now)
	if q.endpoint.URL != "https://new.example" || q.offRevision != 0 {
		t.Errorf("the endpoint is at %s, and gone at %d", q.endpoint.URL, q.offRevision)
	}
	// The queue takes the events of an older page, and ignores its endpoint.
	view := service.EventView{}
	view.ID, view.Type = eventName(4), licensing.EventOrderPaid
	q.addPage(&q.feed, q.feed.generation, service.EventFeed{
		Events: []service.EventView{view}, Next: store.FeedPosition(eventName(4)),
		Endpoint: at(2, "https://old.example"),
	}, now)
	if q.endpoint.URL != "https://new.example" || q.feed.unsent() != 4 {
		t.Errorf("the endpoint is at %s, with %d events", q.endpoint.URL, q.feed.unsent())
	}
	q.updateEndpoint(store.EndpointAt{Revision: 6}, now)
	if q.offRevision != 6 {
		t.Errorf("an endpoint that is gone at 6 is so at %d", q.offRevision)
	}
}

// TestPageAfterAChange: a page arrives with new types of the endpoint, behind events that were read with the old types.
// If some of these are unsent, the queue discards them and the page, and reads again. Otherwise it takes the page.
func TestPageAfterAChange(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, sent := range []int{2, 4} {
		q := queueOf(4, now)
		for range sent {
			q.next(now)
		}
		at := store.EndpointAt{Endpoint: q.endpoint, Found: true, Revision: 2}
		at.Endpoint.Types = []licensing.EventType{licensing.EventOrderPaid}
		view := service.EventView{}
		view.ID, view.Type = eventName(5), licensing.EventOrderPaid
		q.addPage(&q.feed, q.feed.generation, service.EventFeed{
			Events: []service.EventView{view}, Next: store.FeedPosition(eventName(5)), Endpoint: at,
		}, now)
		want := eventName(sent)
		if sent == 4 {
			want = eventName(5)
		}
		if string(q.feed.read) != want {
			t.Errorf("with %d events sent it is read up to %s", sent, q.feed.read)
		}
	}
}

// TestPositionWaitsForCheckpoint: the position does not move past an event that became pending until a checkpoint
// stores the message.
func TestPositionWaitsForCheckpoint(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	q := queueOf(1, now)
	for n := range maxCheckpoint {
		q.replayAdvanced(store.Replay{ID: eventName(n)}, now) // so that the next checkpoint has no room for the event
	}
	q.redeliver([]store.Delivery{{EventID: eventName(1), Type: licensing.EventOrderPaid}}, now.Add(time.Hour))
	if m := q.next(now); m == nil || m.id != eventName(1) {
		t.Errorf("%+v is next", m)
	}
	if c := q.takeCheckpoint(now); c.Progress.Place != "pos_00000" {
		t.Errorf("the place is %s, and nothing is stored of what is before", c.Progress.Place)
	}
}
