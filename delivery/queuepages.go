package delivery

import (
	"time"

	"licet/node/service"
)

// pageLimit returns how many events the loop should read behind a cursor now; 0: none. The loop reads while
// earlier events are being sent, and reads small pages for an endpoint with a small window, so that slow
// endpoints take little memory.
func (q *queue) pageLimit(c *cursor, now time.Time) int {
	if q.disableReason != "" || q.releasing || c.atEnd || !c.more && !c.mayHaveMore || q.pendingRoom() <= 0 ||
		now.Before(q.nextAttemptAt()) {
		return 0
	}
	limit := fullPage
	switch {
	case q.health.isFailing():
		if w := q.soonestPending(); q.inFlight > 0 || w != nil && !w.due.After(now) {
			return 0
		}
		limit = 1
	case q.health.window < maxWindow:
		limit = max(smallPage, 2*q.health.window)
	}
	if c.unsent() >= limit || len(c.steps) >= maxAhead {
		return 0
	}
	return limit
}

// newEvents notes that the feed may have new events.
func (q *queue) newEvents() { q.feed.mayHaveMore = true }

// addPage takes a page that was requested in a generation of its cursor, and the endpoint that was read with
// the page. If the endpoint's types have changed, the queue discards the events that it has read and not sent,
// and the loop reads the page again behind the rest.
func (q *queue) addPage(c *cursor, generation int, page service.EventFeed, now time.Time) {
	current := generation == c.generation && (c == &q.feed || q.replay != nil && c == &q.replay.cursor)
	read := c.read
	q.updateEndpoint(page.Endpoint, now)
	if !current || c.read != read || q.offRevision > 0 {
		return
	}
	before := c.place
	c.add(page, q.endpoint.Wants)
	if c == &q.feed {
		if (c.place != before || q.behind() != q.storedBehind) && q.movedSince.IsZero() {
			q.movedSince = now
		}
	} else if c.done() {
		q.markDirty(now)
	}
}

// skipExpired resumes a cursor at the oldest event, since the feed no longer has the next events.
func (q *queue) skipExpired(c *cursor, now time.Time) {
	c.skipToOldest()
	if c == &q.feed {
		q.skippedAt = now
		q.markDirty(now)
	}
}

// behind reports whether the feed has events that were not delivered yet.
func (q *queue) behind() bool { return q.feed.more || len(q.feed.steps) > 0 }

// oldestUnsent returns the time of the oldest event that was read and not sent; zero: there is none.
func (q *queue) oldestUnsent() time.Time {
	if s := q.feed.peek(); s != nil {
		return s.view.At
	}
	return time.Time{}
}
