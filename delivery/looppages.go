package delivery

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// pageResult is the result of reading a page. generation is the cursor's generation when the loop requested
// the page. feed contains the endpoint too, as of the same read.
type pageResult struct {
	cursor     *cursor
	generation int
	feed       service.EventFeed
	err        error
}

// startPage starts to read a page if the feed's cursor or the replay's cursor needs one.
func (l *endpointLoop) startPage(ctx context.Context, now time.Time) {
	if l.reading || now.Before(l.retryPage) {
		return
	}
	c, wanted := &l.queue.feed, true
	limit := l.queue.pageLimit(c, now)
	if replay := l.queue.replay; limit == 0 && replay != nil {
		// All event types, since the replay's last event may be of a type that the endpoint does not want.
		c, wanted = &replay.cursor, false
		limit = l.queue.pageLimit(c, now)
	}
	if limit == 0 {
		return
	}
	if l.engine.bufferedEvents.Load() > maxBufferedEvents {
		limit = min(limit, smallPage)
	}
	l.reading = true
	c.mayHaveMore = false
	generation, page := c.generation, store.FeedPage{After: c.read, Endpoint: l.id, Wanted: wanted, Limit: limit}
	l.start("page of events", func() {
		feed, err := l.engine.cfg.Node.DeliveryEvents(ctx, l.owner, page)
		l.pageResults <- pageResult{c, generation, feed, err}
	})
}

// pageDone takes the result of reading a page.
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
		l.engine.cfg.Log.Warn().Str("endpoint_id", l.id).
			Msg("skipping events that an endpoint has not received: the store no longer has them")
	case errors.Is(read.err, store.ErrBadPosition) && read.cursor != &l.queue.feed:
		l.engine.cfg.Log.Warn().Str("endpoint_id", l.id).Msg("giving up a replay: its position is not in the feed")
		if l.queue.replay != nil && read.cursor == &l.queue.replay.cursor {
			l.queue.endReplay(l.queue.replay.job.ID, now)
		}
	case errors.Is(read.err, store.ErrBadPosition):
		// A store that was restored from a backup may not have the event at the place.
		l.queue.skipExpired(read.cursor, now)
		l.engine.cfg.Log.Warn().Str("endpoint_id", l.id).
			Msg("an endpoint's place is not in the feed: resuming at the oldest event")
	default:
		l.engine.cfg.Log.Debug().Err(read.err).Str("endpoint_id", l.id).
			Msg("can't read the events for an endpoint: retrying")
		read.cursor.mayHaveMore = true
		l.retryPage = now.Add(retryPause)
	}
}
