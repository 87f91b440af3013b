package delivery

import (
	"slices"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
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
	endpoint licensing.Endpoint
	asOf     int64 // the revision of the store at which endpoint was read
	off      int64 // that at which the endpoint was read as deleted or disabled; 0: never
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

	disable licensing.DisableReason // the endpoint is to be disabled, so nothing is sent
	paused  bool                    // it is given up here, so nothing is sent

	results   []result  // what has ended, in this order, for the next checkpoints
	dirty     time.Time // since when there is something for a checkpoint; zero: nothing
	moved     time.Time // since when at least the place is not stored
	wasBehind bool      // as it is stored
}

// message is what an attempt is to be made of.
type message struct {
	id    string
	view  *service.EventView // nil: it is to be read
	known *store.Delivery    // of a pending one, what came of it; nil: it is to be read
	step  *step              // nil: it is pending
	probe bool               // the endpoint was failing
	reset time.Time          // the endpoint's ResetAt
}

// newQueue goes on where the deliveries of an endpoint stand.
func newQueue(state store.DeliveryState, now time.Time, random func() float64) *queue {
	p, endpoint := state.Progress, state.Endpoint.Endpoint
	q := &queue{
		random: random, endpoint: endpoint, asOf: state.Endpoint.Revision, waiting: make(map[string]*waiting), most: maxPending,
		dead: p.Dead, skipped: p.SkippedAt,
		health: health{window: firstWindow, failures: p.Failures, since: p.FailingSince, probe: p.NextProbe, success: p.LastSuccess},
		feed:   cursor{place: p.Place, read: p.Place, more: true},
	}
	if !state.Found {
		q.feed.place = store.FeedPosition(endpoint.Since)
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

// learn takes the endpoint as it was at a revision, unless the queue knows it as of a later
// one. Each page is read with the endpoint, at a revision at which all events of the page
// were recorded already. So a change that was acknowledged before an event was recorded is
// known before this event is sent, and decides whether and where it is sent.
func (q *queue) learn(at store.EndpointAt, now time.Time) {
	if q.off > 0 || at.Revision < q.asOf {
		return
	}
	q.asOf = at.Revision
	if !at.Enabled() {
		q.off = at.Revision
		return
	}
	q.change(at.Endpoint, now)
}

// change takes the endpoint as it is by now.
func (q *queue) change(endpoint licensing.Endpoint, now time.Time) {
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
