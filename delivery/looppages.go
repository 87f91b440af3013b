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
type pageRead struct {
	cursor *cursor
	void   int
	feed   service.EventFeed
	err    error
}

// readOn has a page read where one is wanted.
func (r *route) readOn(ctx context.Context, now time.Time) {
	if r.reading || now.Before(r.retryPage) {
		return
	}
	c, wanted := &r.queue.feed, true
	limit := r.queue.wantsPage(c, now)
	if replay := r.queue.replay; limit == 0 && replay != nil {
		// All types, since the last one may be of another.
		c, wanted = &replay.cursor, false
		limit = r.queue.wantsPage(c, now)
	}
	if limit == 0 {
		return
	}
	if r.engine.load.events.Load() > eventsAtOnce {
		limit = min(limit, smallPage)
	}
	r.reading = true
	c.look = false
	void, page := c.void, store.FeedPage{After: c.read, Endpoint: r.id, Wanted: wanted, Limit: limit}
	r.start("page of events", func() {
		feed, err := r.engine.cfg.Node.DeliveryEvents(ctx, r.owner, page)
		r.pages <- pageRead{c, void, feed, err}
	})
}

// turned takes a page that was read.
func (r *route) turned(read pageRead) {
	r.reading = false
	now := r.now()
	switch {
	case read.err == nil:
		r.queue.page(read.cursor, read.void, read.feed, now)
	case read.void != read.cursor.void:
	case errors.Is(read.err, licensing.ErrCursorExpired):
		r.queue.expired(read.cursor, now)
		r.engine.cfg.Metrics.WebhookSkips.Inc()
		r.engine.cfg.Log.Warn().Str("endpoint_id", r.id).Msg("events are not kept any more that an endpoint has not got; it goes on at the oldest that is")
	case errors.Is(read.err, store.ErrBadPosition) && read.cursor != &r.queue.feed:
		r.engine.cfg.Log.Warn().Str("endpoint_id", r.id).Msg("a replay is of no place in the feed; it is given up")
		if r.queue.replay != nil && read.cursor == &r.queue.replay.cursor {
			r.queue.endReplay(r.queue.replay.job.ID, now)
		}
	case errors.Is(read.err, store.ErrBadPosition):
		// A store that was restored may not have the event that the place is behind of.
		r.queue.expired(read.cursor, now)
		r.engine.cfg.Log.Warn().Str("endpoint_id", r.id).Msg("the place of an endpoint in the feed is none any more; it goes on at the oldest event that is kept")
	default:
		r.engine.cfg.Log.Debug().Err(read.err).Str("endpoint_id", r.id).Msg("the events for an endpoint could not be read; it is tried again")
		read.cursor.look = true
		r.retryPage = now.Add(retryPause)
	}
}
