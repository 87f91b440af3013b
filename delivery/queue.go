package delivery

import (
	"slices"
	"time"

	"licet"
	"licet/node"
	"licet/webhook"
)

const (
	// maxPending bounds the messages to an endpoint that are to be tried again. Then
	// its place in the feed waits.
	maxPending = 1000
	// maxUnstored bounds what has ended and is in no checkpoint: while the store does
	// not answer, nothing more is sent that would have to be sent again.
	maxUnstored = 500

	// A page of the feed is read when less than that is left, and while that is sent.
	fullPage  = 100
	smallPage = 2 * firstWindow
)

// queue decides what is sent to one endpoint, and when. It is told what has happened,
// and the time; it does nothing itself. It is used by one goroutine.
type queue struct {
	random   func() float64
	endpoint licet.Endpoint
	health   health

	feed    cursor
	replay  *span // a span of the feed that is delivered again; nil: none
	turn    bool  // whose turn it is of the two
	waiting map[string]*waiting
	most    int      // how many may be
	first   *waiting // of them, the one that is tried next; nil: it is to be looked for
	dead    int
	skipped time.Time
	// hastened is how many of the waiting are due because the endpoint has become well
	// and not by their own time. Until all were tried, that is stored, see progress.
	hastened int

	flying    int // attempts under way
	flyingNew int // of them, those of messages that are not pending

	rest     time.Time // nothing is sent until then, for a reason of our own
	troubles int       // such in a row

	disable licet.DisableReason // the endpoint is to be disabled, so nothing is sent
	paused  bool                // it is given up here, so nothing is sent

	results   []result  // what has ended, in this order, for the next checkpoints
	dirty     time.Time // since when there is something for a checkpoint; zero: nothing
	moved     time.Time // since when at least the place is not stored
	wasBehind bool      // as it is stored
}

// waiting is a message that is pending.
type waiting struct {
	id       string
	next     time.Time
	flying   bool
	hastened bool
	// unstored is what came of it until that is stored.
	unstored *node.Delivery
}

// message is what an attempt is to be made of.
type message struct {
	id    string
	view  *node.EventView // nil: it is to be read
	known *node.Delivery  // of a pending one, what came of it; nil: it is to be read
	step  *step           // nil: it is pending
	probe bool            // the endpoint was failing
	reset time.Time       // the endpoint's ResetAt
}

// result is something that ended: a message, or a step of a replay.
type result struct {
	delivery *node.Delivery
	step     *step // nil: it was pending

	putReplay *node.Replay
	endReplay string
}

// newQueue goes on where the deliveries of an endpoint stand.
func newQueue(endpoint licet.Endpoint, state node.DeliveryState, now time.Time, random func() float64) *queue {
	p := state.Progress
	q := &queue{
		random: random, endpoint: endpoint, waiting: make(map[string]*waiting), most: maxPending,
		dead: p.Dead, skipped: p.SkippedAt,
		health: health{window: firstWindow, failures: p.Failures, since: p.FailingSince, probe: p.NextProbe, success: p.LastSuccess},
		feed:   cursor{place: p.Place, read: p.Place, more: true},
	}
	if !state.Found {
		q.feed.place = node.FeedPosition(endpoint.Since)
		q.feed.read = q.feed.place
	}
	if q.health.failing() {
		q.health.probes = max(p.Failures-failingAfter, 0)
	} else {
		// Of which events they were is not known any more.
		q.health.streak = make([]string, min(p.Failures, failingAfter-1))
	}
	for _, pending := range state.Pending {
		q.waiting[pending.EventID] = &waiting{id: pending.EventID, next: pending.Next}
	}
	if state.Found && !p.SeenAt.Equal(endpoint.ResetAt) {
		q.forgive(now)
	}
	q.wasBehind = p.Behind
	return q
}

// forgive forgets that the endpoint has failed, since it is another by now, or was
// mended. All that is pending is due.
func (q *queue) forgive(now time.Time) {
	q.health.forget()
	q.disable = ""
	q.hasten(now)
	q.touch(now)
}

// change takes the endpoint as it is by now.
func (q *queue) change(endpoint licet.Endpoint, now time.Time) {
	before := q.endpoint
	q.endpoint = endpoint
	if !slices.Equal(before.Types, endpoint.Types) || (before.Types == nil) != (endpoint.Types == nil) {
		q.feed.rewind()
		if q.replay != nil {
			q.replay.rewind()
		}
	}
	if !before.ResetAt.Equal(endpoint.ResetAt) {
		q.forgive(now)
	}
}

// hasten makes all that is pending due, over some seconds.
func (q *queue) hasten(now time.Time) {
	q.first = nil
	for _, w := range q.waiting {
		soon := now.Add(time.Duration(q.random() * float64(spreadOver)))
		if w.flying || !w.next.After(soon) {
			continue
		}
		w.next = soon
		if !w.hastened {
			w.hastened = true
			q.hastened++
		}
	}
}

func (q *queue) calm(w *waiting) {
	if w.hastened {
		w.hastened = false
		q.hastened--
	}
}

// next gives what is to be sent now; nil: nothing. For each one there must be a call
// of ended or putBack.
func (q *queue) next(now time.Time) *message {
	if !q.maySend(now) {
		return nil
	}
	if w := q.soonest(); w != nil && !w.next.After(now) {
		q.calm(w)
		w.flying, q.first = true, nil
		q.flying++
		return &message{id: w.id, known: w.unstored, probe: q.health.failing(), reset: q.endpoint.ResetAt}
	}
	from := q.source()
	if from == nil {
		return nil
	}
	s := from.begin()
	q.flying++
	q.flyingNew++
	return &message{id: s.view.ID, view: s.view, step: s, probe: q.health.failing(), reset: q.endpoint.ResetAt}
}

func (q *queue) maySend(now time.Time) bool {
	limit := q.health.window
	if q.health.failing() {
		limit = 1
	}
	return q.disable == "" && !q.paused && q.flying < limit && len(q.results) < maxUnstored && !now.Before(q.mayBegin())
}

// soonest is the pending message that is tried next.
func (q *queue) soonest() *waiting {
	if q.first == nil {
		for _, w := range q.waiting {
			if !w.flying && (q.first == nil || w.next.Before(q.first.next)) {
				q.first = w
			}
		}
	}
	return q.first
}

// room is how many messages may become pending that are not.
func (q *queue) room() int { return q.most - len(q.waiting) - q.flyingNew }

// source is where the next message that is not pending comes from: the feed, or in
// turn with it a replay.
func (q *queue) source() *cursor {
	if q.room() <= 0 {
		return nil
	}
	for s := q.feed.peek(); s != nil && q.isStoredPending(s.view.ID); s = q.feed.peek() {
		// Whoever had the endpoint before was stopped in a checkpoint.
		q.feed.begin()
		s.view, s.settled = nil, true
	}
	fresh := q.feed.peek() != nil
	again := q.replay != nil && q.replay.peek() != nil
	if fresh && again {
		q.turn = !q.turn
		fresh = q.turn
	}
	switch {
	case fresh:
		return &q.feed
	case again:
		return &q.replay.cursor
	}
	return nil
}

func (q *queue) isStoredPending(event string) bool {
	w := q.waiting[event]
	return w != nil && w.unstored == nil
}

// putBack takes a message back that was not sent, or of which nobody knows what came.
func (q *queue) putBack(m *message, now time.Time) {
	q.flying--
	if m.step != nil {
		// It is tried again as a pending one: another has begun behind it, perhaps.
		q.flyingNew--
		q.end(m, node.Delivery{EventID: m.id, Type: m.view.Type, Status: node.DeliveryPending, Next: now.Add(putBackPause)}, now)
		return
	}
	if w := q.waiting[m.id]; w != nil {
		w.flying, w.next, q.first = false, now.Add(putBackPause), nil
	}
}

// lost takes it that the event of a pending message is not kept any more.
func (q *queue) lost(m *message, before node.Delivery, now time.Time) {
	q.flying--
	before.Status, before.Next = node.DeliveryDead, time.Time{}
	q.skipped = now
	q.end(m, before, now)
}

// ended takes what came of an attempt. before is the message as it was.
func (q *queue) ended(m *message, before node.Delivery, attempt *webhook.Attempt, now time.Time) {
	q.flying--
	q.troubles = 0
	if m.step != nil {
		q.flyingNew--
	}
	if attempt.Outcome == webhook.Delivered {
		after := tried(m, before, attempt)
		after.Status = node.DeliveryDelivered
		q.end(m, after, now)
		if q.isCurrent(m) && q.health.succeeded(now, attempt.Duration) {
			q.hasten(now)
		}
		return
	}
	if q.isCurrent(m) {
		if why := q.health.failed(m.id, attempt, m.probe, now, q.random()); why != "" {
			q.disable = why
		}
	}
	q.end(m, q.retry(m, before, attempt, now), now)
	if q.health.failing() {
		for _, w := range q.waiting {
			q.calm(w)
		}
		// Whoever fails for days needs no pages meanwhile.
		q.feed.rewind()
		if q.replay != nil {
			q.replay.rewind()
		}
	}
}

// isCurrent tells whether an attempt says something of the endpoint as it is by now.
func (q *queue) isCurrent(m *message) bool { return m.reset.Equal(q.endpoint.ResetAt) }

// spoilt takes it that a message could not be made, which is no fault of the
// endpoint's.
func (q *queue) spoilt(m *message, before node.Delivery, attempt *webhook.Attempt, now time.Time) {
	q.flying--
	if m.step != nil {
		q.flyingNew--
	}
	q.end(m, q.retry(m, before, attempt, now), now)
}

// retry is what becomes of a message after a failure.
func (q *queue) retry(m *message, before node.Delivery, attempt *webhook.Attempt, now time.Time) node.Delivery {
	after := tried(m, before, attempt)
	pause, again := webhook.Delay(len(after.Attempts), attempt.RetryAfter, q.random())
	if !again && attempt.Outcome != webhook.Gone {
		after.Status = node.DeliveryDead
		return after
	}
	after.Status, after.Next = node.DeliveryPending, now.Add(max(pause, retryPause))
	return after
}

// tried is a message with one more attempt.
func tried(m *message, before node.Delivery, attempt *webhook.Attempt) node.Delivery {
	after := before
	after.EventID, after.Answer, after.Next = m.id, attempt.Answer, time.Time{}
	after.Attempts = append(slices.Clone(before.Attempts), node.DeliveryAttempt{
		At: attempt.At, Duration: attempt.Duration, Status: attempt.Status, Failure: string(attempt.Failure),
	})
	return after
}

// end keeps what a message has become for a checkpoint.
func (q *queue) end(m *message, d node.Delivery, now time.Time) {
	if m.step != nil {
		m.step.view = nil
	}
	w := q.waiting[d.EventID]
	if w != nil {
		q.calm(w)
		delete(q.waiting, d.EventID)
		q.first = nil
	}
	switch d.Status {
	case node.DeliveryPending:
		q.wait(&d)
	case node.DeliveryDead:
		if q.dead++; q.dead >= maxDead && q.disable == "" {
			q.disable = licet.DisabledDeadLetters
		}
	}
	q.results = append(q.results, result{delivery: &d, step: m.step})
	q.touch(now)
}

func (q *queue) wait(d *node.Delivery) {
	q.waiting[d.EventID] = &waiting{id: d.EventID, next: d.Next, unstored: d}
	q.first = nil
}

// touch notes that there is something for a checkpoint.
func (q *queue) touch(now time.Time) {
	if q.dirty.IsZero() {
		q.dirty = now
	}
}

// wake is when the next message is due that waits for nothing but the time; zero:
// there is none.
func (q *queue) wake(now time.Time) time.Time {
	if q.disable != "" || q.paused {
		return time.Time{}
	}
	if may := q.mayBegin(); now.Before(may) {
		return may
	}
	if w := q.soonest(); w != nil {
		return w.next
	}
	return time.Time{}
}
