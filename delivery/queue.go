package delivery

import (
	"slices"
	"time"

	"licet/delivery/webhook"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

const (
	// maxPending bounds the pending messages of an endpoint. At the bound, its place in the feed waits.
	maxPending = 1000
	// maxUnstored bounds the results in no checkpoint. While the store does not respond, the queue sends no more
	// messages, since a crash would send them again.
	maxUnstored = 500

	// fullPage and smallPage are the sizes of pages of the feed. The loop reads the next page when fewer unsent
	// events than a page are left, and sends those meanwhile.
	fullPage  = 100
	smallPage = 2 * firstWindow
)

// queue decides which messages are sent to one endpoint, and when. Its caller tells it events and times; the
// queue does no I/O. One goroutine uses it.
type queue struct {
	random           func() float64
	endpoint         licensing.Endpoint
	endpointRevision int64 // the store's revision when endpoint was read
	offRevision      int64 // the store's revision when the endpoint was read as deleted or disabled; 0: never
	health           health

	feed         cursor
	replay       *spanReplay                // the span of the feed that is delivered again; nil: none
	feedTurn     bool                       // the next new message is from the feed, if the replay has one too
	pending      map[string]*pendingMessage // by event id
	pendingLimit int                        // the most pending messages
	firstDue     *pendingMessage            // the pending message that is due first; nil: not known
	dead         int                        // messages that were given up
	skippedAt    time.Time
	// expedited counts the pending messages that are due early because the endpoint recovered. Checkpoints say
	// so until all were attempted; see progress.
	expedited int

	inFlight    int // attempts in flight
	newInFlight int // attempts in flight of messages that are not pending

	pausedUntil   time.Time // no attempt starts before this time, since this node failed to send
	localFailures int       // failures of this node in a row

	// clockInDoubt: the queue gives up no message, and disables no endpoint, because of the time.
	clockInDoubt  bool
	disableReason licensing.DisableReason // why the endpoint should be disabled; then no attempt starts
	releasing     bool                    // the loop releases the endpoint, so no attempt starts

	results      []result  // for the next checkpoints, oldest first
	dirtySince   time.Time // when the oldest change for a checkpoint was made; zero: none
	movedSince   time.Time // when the place moved first since the last checkpoint; zero: it has not
	storedBehind bool      // Behind of the last checkpoint
}

// message is a message to send in one attempt.
type message struct {
	id       string
	view     *service.EventView // nil: it must be read
	unstored *store.Delivery    // the state of a pending message that is in no checkpoint; nil: it must be read
	step     *step              // nil: the message is pending
	probe    bool               // the attempt probes a failing endpoint
	resetAt  time.Time          // the endpoint's ResetAt when the attempt started
}

// newQueue returns a queue that resumes from the stored state of an endpoint.
func newQueue(state store.DeliveryState, now time.Time, random func() float64) *queue {
	p, endpoint := state.Progress, state.Endpoint.Endpoint
	q := &queue{
		random: random, endpoint: endpoint, endpointRevision: state.Endpoint.Revision,
		pending: make(map[string]*pendingMessage), pendingLimit: maxPending, dead: p.Dead, skippedAt: p.SkippedAt,
		health: health{
			window: firstWindow, failures: p.Failures,
			failingSince: resumed(p.FailingSince, now, 0), sinceInDoubt: p.SinceInDoubt,
			nextProbe: resumed(p.NextProbe, now, longestProbePause), lastSuccess: p.LastSuccess,
		},
		feed: cursor{place: p.Place, read: p.Place, more: true},
	}
	if !state.Found {
		q.feed.place = store.FeedPosition(endpoint.Since)
		q.feed.read = q.feed.place
	}
	if q.health.isFailing() {
		q.health.failedProbes = max(p.Failures-failingAfter, 0)
	} else {
		// The store does not say which events failed: empty ids stand for them.
		q.health.failedEvents = make([]string, min(p.Failures, failingAfter-1))
	}
	for _, pending := range state.Pending {
		q.pending[pending.EventID] = &pendingMessage{
			id: pending.EventID, due: resumed(pending.Next, now, webhook.LongestDelay),
		}
	}
	if state.Found && !p.SeenAt.Equal(endpoint.ResetAt) {
		q.startAfresh(now)
	}
	q.storedBehind = p.Behind
	return q
}

// resumed returns a stored time as the queue uses it. A time that is more than most ahead of now was stored by a node
// whose clock was ahead: resumed returns now. Any other time stays. It gets now's monotonic reading, so a later step of
// the node's clock moves no due time.
func resumed(stored, now time.Time, most time.Duration) time.Time {
	ahead := stored.Sub(now)
	switch {
	case stored.IsZero():
		return stored
	case ahead > most:
		return now
	}
	return now.Add(ahead)
}

// startAfresh forgets the endpoint's failures, since the endpoint was changed or enabled. All pending messages
// become due.
func (q *queue) startAfresh(now time.Time) {
	q.health.reset()
	q.disableReason = ""
	q.expedite(now)
	q.markDirty(now)
}

// updateEndpoint takes the endpoint as of a revision, unless the queue has a later one. Each page is read
// together with the endpoint, at a revision at which all events of the page had been recorded. So the queue
// knows a change that was acknowledged before an event was recorded when it sends this event, and the change
// decides whether and where the event is sent.
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

// setEndpoint replaces the endpoint. New event types discard events that were read and not sent.
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

// next returns the message to send now; nil: none. For each message the caller must call attemptEnded,
// renderFailed, eventGone or putBack.
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

// maySend reports whether another attempt may start now.
func (q *queue) maySend(now time.Time) bool {
	limit := q.health.window
	if q.health.isFailing() {
		limit = 1
	}
	return q.disableReason == "" && !q.releasing && q.inFlight < limit && len(q.results) < maxUnstored &&
		!now.Before(q.nextAttemptAt())
}

// pendingRoom returns how many more messages may become pending.
func (q *queue) pendingRoom() int { return q.pendingLimit - len(q.pending) - q.newInFlight }

// nextSource returns the cursor of the next message that is not pending: the feed and the replay take turns.
// It returns nil if there is no such message.
func (q *queue) nextSource() *cursor {
	if q.pendingRoom() <= 0 {
		return nil
	}
	for s := q.feed.peek(); s != nil && q.isStoredPending(s.view.ID); s = q.feed.peek() {
		// The previous holder stored the message as pending, but not yet the place behind its event.
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

// markDirty notes that a checkpoint is needed.
func (q *queue) markDirty(now time.Time) {
	if q.dirtySince.IsZero() {
		q.dirtySince = now
	}
}

// wakeAt returns when the next message becomes due by time alone; zero: none does.
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
