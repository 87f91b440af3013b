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
func (q *queue) wantsPage(c *cursor, now time.Time) int {
	if q.disable != "" || q.paused || c.ended || !c.more && !c.look || q.room() <= 0 || now.Before(q.mayBegin()) {
		return 0
	}
	limit := fullPage
	switch {
	case q.health.failing():
		if w := q.soonest(); q.flying > 0 || w != nil && !w.next.After(now) {
			return 0
		}
		limit = 1
	case q.health.window < maxWindow:
		limit = max(smallPage, 2*q.health.window)
	}
	if c.ahead() >= limit || len(c.steps) >= maxOpen {
		return 0
	}
	return limit
}

// news tells that there may be new events.
func (q *queue) news() { q.feed.look = true }

func (q *queue) wants(kind licensing.EventType) bool {
	return q.endpoint.Types == nil || slices.Contains(q.endpoint.Types, kind)
}

// page takes a page that was asked for when the cursor had been rewound void times, and the
// endpoint that was read with the page. Where the endpoint has changed, the queue drops
// events that it has read and not sent; then the page is read again behind the rest.
func (q *queue) page(c *cursor, void int, page service.EventFeed, now time.Time) {
	current := void == c.void && (c == &q.feed || q.replay != nil && c == &q.replay.cursor)
	read := c.read
	q.learn(page.Endpoint, now)
	if !current || c.read != read || q.off > 0 {
		return
	}
	before := c.place
	c.add(page, q.wants)
	if c == &q.feed {
		if (c.place != before || q.behind() != q.wasBehind) && q.moved.IsZero() {
			q.moved = now
		}
	} else if c.done() {
		q.touch(now)
	}
}

// expired tells that what should be read next is not kept any more.
func (q *queue) expired(c *cursor, now time.Time) {
	c.skip()
	if c == &q.feed {
		q.skipped = now
		q.touch(now)
	}
}

// behind tells whether there is something in the feed that was not sent yet.
func (q *queue) behind() bool { return q.feed.more || len(q.feed.steps) > 0 }

// oldest is when the first event was that is read and not sent; zero: there is none.
func (q *queue) oldest() time.Time {
	if s := q.feed.peek(); s != nil {
		return s.view.At
	}
	return time.Time{}
}
