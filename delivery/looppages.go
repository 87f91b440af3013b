package delivery

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// pageRead is a page that was asked for when its cursor had been rewound void times, with
// the endpoint that judges the page.
type pageResult struct {
	cursor     *cursor
	generation int
	feed       service.EventFeed
	err        error
}

// readOn has a page read where one is wanted.
func (l *endpointLoop) startPage(ctx context.Context, now time.Time) {
	if l.reading || now.Before(l.retryPage) {
		return
	}
	c, wanted := &l.queue.feed, true
	limit := l.queue.pageLimit(c, now)
	if replay := l.queue.replay; limit == 0 && replay != nil {
		// All types, since the last one may be of another.
		c, wanted = &replay.cursor, false
		limit = l.queue.pageLimit(c, now)
	}
	if limit == 0 {
		return
	}
	if l.engine.load.events.Load() > maxBufferedEvents {
		limit = min(limit, smallPage)
	}
	l.reading = true
	c.mayHaveMore = false
	void, page := c.generation, store.FeedPage{After: c.read, Endpoint: l.id, Wanted: wanted, Limit: limit}
	l.start("page of events", func() {
		feed, err := l.engine.cfg.Node.DeliveryEvents(ctx, l.owner, page)
		l.pageResults <- pageResult{c, void, feed, err}
	})
}

// turned takes a page that was read.
func (l *endpointLoop) pageDone(read pageResult) {
	l.reading = false
	now := l.now()
	switch {
	case read.err == nil:
		l.queue.addPage(read.cursor, read.generation, read.feed, now)
	case read.generation != read.cursor.generation:
	case errors.Is(read.err, licensing.ErrCursorExpired):
		l.queue.skipExpired(read.cursor, now)
		l.engine.cfg.Metrics.WebhookSkips.Inc()
		l.engine.cfg.Log.Warn().Str("endpoint_id", l.id).Msg("events are not kept any more that an endpoint has not got; it goes on at the oldest that is")
	case errors.Is(read.err, store.ErrBadPosition) && read.cursor != &l.queue.feed:
		l.engine.cfg.Log.Warn().Str("endpoint_id", l.id).Msg("a replay is of no place in the feed; it is given up")
		if l.queue.replay != nil && read.cursor == &l.queue.replay.cursor {
			l.queue.endReplay(l.queue.replay.job.ID, now)
		}
	case errors.Is(read.err, store.ErrBadPosition):
		// A store that was restored may not have the event that the place is behind of.
		l.queue.skipExpired(read.cursor, now)
		l.engine.cfg.Log.Warn().Str("endpoint_id", l.id).Msg("the place of an endpoint in the feed is none any more; it goes on at the oldest event that is kept")
	default:
		l.engine.cfg.Log.Debug().Err(read.err).Str("endpoint_id", l.id).Msg("the events for an endpoint could not be read; it is tried again")
		read.cursor.mayHaveMore = true
		l.retryPage = now.Add(retryPause)
	}
}
