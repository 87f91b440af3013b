package delivery

import (
	"time"

	"licet/node/store"
)

// span is a replay of a part of the feed.
type spanReplay struct {
	cursor
	job store.Replay
}

// beginSpan begins or goes on with the replay of a part of the feed, of which there is
// one at a time. until is the revision of its last event, if it has one.
func (q *queue) startSpan(job store.Replay, until int64) {
	at := store.FeedPosition(job.After)
	if job.Place != "" {
		at = store.FeedPosition(job.Place)
	}
	q.replay = &spanReplay{job: job, cursor: cursor{place: at, read: at, lastID: job.Until, lastRevision: until, bounded: true, more: true}}
}

// redeliver makes messages pending again that were given up, or delivered: as if they
// were new, and due now.
func (q *queue) redeliver(again []store.Delivery, now time.Time) {
	for _, d := range again {
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

// cameTo notes how far a replay is, once all before is stored.
func (q *queue) replayAdvanced(job store.Replay, now time.Time) {
	q.results = append(q.results, result{putReplay: &job})
	q.markDirty(now)
}

// endReplay notes that a replay is done, once all before is stored.
func (q *queue) endReplay(id string, now time.Time) {
	if q.replay != nil && q.replay.job.ID == id {
		q.replay = nil
	}
	q.results = append(q.results, result{endReplay: id})
	q.markDirty(now)
}
