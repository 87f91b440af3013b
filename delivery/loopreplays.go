package delivery

import (
	"context"
	"time"

	"licet/node/store"
)

// deadPage is how many messages that were given up are made pending at a time.
const deadPage = 50

// replays are those of an endpoint that were asked for.
type replays struct {
	ask   bool           // there may be new ones, or the endpoint may have changed
	busy  bool           // one is being worked on, or they are being read
	retry time.Time      // not before
	todo  []store.Replay // the oldest first
	done  map[string]bool
}

func newReplays() replays { return replays{ask: true, done: make(map[string]bool)} }

// replayRead is what was read for replays: which there are, or what one is about.
type replayRead struct {
	list  bool
	jobs  []store.Replay
	at    store.EndpointAt // read with jobs
	job   store.Replay
	again []store.Delivery
	until int64 // the revision of the last event of a span
	err   error
}

// runReplays goes on with the oldest replay that is not done.
func (r *route) runReplays(ctx context.Context, now time.Time) {
	s := &r.replays
	if s.busy || now.Before(s.retry) {
		return
	}
	if s.ask {
		s.ask, s.busy = false, true
		r.start("list of replays", func() {
			jobs, at, err := r.hold.Jobs(ctx)
			r.jobs <- replayRead{list: true, jobs: jobs, at: at, err: err}
		})
		return
	}
	if len(s.todo) == 0 || r.queue.replay != nil || r.queue.room() <= 0 {
		return
	}
	job := s.todo[0]
	switch {
	case job.EventID != "":
		s.busy = true
		r.start("replay", func() { r.jobs <- r.readEvent(ctx, job) })
	case job.Dead:
		s.busy = true
		limit := min(deadPage, r.queue.room())
		r.start("replay", func() {
			again, err := r.hold.Dead(ctx, job.Place, limit)
			r.jobs <- replayRead{job: job, again: again, err: err}
		})
	case job.Until != "":
		s.busy = true
		r.start("replay", func() { r.jobs <- r.readUntil(ctx, job) })
	default:
		r.beginSpan(job, 0)
	}
}

func (r *route) beginSpan(job store.Replay, until int64) {
	r.replays.done[job.ID] = true
	r.replays.todo = r.replays.todo[1:]
	r.queue.beginSpan(job, until)
}

// readUntil reads where the replay of a part of the feed ends. Where that event is not
// kept any more, none before it is, and there is nothing to send.
func (r *route) readUntil(ctx context.Context, job store.Replay) replayRead {
	read := replayRead{job: job}
	if job.After == job.Until {
		return read
	}
	view, err := r.engine.cfg.Node.DeliveryEvent(ctx, r.owner, job.Until)
	read.err = err
	if view != nil {
		read.until = view.Revision
	}
	return read
}

// readEvent reads what a replay of one event is about: nothing, if it is not kept.
func (r *route) readEvent(ctx context.Context, job store.Replay) replayRead {
	read := replayRead{job: job}
	view, err := r.engine.cfg.Node.DeliveryEvent(ctx, r.owner, job.EventID)
	read.err = err
	if view != nil {
		read.again = []store.Delivery{{EventID: view.ID, Type: view.Type}}
	}
	return read
}

// tookReplay takes what was read.
func (r *route) tookReplay(read replayRead) {
	s := &r.replays
	s.busy = false
	now := r.now()
	switch {
	case read.err != nil:
		s.retry, s.ask = now.Add(retryPause), s.ask || read.list
	case read.list:
		r.queue.learn(read.at, now)
		s.todo = nil
		for _, job := range read.jobs {
			if !s.done[job.ID] {
				s.todo = append(s.todo, job)
			}
		}
	case read.until > 0:
		r.beginSpan(read.job, read.until)
	default:
		r.queue.redeliver(read.again, now)
		if read.job.Dead && len(read.again) > 0 {
			job := &s.todo[0]
			job.Place = read.again[len(read.again)-1].EventID
			r.queue.cameTo(*job, now)
			return
		}
		s.done[read.job.ID] = true
		s.todo = s.todo[1:]
		r.queue.endReplay(read.job.ID, now)
	}
}

// recount reads how many messages were given up: a replay may have been of one.
func (r *route) recount(ctx context.Context) {
	r.start("count of dead messages", func() {
		if read, err := r.engine.cfg.Store.Progresses(ctx, r.id); err == nil {
			r.counted.Store(int64(read[r.id].Dead) + 1)
		}
	})
}
