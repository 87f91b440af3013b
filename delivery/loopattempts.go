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
type attemptResult struct {
	message   *message
	before    store.Delivery // as it was
	attempt   webhook.Attempt
	err       error // nothing is known, or it was not sent
	eventGone bool  // its event is not kept any more
}

// failureInternal is a failure of ours: the event could not be made a message.
const failureInternal webhook.Failure = "internal"

// send begins as many attempts as may be.
func (l *endpointLoop) startAttempts(ctx context.Context, now time.Time) {
	for {
		extra := l.queue.inFlight > 0
		if extra && !l.engine.takeExtraSlot(l.queue.health.slow) {
			return // until one of ours has ended
		}
		m := l.queue.next(now)
		if m == nil {
			if extra {
				<-l.engine.extraSlots
			}
			return
		}
		endpoint := l.queue.endpoint
		l.start("attempt", func() {
			l.attemptResults <- l.attemptInSlot(ctx, m, &endpoint, extra)
		})
	}
}

// takeExtra takes a place for one more attempt to an endpoint, if there is one. The
// last quarter is for those that give it back soon. A busy node gives few.
func (e *Engine) takeExtraSlot(slow bool) bool {
	if slow && len(e.extraSlots) >= cap(e.extraSlots)-cap(e.extraSlots)/4 || !e.busyLimit.mayAdd() {
		return false
	}
	select {
	case e.extraSlots <- struct{}{}:
		return true
	default:
		return false
	}
}

// attemptIn makes an attempt, and gives back its place afterward.
func (l *endpointLoop) attemptInSlot(ctx context.Context, m *message, to *licensing.Endpoint, extra bool) attemptResult {
	if extra {
		defer func() { <-l.engine.extraSlots }()
	}
	return l.attempt(ctx, m, to)
}

// attempt sends a message once.
func (l *endpointLoop) attempt(ctx context.Context, m *message, to *licensing.Endpoint) (done attemptResult) {
	done.message = m
	ctx, span := l.engine.cfg.Tracer.Root(ctx, tracing.Start{Name: "webhook delivery"})
	defer func() { endTrace(span, &done) }()
	if !l.guard.Do("attempt", func() { l.readAndPost(ctx, to, &done) }) {
		done.attempt, done.err = renderFailure(l.now()), nil
	}
	return done
}

func (l *endpointLoop) readAndPost(ctx context.Context, to *licensing.Endpoint, done *attemptResult) {
	view := done.message.view
	if view == nil {
		if view = l.readEventOf(ctx, done); view == nil {
			return
		}
	} else {
		done.before.Type = view.Type
	}
	done.attempt, done.err = l.post(ctx, view, to)
}

// find reads what is to be sent of a pending message; nil: it can't be.
func (l *endpointLoop) readEventOf(ctx context.Context, done *attemptResult) *service.EventView {
	id := done.message.id
	if known := done.message.unstored; known != nil {
		done.before = *known
	} else {
		pending, err := l.claim.Pending(ctx, id)
		if err != nil {
			done.err = err
			return nil
		}
		if len(pending) > 0 {
			done.before = pending[0]
		}
	}
	view, err := l.engine.cfg.Node.DeliveryEvent(ctx, l.owner, id)
	if err != nil {
		done.err = err
		return nil
	}
	if view == nil {
		done.before.EventID, done.eventGone = id, true
		return nil
	}
	done.before.Type = view.Type
	return view
}

// post makes the attempt.
func (l *endpointLoop) post(ctx context.Context, view *service.EventView, to *licensing.Endpoint) (webhook.Attempt, error) {
	texts, err := l.engine.cfg.Node.WebhookSecrets(to)
	if err != nil {
		return webhook.Attempt{}, fmt.Errorf("the endpoint's secret: %w", err)
	}
	secrets := make([]webhook.Secret, len(texts))
	for i, text := range texts {
		if secrets[i], err = webhook.ParseSecret(text); err != nil {
			return webhook.Attempt{}, err
		}
	}
	body, err := l.engine.cfg.Render(view)
	if err != nil {
		l.engine.cfg.Log.Error().Err(err).Str("event_id", view.ID).Msg("an event can't be told")
		return renderFailure(l.now()), nil
	}
	attempt, err := l.engine.cfg.Sender.Send(ctx, webhook.Message{ID: view.ID, URL: to.URL, Body: body, Secrets: secrets})
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
	l.engine.cfg.Metrics.WebhookAttempts.WithLabelValues(outcome).Inc()
	l.engine.cfg.Metrics.WebhookAttemptDuration.Observe(attempt.Duration.Seconds())
	if attempt.Err != nil {
		l.engine.cfg.Log.Debug().Err(attempt.Err).Str("endpoint_id", l.id).Str("event_id", view.ID).Msg("an event was not delivered")
	}
	return attempt, nil
}

func renderFailure(at time.Time) webhook.Attempt {
	return webhook.Attempt{Outcome: webhook.Retry, At: at, Failure: failureInternal}
}

// took takes what came of a message.
func (l *endpointLoop) attemptDone(done attemptResult) {
	now := l.now()
	switch {
	case done.eventGone:
		l.engine.cfg.Metrics.WebhookSkips.Inc()
		l.engine.cfg.Log.Warn().Str("endpoint_id", l.id).Str("event_id", done.message.id).Msg("an event is not kept any more that was to be tried again; it is given up")
		l.queue.eventGone(done.message, done.before, now)
	case done.err != nil:
		if !errors.Is(done.err, context.Canceled) {
			if pause := l.queue.localFailure(now); pause > 0 {
				l.engine.cfg.Log.Warn().Err(done.err).Str("endpoint_id", l.id).Str("event_id", done.message.id).Dur("pause", pause).Msg("nothing can be sent to an endpoint; it is tried again")
			}
		}
		l.queue.putBack(done.message, now)
	case done.attempt.Failure == failureInternal:
		l.queue.renderFailed(done.message, done.before, &done.attempt, now)
	default:
		l.queue.attemptEnded(done.message, done.before, &done.attempt, now)
	}
}
