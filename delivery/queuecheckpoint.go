package delivery

import (
	"time"

	"licet/node/store"
)

const (
	// checkpointDelay is the longest time that a result waits for a checkpoint.
	checkpointDelay = 250 * time.Millisecond
	// fullCheckpoint results are stored without waiting for checkpointDelay. maxCheckpoint is the most results of
	// one checkpoint: more results come while a slow store writes.
	fullCheckpoint = 100
	maxCheckpoint  = 250
	// behindDelay is when a checkpoint stores that an endpoint has caught up. placeDelay is when a checkpoint
	// stores a place that moved only past events that the endpoint does not want. Without such a checkpoint the
	// sweep of old events would overtake the place some day.
	behindDelay = time.Second
	placeDelay  = 5 * time.Minute
)

// checkpointAt returns when the next checkpoint is due; zero: there is nothing to store.
func (q *queue) checkpointAt() (at time.Time) {
	switch {
	case len(q.results) >= fullCheckpoint:
		return q.dirtySince
	case !q.dirtySince.IsZero():
		return q.dirtySince.Add(checkpointDelay)
	case q.movedSince.IsZero():
		return time.Time{}
	case q.behind() != q.storedBehind:
		return q.movedSince.Add(behindDelay)
	}
	return q.movedSince.Add(placeDelay)
}

// takeCheckpoint returns a checkpoint of the oldest results. The caller must store it before it takes the next
// one.
func (q *queue) takeCheckpoint(now time.Time) store.Checkpoint {
	var c store.Checkpoint
	in := make(map[string]bool)
	n := 0
	for ; n < min(len(q.results), maxCheckpoint); n++ {
		r := &q.results[n]
		if d := r.delivery; d != nil {
			if in[d.EventID] {
				break // an event once, since a checkpoint has no order
			}
			in[d.EventID] = true
			switch d.Status {
			case store.DeliveryPending:
				c.Pending = append(c.Pending, *d)
			case store.DeliveryDelivered:
				c.Delivered = append(c.Delivered, *d)
			case store.DeliveryDead:
				c.Dead = append(c.Dead, *d)
			}
		}
		if r.step != nil {
			r.step.done = true
		}
		if r.putReplay != nil {
			c.PutJobs = append(c.PutJobs, *r.putReplay)
		}
		if r.endReplay != "" {
			c.EndJobs = append(c.EndJobs, r.endReplay)
		}
	}
	clear(q.results[:n])
	q.results = q.results[n:]
	q.feed.advance()
	if q.replay != nil {
		q.checkpointReplay(&c)
	}
	c.Progress = q.progress()
	q.storedBehind, q.dirtySince, q.movedSince = c.Progress.Behind, time.Time{}, time.Time{}
	if len(q.results) > 0 {
		q.dirtySince = now
	}
	return c
}

// checkpointReplay adds the progress of the replay of a span to a checkpoint.
func (q *queue) checkpointReplay(c *store.Checkpoint) {
	switch moved := q.replay.advance(); {
	case q.replay.done():
		c.EndJobs = append(c.EndJobs, q.replay.job.ID)
		q.replay = nil
	case moved || q.replay.job.Place != string(q.replay.place):
		q.replay.job.Place = string(q.replay.place)
		c.PutJobs = append(c.PutJobs, q.replay.job)
	}
}

// progress returns the progress for a checkpoint.
func (q *queue) progress() store.DeliveryProgress {
	h := &q.health
	p := store.DeliveryProgress{
		Place: q.feed.place, Pending: len(q.pending), Dead: q.dead,
		Failures: h.failures, FailingSince: h.failingSince, SinceInDoubt: h.sinceInDoubt, NextProbe: h.nextProbe,
		LastSuccess: h.lastSuccess, SkippedAt: q.skippedAt, Behind: q.behind(),
	}
	if h.isFailing() {
		p.Failures = failingAfter + h.failedProbes
	}
	// While expedited messages are left, SeenAt stays zero. Then the next holder starts afresh after a crash, and
	// expedites the messages again.
	if q.expedited == 0 {
		p.SeenAt = q.endpoint.ResetAt
	}
	return p
}

// checkpointStored notes that a checkpoint is stored.
func (q *queue) checkpointStored(c *store.Checkpoint) {
	for i := range c.Pending {
		d := &c.Pending[i]
		if w := q.pending[d.EventID]; w != nil && w.unstored != nil && len(w.unstored.Attempts) == len(d.Attempts) {
			w.unstored = nil
		}
	}
}

// idle reports whether all results are in a checkpoint and no attempt is in flight.
func (q *queue) idle() bool { return q.inFlight == 0 && len(q.results) == 0 && q.dirtySince.IsZero() }
