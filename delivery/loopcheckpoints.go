package delivery

import (
	"context"
	"errors"
	"time"

	"licet/node/store"
)

// stored is what came of storing a checkpoint.
type stored struct {
	checkpoint store.Checkpoint
	err        error
}

func (r *route) storeAt() time.Time {
	if r.storing {
		return time.Time{}
	}
	return r.queue.checkpointAt()
}

// checkpoint has what has ended stored, where that is due.
func (r *route) checkpoint(ctx context.Context, now time.Time, leaving bool) {
	at := r.queue.checkpointAt()
	if r.storing || at.IsZero() || now.Before(at) && (!leaving || r.queue.flying > 0) {
		return
	}
	r.storing = true
	c := r.queue.take(now)
	r.start("checkpoint", func() { r.stores <- stored{c, r.hold.Checkpoint(ctx, c)} })
}

// wasStored tells whether to go on.
func (r *route) wasStored(ctx context.Context, s stored) bool {
	r.storing = false
	outcome := "ok"
	switch {
	case errors.Is(s.err, store.ErrClaimLost):
		outcome = "lost"
	case s.err != nil:
		outcome = "unknown"
	}
	r.engine.cfg.Metrics.WebhookCheckpoints.WithLabelValues(outcome).Inc()
	if s.err != nil {
		if ctx.Err() == nil {
			r.engine.cfg.Log.Info().Err(s.err).Str("endpoint_id", r.id).Msg("an endpoint is not this node's any more")
		}
		r.failed = true
		return false
	}
	r.queue.stored(&s.checkpoint)
	if len(s.checkpoint.EndJobs) > 0 {
		r.recount(ctx)
	}
	return true
}
