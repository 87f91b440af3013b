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
	random           func() float64
	endpoint         licensing.Endpoint
	endpointRevision int64 // the revision of the store at which endpoint was read
	offRevision      int64 // that at which the endpoint was read as deleted or disabled; 0: never
	health           health

	feed         cursor
	replay       *spanReplay // a span of the feed that is delivered again; nil: none
	feedTurn     bool        // whose turn it is of the two
	pending      map[string]*pendingMessage
	pendingLimit int             // how many may be
	firstDue     *pendingMessage // of them, the one that is tried next; nil: it is to be looked for
	dead         int
	skippedAt    time.Time
	// hastened is how many of the waiting are due because the endpoint has become well
	// and not by their own time. Until all were tried, that is stored, see progress.
	expedited int

	inFlight    int // attempts under way
	newInFlight int // of them, those of messages that are not pending

	pausedUntil   time.Time // nothing is sent until then, for a reason of our own
	localFailures int       // such in a row

	disableReason licensing.DisableReason // the endpoint is to be disabled, so nothing is sent
	releasing     bool                    // it is given up here, so nothing is sent

	results      []result  // what has ended, in this order, for the next checkpoints
	dirtySince   time.Time // since when there is something for a checkpoint; zero: nothing
	movedSince   time.Time // since when at least the place is not stored
	storedBehind bool      // as it is stored
}

// message is what an attempt is to be made of.
type message struct {
	id       string
	view     *service.EventView // nil: it is to be read
	unstored *store.Delivery    // of a pending one, what came of it; nil: it is to be read
	step     *step              // nil: it is pending
	probe    bool               // the endpoint was failing
	resetAt  time.Time          // the endpoint's ResetAt
}

// newQueue goes on where the deliveries of an endpoint stand.
func newQueue(state store.DeliveryState, now time.Time, random func() float64) *queue {
	p, endpoint := state.Progress, state.Endpoint.Endpoint
	q := &queue{
		random: random, endpoint: endpoint, endpointRevision: state.Endpoint.Revision, pending: make(map[string]*pendingMessage), pendingLimit: maxPending,
		dead: p.Dead, skippedAt: p.SkippedAt,
		health: health{window: firstWindow, failures: p.Failures, failingSince: p.FailingSince, nextProbe: p.NextProbe, lastSuccess: p.LastSuccess},
		feed:   cursor{place: p.Place, read: p.Place, more: true},
	}
	if !state.Found {
		q.feed.place = store.FeedPosition(endpoint.Since)
		q.feed.read = q.feed.place
	}
	if q.health.isFailing() {
		q.health.failedProbes = max(p.Failures-failingAfter, 0)
	} else {
		// Of which events they were is not known any more.
		q.health.failedEvents = make([]string, min(p.Failures, failingAfter-1))
	}
	for _, pending := range state.Pending {
		q.pending[pending.EventID] = &pendingMessage{id: pending.EventID, due: pending.Next}
	}
	if state.Found && !p.SeenAt.Equal(endpoint.ResetAt) {
		q.startAfresh(now)
	}
	q.storedBehind = p.Behind
	return q
}

// forgive forgets that the endpoint has failed, since it is another by now, or was
// mended. All that is pending is due.
func (q *queue) startAfresh(now time.Time) {
	q.health.reset()
	q.disableReason = ""
	q.expedite(now)
	q.markDirty(now)
}

// learn takes the endpoint as it was at a revision, unless the queue knows it as of a later
// one. Each page is read with the endpoint, at a revision at which all events of the page
// were recorded already. So a change that was acknowledged before an event was recorded is
// known before this event is sent, and decides whether and where it is sent.
func (q *queue) updateEndpoint(at store.EndpointAt, now time.Time) {
	if q.offRevision > 0 || at.Revision < q.endpointRevision {
		return
	}
	q.endpointRevision = at.Revision
	if !at.Enabled() {
		q.offRevision = at.Revision
		return
	}
	q.setEndpoint(at.Endpoint, now)
}

// change takes the endpoint as it is by now.
func (q *queue) setEndpoint(endpoint licensing.Endpoint, now time.Time) {
	before := q.endpoint
	q.endpoint = endpoint
	if !slices.Equal(before.Types, endpoint.Types) || (before.Types == nil) != (endpoint.Types == nil) {
		q.feed.rewind()
		if q.replay != nil {
			q.replay.rewind()
		}
	}
	if !before.ResetAt.Equal(endpoint.ResetAt) {
		q.startAfresh(now)
	}
}

// next gives what is to be sent now; nil: nothing. For each one there must be a call
// of ended or putBack.
func (q *queue) next(now time.Time) *message {
	if !q.maySend(now) {
		return nil
	}
	if w := q.soonestPending(); w != nil && !w.due.After(now) {
		q.clearExpedited(w)
		w.inFlight, q.firstDue = true, nil
		q.inFlight++
		return &message{id: w.id, unstored: w.unstored, probe: q.health.isFailing(), resetAt: q.endpoint.ResetAt}
	}
	from := q.nextSource()
	if from == nil {
		return nil
	}
	s := from.start()
	q.inFlight++
	q.newInFlight++
	return &message{id: s.view.ID, view: s.view, step: s, probe: q.health.isFailing(), resetAt: q.endpoint.ResetAt}
}

func (q *queue) maySend(now time.Time) bool {
	limit := q.health.window
	if q.health.isFailing() {
		limit = 1
	}
	return q.disableReason == "" && !q.releasing && q.inFlight < limit && len(q.results) < maxUnstored && !now.Before(q.nextAttemptAt())
}

// room is how many messages may become pending that are not.
func (q *queue) pendingRoom() int { return q.pendingLimit - len(q.pending) - q.newInFlight }

// source is where the next message that is not pending comes from: the feed, or in
// turn with it a replay.
func (q *queue) nextSource() *cursor {
	if q.pendingRoom() <= 0 {
		return nil
	}
	for s := q.feed.peek(); s != nil && q.isStoredPending(s.view.ID); s = q.feed.peek() {
		// Whoever had the endpoint before was stopped in a checkpoint.
		q.feed.start()
		s.view, s.done = nil, true
	}
	fresh := q.feed.peek() != nil
	again := q.replay != nil && q.replay.peek() != nil
	if fresh && again {
		q.feedTurn = !q.feedTurn
		fresh = q.feedTurn
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
func (q *queue) markDirty(now time.Time) {
	if q.dirtySince.IsZero() {
		q.dirtySince = now
	}
}

// wake is when the next message is due that waits for nothing but the time; zero:
// there is none.
func (q *queue) wakeAt(now time.Time) time.Time {
	if q.disableReason != "" || q.releasing {
		return time.Time{}
	}
	if may := q.nextAttemptAt(); now.Before(may) {
		return may
	}
	if w := q.soonestPending(); w != nil {
		return w.due
	}
	return time.Time{}
}
