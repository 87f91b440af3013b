package delivery

import (
	"context"
	"errors"
	"time"

	"licet/node/store"
)

// checkpointResult is the result of storing a checkpoint.
type checkpointResult struct {
	checkpoint store.Checkpoint
	err        error
}

// checkpointAt returns when the next checkpoint is due; zero while one is being stored, or if none is due.
func (l *endpointLoop) checkpointAt() time.Time {
	if l.storing {
		return time.Time{}
	}
	return l.queue.checkpointAt()
}

// startCheckpoint starts to store a checkpoint if one is due.
func (l *endpointLoop) startCheckpoint(ctx context.Context, now time.Time, leaving bool) {
	at := l.queue.checkpointAt()
	if l.storing || at.IsZero() || now.Before(at) && (!leaving || l.queue.inFlight > 0) {
		return
	}
	l.storing = true
	c := l.queue.takeCheckpoint(now)
	l.start("checkpoint", func() { l.checkpointResults <- checkpointResult{c, l.lease.Checkpoint(ctx, c)} })
}

// checkpointDone takes the result of storing a checkpoint, and reports whether the loop may continue.
func (l *endpointLoop) checkpointDone(ctx context.Context, s checkpointResult) bool {
	l.storing = false
	outcome := "ok"
	switch {
	case errors.Is(s.err, store.ErrLeaseLost):
		outcome = "lost"
	case s.err != nil:
		outcome = "unknown"
	}
	l.engine.cfg.Metrics.WebhookCheckpoints.WithLabelValues(outcome).Inc()
	if s.err != nil {
		if ctx.Err() == nil {
			l.engine.cfg.Log.Info().Err(s.err).Str("endpoint_id", l.id).
				Msg("stopped delivering to an endpoint: its checkpoint failed")
		}
		l.failed = true
		return false
	}
	l.queue.checkpointStored(&s.checkpoint)
	if len(s.checkpoint.EndJobs) > 0 {
		l.recountDead(ctx)
	}
	return true
}
