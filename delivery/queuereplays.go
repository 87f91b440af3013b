package delivery

import (
	"time"

	"licet/node/store"
)

// spanReplay is the replay of a span of the feed.
type spanReplay struct {
	cursor
	job store.Replay
}

// startSpan starts or resumes the replay of a span of the feed. There is one such replay at a time. until is
// the revision of its last event; 0 if it has none.
func (q *queue) startSpan(job store.Replay, until int64) {
	at := store.FeedPosition(job.After)
	if job.Place != "" {
		at = store.FeedPosition(job.Place)
	}
	q.replay = &spanReplay{job: job, cursor: cursor{
		place: at, read: at, lastID: job.Until, lastRevision: until, bounded: true, more: true,
	}}
}

// redeliver makes dead or delivered messages pending again, without attempts and due now.
func (q *queue) redeliver(messages []store.Delivery, now time.Time) {
	for _, d := range messages {
		if w := q.pending[d.EventID]; w != nil {
			if !w.inFlight {
				w.due, q.firstDue = now, nil
			}
			continue
		}
		if d.Status == store.DeliveryDead {
			q.dead = max(q.dead-1, 0)
		}
		pending := &store.Delivery{EventID: d.EventID, Type: d.Type, Status: store.DeliveryPending, Next: now}
		q.addPending(pending)
		q.results = append(q.results, result{delivery: pending})
	}
	q.markDirty(now)
}

// replayAdvanced stores the progress of a replay, after all earlier results.
func (q *queue) replayAdvanced(job store.Replay, now time.Time) {
	q.results = append(q.results, result{putReplay: &job})
	q.markDirty(now)
}

// endReplay stores that a replay is done, after all earlier results.
func (q *queue) endReplay(id string, now time.Time) {
	if q.replay != nil && q.replay.job.ID == id {
		q.replay = nil
	}
	q.results = append(q.results, result{endReplay: id})
	q.markDirty(now)
}
