package delivery

import (
	"slices"
	"time"

	"licet/licensing"
	"licet/node/service"
)

// wantsPage tells how many events should be read behind a cursor now; 0: none. There
// is more to read while what was read is sent, and as much as the endpoint takes:
// what lies here of one that takes little is little.
func (q *queue) pageLimit(c *cursor, now time.Time) int {
	if q.disableReason != "" || q.releasing || c.atEnd || !c.more && !c.mayHaveMore || q.pendingRoom() <= 0 || now.Before(q.nextAttemptAt()) {
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

// news tells that there may be new events.
func (q *queue) newEvents() { q.feed.mayHaveMore = true }

func (q *queue) wants(kind licensing.EventType) bool {
	return q.endpoint.Types == nil || slices.Contains(q.endpoint.Types, kind)
}

// page takes a page that was asked for when the cursor had been rewound void times, and the
// endpoint that was read with the page. Where the endpoint has changed, the queue drops
// events that it has read and not sent; then the page is read again behind the rest.
func (q *queue) addPage(c *cursor, void int, page service.EventFeed, now time.Time) {
	current := void == c.generation && (c == &q.feed || q.replay != nil && c == &q.replay.cursor)
	read := c.read
	q.updateEndpoint(page.Endpoint, now)
	if !current || c.read != read || q.offRevision > 0 {
		return
	}
	before := c.place
	c.add(page, q.wants)
	if c == &q.feed {
		if (c.place != before || q.behind() != q.storedBehind) && q.movedSince.IsZero() {
			q.movedSince = now
		}
	} else if c.done() {
		q.markDirty(now)
	}
}

// expired tells that what should be read next is not kept any more.
func (q *queue) skipExpired(c *cursor, now time.Time) {
	c.skipToOldest()
	if c == &q.feed {
		q.skippedAt = now
		q.markDirty(now)
	}
}

// behind tells whether there is something in the feed that was not sent yet.
func (q *queue) behind() bool { return q.feed.more || len(q.feed.steps) > 0 }

// oldest is when the first event was that is read and not sent; zero: there is none.
func (q *queue) oldestUnsent() time.Time {
	if s := q.feed.peek(); s != nil {
		return s.view.At
	}
	return time.Time{}
}
