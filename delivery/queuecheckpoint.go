package delivery

import (
	"time"

	"licet/node/store"
)

const (
	// checkpointAfter is how long at most what has ended is in no checkpoint.
	checkpointAfter = 250 * time.Millisecond
	// fullCheckpoint is how many results are enough for a checkpoint, and maxCheckpoint
	// how many one takes: where the store is slow, more come while it works.
	fullCheckpoint = 100
	maxCheckpoint  = 250
	// behindAfter is how soon it is stored that an endpoint has caught up, and
	// placeAfter that it has come on past events that it does not want: an old place
	// is one day behind what is kept.
	behindAfter = time.Second
	placeAfter  = 5 * time.Minute
)

// checkpointAt is when a checkpoint should be stored; zero: there is nothing to store.
func (q *queue) checkpointAt() (at time.Time) {
	switch {
	case len(q.results) >= fullCheckpoint:
		return q.dirty
	case !q.dirty.IsZero():
		return q.dirty.Add(checkpointAfter)
	case q.moved.IsZero():
		return time.Time{}
	case q.behind() != q.wasBehind:
		return q.moved.Add(behindAfter)
	}
	return q.moved.Add(placeAfter)
}

// take makes a checkpoint of what has ended first. It must be stored before the next
// one is.
func (q *queue) take(now time.Time) store.Checkpoint {
	var c store.Checkpoint
	in := make(map[string]bool)
	n := 0
	for ; n < min(len(q.results), maxCheckpoint); n++ {
		r := &q.results[n]
		if d := r.delivery; d != nil {
			if in[d.EventID] {
				break // each once, since in a checkpoint there is no order
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
			r.step.settled = true
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
		q.takeReplay(&c)
	}
	c.Progress = q.progress()
	q.wasBehind, q.dirty, q.moved = c.Progress.Behind, time.Time{}, time.Time{}
	if len(q.results) > 0 {
		q.dirty = now
	}
	return c
}

// takeReplay stores how far the replay of a span is.
func (q *queue) takeReplay(c *store.Checkpoint) {
	switch moved := q.replay.advance(); {
	case q.replay.done():
		c.EndJobs = append(c.EndJobs, q.replay.job.ID)
		q.replay = nil
	case moved || q.replay.job.Place != string(q.replay.place):
		q.replay.job.Place = string(q.replay.place)
		c.PutJobs = append(c.PutJobs, q.replay.job)
	}
}

func (q *queue) progress() store.DeliveryProgress {
	h := &q.health
	p := store.DeliveryProgress{
		Place: q.feed.place, Pending: len(q.waiting), Dead: q.dead,
		Failures: h.failures, FailingSince: h.since, NextProbe: h.probe, LastSuccess: h.success,
		SkippedAt: q.skipped, Behind: q.behind(),
	}
	if h.failing() {
		p.Failures = failingAfter + h.probes
	}
	// While messages are due that were not by their own time, whoever goes on after
	// a crash takes it that the endpoint was just mended, and has them due again.
	if q.hastened == 0 {
		p.SeenAt = q.endpoint.ResetAt
	}
	return p
}

// stored tells that a checkpoint is.
func (q *queue) stored(c *store.Checkpoint) {
	for i := range c.Pending {
		d := &c.Pending[i]
		if w := q.waiting[d.EventID]; w != nil && w.unstored != nil && len(w.unstored.Attempts) == len(d.Attempts) {
			w.unstored = nil
		}
	}
}

// idle tells whether all that has ended is in a checkpoint, and nothing is under way.
func (q *queue) idle() bool { return q.flying == 0 && len(q.results) == 0 && q.dirty.IsZero() }
