package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"licet/delivery/webhook"
	"licet/licensing"
	"licet/metrics/tracing"
	"licet/node/service"
	"licet/node/store"
)

// attempted is what came of a message.
type attempted struct {
	message *message
	before  store.Delivery // as it was
	attempt webhook.Attempt
	err     error // nothing is known, or it was not sent
	lost    bool  // its event is not kept any more
}

// failureInternal is a failure of ours: the event could not be made a message.
const failureInternal webhook.Failure = "internal"

// send begins as many attempts as may be.
func (r *route) send(ctx context.Context, now time.Time) {
	for {
		extra := r.queue.flying > 0
		if extra && !r.engine.takeExtra(r.queue.health.slow) {
			return // until one of ours has ended
		}
		m := r.queue.next(now)
		if m == nil {
			if extra {
				<-r.engine.extra
			}
			return
		}
		endpoint := r.queue.endpoint
		r.start("attempt", func() {
			r.sent <- r.attemptIn(ctx, m, &endpoint, extra)
		})
	}
}

// takeExtra takes a place for one more attempt to an endpoint, if there is one. The
// last quarter is for those that give it back soon. A busy node gives few.
func (e *Engine) takeExtra(slow bool) bool {
	if slow && len(e.extra) >= cap(e.extra)-cap(e.extra)/4 || !e.yield.mayAdd() {
		return false
	}
	select {
	case e.extra <- struct{}{}:
		return true
	default:
		return false
	}
}

// attemptIn makes an attempt, and gives back its place afterward.
func (r *route) attemptIn(ctx context.Context, m *message, to *licensing.Endpoint, extra bool) attempted {
	if extra {
		defer func() { <-r.engine.extra }()
	}
	return r.attempt(ctx, m, to)
}

// attempt sends a message once.
func (r *route) attempt(ctx context.Context, m *message, to *licensing.Endpoint) (done attempted) {
	done.message = m
	ctx, span := r.engine.cfg.Tracer.Root(ctx, tracing.Start{Name: "webhook delivery"})
	defer func() { endTrace(span, &done) }()
	if !r.guard.Do("attempt", func() { r.findAndPost(ctx, to, &done) }) {
		done.attempt, done.err = spoilt(r.now()), nil
	}
	return done
}

func (r *route) findAndPost(ctx context.Context, to *licensing.Endpoint, done *attempted) {
	view := done.message.view
	if view == nil {
		if view = r.find(ctx, done); view == nil {
			return
		}
	} else {
		done.before.Type = view.Type
	}
	done.attempt, done.err = r.post(ctx, view, to)
}

// find reads what is to be sent of a pending message; nil: it can't be.
func (r *route) find(ctx context.Context, done *attempted) *service.EventView {
	id := done.message.id
	if known := done.message.known; known != nil {
		done.before = *known
	} else {
		pending, err := r.hold.Pending(ctx, id)
		if err != nil {
			done.err = err
			return nil
		}
		if len(pending) > 0 {
			done.before = pending[0]
		}
	}
	view, err := r.engine.cfg.Node.DeliveryEvent(ctx, r.owner, id)
	if err != nil {
		done.err = err
		return nil
	}
	if view == nil {
		done.before.EventID, done.lost = id, true
		return nil
	}
	done.before.Type = view.Type
	return view
}

// post makes the attempt.
func (r *route) post(ctx context.Context, view *service.EventView, to *licensing.Endpoint) (webhook.Attempt, error) {
	texts, err := r.engine.cfg.Node.WebhookSecrets(to)
	if err != nil {
		return webhook.Attempt{}, fmt.Errorf("the endpoint's secret: %w", err)
	}
	secrets := make([]webhook.Secret, len(texts))
	for i, text := range texts {
		if secrets[i], err = webhook.ParseSecret(text); err != nil {
			return webhook.Attempt{}, err
		}
	}
	body, err := r.engine.cfg.Render(view)
	if err != nil {
		r.engine.cfg.Log.Error().Err(err).Str("event_id", view.ID).Msg("an event can't be told")
		return spoilt(r.now()), nil
	}
	attempt, err := r.engine.cfg.Sender.Send(ctx, webhook.Message{ID: view.ID, URL: to.URL, Body: body, Secrets: secrets})
	if err != nil {
		return attempt, err
	}
	outcome := "delivered"
	switch attempt.Outcome {
	case webhook.Retry:
		outcome = "failed"
	case webhook.Gone:
		outcome = "gone"
	}
	r.engine.cfg.Metrics.WebhookAttempts.WithLabelValues(outcome).Inc()
	r.engine.cfg.Metrics.WebhookAttemptDuration.Observe(attempt.Duration.Seconds())
	if attempt.Err != nil {
		r.engine.cfg.Log.Debug().Err(attempt.Err).Str("endpoint_id", r.id).Str("event_id", view.ID).Msg("an event was not delivered")
	}
	return attempt, nil
}

func spoilt(at time.Time) webhook.Attempt {
	return webhook.Attempt{Outcome: webhook.Retry, At: at, Failure: failureInternal}
}

// took takes what came of a message.
func (r *route) took(done attempted) {
	now := r.now()
	switch {
	case done.lost:
		r.engine.cfg.Metrics.WebhookSkips.Inc()
		r.engine.cfg.Log.Warn().Str("endpoint_id", r.id).Str("event_id", done.message.id).Msg("an event is not kept any more that was to be tried again; it is given up")
		r.queue.lost(done.message, done.before, now)
	case done.err != nil:
		if !errors.Is(done.err, context.Canceled) {
			if pause := r.queue.trouble(now); pause > 0 {
				r.engine.cfg.Log.Warn().Err(done.err).Str("endpoint_id", r.id).Str("event_id", done.message.id).Dur("pause", pause).Msg("nothing can be sent to an endpoint; it is tried again")
			}
		}
		r.queue.putBack(done.message, now)
	case done.attempt.Failure == failureInternal:
		r.queue.spoilt(done.message, done.before, &done.attempt, now)
	default:
		r.queue.ended(done.message, done.before, &done.attempt, now)
	}
}
