package delivery

import (
	"context"
	"time"

	"licet/node/store"
)

// deadPage is how many dead messages a replay makes pending at a time.
const deadPage = 50

// replayWork is a loop's work on the replays that were requested for its endpoint.
type replayWork struct {
	reload  bool            // there may be new replays, or the endpoint may have changed
	busy    bool            // the loop is reading the list of replays, or the messages of one
	retryAt time.Time       // when the next read may start, after an error
	todo    []store.Replay  // oldest first
	done    map[string]bool // by replay id
}

func newReplayWork() replayWork { return replayWork{reload: true, done: make(map[string]bool)} }

// replayResult is the result of a read for replays: the list of replays, or the messages of one replay.
type replayResult struct {
	isList        bool
	jobs          []store.Replay
	at            store.EndpointAt // the endpoint as of the read of jobs
	job           store.Replay
	messages      []store.Delivery
	untilRevision int64 // the revision of the last event of a span
	err           error
}

// startReplays continues the oldest replay that is not done.
func (l *endpointLoop) startReplays(ctx context.Context, now time.Time) {
	s := &l.replays
	if s.busy || now.Before(s.retryAt) {
		return
	}
	if s.reload {
		s.reload, s.busy = false, true
		l.start("list of replays", func() {
			jobs, at, err := l.lease.Jobs(ctx)
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
			dead, err := l.lease.Dead(ctx, job.Place, limit)
			l.replayResults <- replayResult{job: job, messages: dead, err: err}
		})
	case job.Until != "":
		s.busy = true
		l.start("replay", func() { l.replayResults <- l.readSpanEnd(ctx, job) })
	default:
		l.startSpan(job, 0)
	}
}

// startSpan starts the replay of a span.
func (l *endpointLoop) startSpan(job store.Replay, until int64) {
	l.replays.done[job.ID] = true
	l.replays.todo = l.replays.todo[1:]
	l.queue.startSpan(job, until)
}

// readSpanEnd reads the revision of the last event of a span. If the store no longer has that event, it has no
// event of the span, and there is nothing to send.
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

// readEvent reads the event of a replay of one event. The result has no message if the store no longer has the
// event.
func (l *endpointLoop) readEvent(ctx context.Context, job store.Replay) replayResult {
	read := replayResult{job: job}
	view, err := l.engine.cfg.Node.DeliveryEvent(ctx, l.owner, job.EventID)
	read.err = err
	if view != nil {
		read.messages = []store.Delivery{{EventID: view.ID, Type: view.Type}}
	}
	return read
}

// replayDone takes the result of a read for replays.
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

// recountDead reads how many messages are dead, since a replay may have delivered dead messages.
func (l *endpointLoop) recountDead(ctx context.Context) {
	l.start("count of dead messages", func() {
		if read, err := l.engine.cfg.Store.Progresses(ctx, l.id); err == nil {
			l.deadCount.Store(int64(read[l.id].Dead) + 1)
		}
	})
}
