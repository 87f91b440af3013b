package delivery

import (
	"time"

	"licet/node/store"
)

const (
	// checkpointAfter is how long at most what has ended is in no checkpoint.
	checkpointDelay = 250 * time.Millisecond
	// fullCheckpoint is how many results are enough for a checkpoint, and maxCheckpoint
	// how many one takes: where the store is slow, more come while it works.
	fullCheckpoint = 100
	maxCheckpoint  = 250
	// behindAfter is how soon it is stored that an endpoint has caught up, and
	// placeAfter that it has come on past events that it does not want: an old place
	// is one day behind what is kept.
	behindDelay = time.Second
	placeDelay  = 5 * time.Minute
)

// checkpointAt is when a checkpoint should be stored; zero: there is nothing to store.
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

// take makes a checkpoint of what has ended first. It must be stored before the next
// one is.
func (q *queue) takeCheckpoint(now time.Time) store.Checkpoint {
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

// takeReplay stores how far the replay of a span is.
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

func (q *queue) progress() store.DeliveryProgress {
	h := &q.health
	p := store.DeliveryProgress{
		Place: q.feed.place, Pending: len(q.pending), Dead: q.dead,
		Failures: h.failures, FailingSince: h.failingSince, NextProbe: h.nextProbe, LastSuccess: h.lastSuccess,
		SkippedAt: q.skippedAt, Behind: q.behind(),
	}
	if h.isFailing() {
		p.Failures = failingAfter + h.failedProbes
	}
	// While messages are due that were not by their own time, whoever goes on after
	// a crash takes it that the endpoint was just mended, and has them due again.
	if q.expedited == 0 {
		p.SeenAt = q.endpoint.ResetAt
	}
	return p
}

// stored tells that a checkpoint is.
func (q *queue) checkpointStored(c *store.Checkpoint) {
	for i := range c.Pending {
		d := &c.Pending[i]
		if w := q.pending[d.EventID]; w != nil && w.unstored != nil && len(w.unstored.Attempts) == len(d.Attempts) {
			w.unstored = nil
		}
	}
}

// idle tells whether all that has ended is in a checkpoint, and nothing is under way.
func (q *queue) idle() bool { return q.inFlight == 0 && len(q.results) == 0 && q.dirtySince.IsZero() }
