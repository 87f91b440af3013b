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

// attemptResult is the result of one attempt to send a message.
type attemptResult struct {
	message   *message
	before    store.Delivery // the message's state before the attempt
	attempt   webhook.Attempt
	err       error // the outcome is unknown, or the message was not sent
	eventGone bool  // the store no longer has the event
}

// failureInternal means that this node failed to render the event as a message.
const failureInternal webhook.Failure = "internal"

// startAttempts starts as many attempts as the queue and the node's limits allow.
func (l *endpointLoop) startAttempts(ctx context.Context, now time.Time) {
	for {
		extra := l.queue.inFlight > 0
		if extra && !l.engine.takeExtraSlot(l.queue.health.slow) {
			return // the end of an attempt of this loop tries again
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

// takeExtraSlot takes a slot for an extra attempt, and reports whether there was one. Slow endpoints don't get
// the last quarter of the slots, since they hold a slot long. A busy node hands out few slots.
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

// attemptInSlot makes an attempt, and frees its slot afterward if the attempt is an extra one.
func (l *endpointLoop) attemptInSlot(
	ctx context.Context, m *message, to *licensing.Endpoint, extra bool,
) attemptResult {
	if extra {
		defer func() { <-l.engine.extraSlots }()
	}
	return l.attempt(ctx, m, to)
}

// attempt makes one attempt to send a message.
func (l *endpointLoop) attempt(ctx context.Context, m *message, to *licensing.Endpoint) (done attemptResult) {
	done.message = m
	ctx, span := l.engine.cfg.Tracer.Root(ctx, tracing.Start{Name: "webhook delivery"})
	defer func() { endTrace(span, &done) }()
	if !l.guard.Do("attempt", func() { l.readAndPost(ctx, to, &done) }) {
		done.attempt, done.err = renderFailure(l.now()), nil
	}
	return done
}

// readAndPost reads the event if necessary, and sends it.
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

// readEventOf reads the event and the earlier attempts of a pending message. It returns nil if it can't, with
// the reason in done.
func (l *endpointLoop) readEventOf(ctx context.Context, done *attemptResult) *service.EventView {
	id := done.message.id
	if known := done.message.unstored; known != nil {
		done.before = *known
	} else {
		pending, err := l.lease.Pending(ctx, id)
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

// post renders, signs and sends an event. A failure to render is an attempt with failureInternal.
func (l *endpointLoop) post(
	ctx context.Context, view *service.EventView, to *licensing.Endpoint,
) (webhook.Attempt, error) {
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
		l.engine.cfg.Log.Error().Err(err).Str("event_id", view.ID).Msg("can't render an event")
		return renderFailure(l.now()), nil
	}
	attempt, err := l.engine.cfg.Sender.Send(ctx, webhook.Message{
		ID: view.ID, URL: to.URL, Body: body, Secrets: secrets,
	})
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
		l.engine.cfg.Log.Debug().Err(attempt.Err).Str("endpoint_id", l.id).Str("event_id", view.ID).
			Msg("an attempt to deliver an event failed")
	}
	return attempt, nil
}

// renderFailure returns the attempt that stands for a message that can't be rendered.
func renderFailure(at time.Time) webhook.Attempt {
	return webhook.Attempt{Outcome: webhook.Retry, At: at, Failure: failureInternal}
}

// attemptDone takes the result of an attempt.
func (l *endpointLoop) attemptDone(done attemptResult) {
	now := l.now() // before the check, which notices a step since the last comparison
	l.queue.clockInDoubt = l.engine.cfg.Node.ActsByTime() != nil
	switch {
	case done.eventGone:
		l.engine.cfg.Metrics.WebhookSkips.Inc()
		l.engine.cfg.Log.Warn().Str("endpoint_id", l.id).Str("event_id", done.message.id).
			Msg("giving up a pending event: the store no longer has it")
		l.queue.eventGone(done.message, done.before, now)
	case done.err != nil:
		if !errors.Is(done.err, context.Canceled) {
			if pause := l.queue.localFailure(now); pause > 0 {
				l.engine.cfg.Log.Warn().Err(done.err).Str("endpoint_id", l.id).Str("event_id", done.message.id).
					Dur("pause", pause).Msg("this node can't send to an endpoint: pausing")
			}
		}
		l.queue.putBack(done.message, now)
	case done.attempt.Failure == failureInternal:
		l.queue.renderFailed(done.message, done.before, &done.attempt, now)
	default:
		l.queue.attemptEnded(done.message, done.before, &done.attempt, now)
	}
}
