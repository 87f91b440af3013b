package delivery

import (
	"context"
	"time"

	"licet/node/store"
)

// deadPage is how many messages that were given up are made pending at a time.
const deadPage = 50

// replays are those of an endpoint that were asked for.
type replayWork struct {
	reload  bool           // there may be new ones, or the endpoint may have changed
	busy    bool           // one is being worked on, or they are being read
	retryAt time.Time      // not before
	todo    []store.Replay // the oldest first
	done    map[string]bool
}

func newReplayWork() replayWork { return replayWork{reload: true, done: make(map[string]bool)} }

// replayRead is what was read for replays: which there are, or what one is about.
type replayResult struct {
	isList        bool
	jobs          []store.Replay
	at            store.EndpointAt // read with jobs
	job           store.Replay
	messages      []store.Delivery
	untilRevision int64 // the revision of the last event of a span
	err           error
}

// runReplays goes on with the oldest replay that is not done.
func (l *endpointLoop) startReplays(ctx context.Context, now time.Time) {
	s := &l.replays
	if s.busy || now.Before(s.retryAt) {
		return
	}
	if s.reload {
		s.reload, s.busy = false, true
		l.start("list of replays", func() {
			jobs, at, err := l.claim.Jobs(ctx)
			l.replayResults <- replayResult{isList: true, jobs: jobs, at: at, err: err}
		})
		return
	}
	if len(s.todo) == 0 || l.queue.replay != nil || l.queue.pendingRoom() <= 0 {
		return
	}
	job := s.todo[0]
	switch {
	case job.EventID != "":
		s.busy = true
		l.start("replay", func() { l.replayResults <- l.readEvent(ctx, job) })
	case job.Dead:
		s.busy = true
		limit := min(deadPage, l.queue.pendingRoom())
		l.start("replay", func() {
			again, err := l.claim.Dead(ctx, job.Place, limit)
			l.replayResults <- replayResult{job: job, messages: again, err: err}
		})
	case job.Until != "":
		s.busy = true
		l.start("replay", func() { l.replayResults <- l.readSpanEnd(ctx, job) })
	default:
		l.startSpan(job, 0)
	}
}

func (l *endpointLoop) startSpan(job store.Replay, until int64) {
	l.replays.done[job.ID] = true
	l.replays.todo = l.replays.todo[1:]
	l.queue.startSpan(job, until)
}

// readUntil reads where the replay of a part of the feed ends. Where that event is not
// kept any more, none before it is, and there is nothing to send.
func (l *endpointLoop) readSpanEnd(ctx context.Context, job store.Replay) replayResult {
	read := replayResult{job: job}
	if job.After == job.Until {
		return read
	}
	view, err := l.engine.cfg.Node.DeliveryEvent(ctx, l.owner, job.Until)
	read.err = err
	if view != nil {
		read.untilRevision = view.Revision
	}
	return read
}

// readEvent reads what a replay of one event is about: nothing, if it is not kept.
func (l *endpointLoop) readEvent(ctx context.Context, job store.Replay) replayResult {
	read := replayResult{job: job}
	view, err := l.engine.cfg.Node.DeliveryEvent(ctx, l.owner, job.EventID)
	read.err = err
	if view != nil {
		read.messages = []store.Delivery{{EventID: view.ID, Type: view.Type}}
	}
	return read
}

// tookReplay takes what was read.
func (l *endpointLoop) replayDone(read replayResult) {
	s := &l.replays
	s.busy = false
	now := l.now()
	switch {
	case read.err != nil:
		s.retryAt, s.reload = now.Add(retryPause), s.reload || read.isList
	case read.isList:
		l.queue.updateEndpoint(read.at, now)
		s.todo = nil
		for _, job := range read.jobs {
			if !s.done[job.ID] {
				s.todo = append(s.todo, job)
			}
		}
	case read.untilRevision > 0:
		l.startSpan(read.job, read.untilRevision)
	default:
		l.queue.redeliver(read.messages, now)
		if read.job.Dead && len(read.messages) > 0 {
			job := &s.todo[0]
			job.Place = read.messages[len(read.messages)-1].EventID
			l.queue.replayAdvanced(*job, now)
			return
		}
		s.done[read.job.ID] = true
		s.todo = s.todo[1:]
		l.queue.endReplay(read.job.ID, now)
	}
}

// recount reads how many messages were given up: a replay may have been of one.
func (l *endpointLoop) recountDead(ctx context.Context) {
	l.start("count of dead messages", func() {
		if read, err := l.engine.cfg.Store.Progresses(ctx, l.id); err == nil {
			l.deadCount.Store(int64(read[l.id].Dead) + 1)
		}
	})
}
