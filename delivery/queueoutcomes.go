package delivery

import (
	"slices"
	"time"

	"licet/delivery/webhook"
	"licet/licensing"
	"licet/node/store"
)

// result is a change for a checkpoint: of a message, or of a replay.
type result struct {
	delivery *store.Delivery
	step     *step // the step of the message; nil: the message was pending

	putReplay *store.Replay
	endReplay string
}

// putBack takes back a message that was not sent, or whose outcome is unknown. If the endpoint is paused, all messages
// that were put back become due when the pause ends: until then no new message takes their place.
func (q *queue) putBack(m *message, now time.Time) {
	q.inFlight--
	next := now.Add(putBackPause)
	if now.Before(q.pausedUntil) {
		next = q.pausedUntil
	}
	if m.step != nil {
		// The message becomes pending, since attempts of later events may have started.
		q.newInFlight--
		q.record(m, store.Delivery{EventID: m.id, Type: m.view.Type, Status: store.DeliveryPending, Next: next}, now)
		return
	}
	if w := q.pending[m.id]; w != nil {
		w.inFlight, w.due, q.firstDue = false, next, nil
	}
}

// eventGone gives up a pending message, since the store no longer has its event.
func (q *queue) eventGone(m *message, before store.Delivery, now time.Time) {
	q.inFlight--
	before.Status, before.Next = store.DeliveryDead, time.Time{}
	q.skippedAt = now
	q.record(m, before, now)
}

// attemptEnded takes the outcome of an attempt. before is the message's state before the attempt.
func (q *queue) attemptEnded(m *message, before store.Delivery, attempt *webhook.Attempt, now time.Time) {
	q.inFlight--
	q.localFailures = 0
	if m.step != nil {
		q.newInFlight--
	}
	if attempt.Outcome == webhook.Delivered {
		after := withAttempt(m, before, attempt)
		after.Status = store.DeliveryDelivered
		q.record(m, after, now)
		if q.isCurrent(m) && q.health.succeeded(now, attempt.Duration) {
			q.expedite(now)
		}
		return
	}
	if q.isCurrent(m) {
		if why := q.health.failed(m.id, attempt, m.probe, q.clockInDoubt, now, q.random()); why != "" {
			q.disableReason = why
		}
	}
	q.record(m, q.afterFailure(m, before, attempt, now), now)
	if q.health.isFailing() {
		for _, w := range q.pending {
			q.clearExpedited(w)
		}
		// An endpoint that fails for days needs no events in memory meanwhile.
		q.feed.rewind()
		if q.replay != nil {
			q.replay.rewind()
		}
	}
}

// isCurrent reports whether the endpoint was not reset since the attempt started, so that the outcome counts
// for the endpoint's health.
func (q *queue) isCurrent(m *message) bool { return m.resetAt.Equal(q.endpoint.ResetAt) }

// renderFailed takes the failure of this node to render a message. It does not count against the endpoint.
func (q *queue) renderFailed(m *message, before store.Delivery, attempt *webhook.Attempt, now time.Time) {
	q.inFlight--
	if m.step != nil {
		q.newInFlight--
	}
	q.record(m, q.afterFailure(m, before, attempt, now), now)
}

// afterFailure returns a message's state after a failed attempt: pending, or dead after the last attempt. While the
// clock is in doubt, no attempt is the last one: a wrong clock may have made the attempts in a moment.
func (q *queue) afterFailure(
	m *message, before store.Delivery, attempt *webhook.Attempt, now time.Time,
) store.Delivery {
	after := withAttempt(m, before, attempt)
	failed := len(after.Attempts)
	if q.clockInDoubt {
		failed = min(failed, webhook.Attempts-1)
	}
	pause, again := webhook.Delay(failed, attempt.RetryAfter, q.random())
	if !again && attempt.Outcome != webhook.Gone {
		after.Status = store.DeliveryDead
		return after
	}
	after.Status, after.Next = store.DeliveryPending, now.Add(max(pause, retryPause))
	return after
}

// withAttempt returns a message's state with one more attempt.
func withAttempt(m *message, before store.Delivery, attempt *webhook.Attempt) store.Delivery {
	after := before
	after.EventID, after.Answer, after.Next = m.id, attempt.Answer, time.Time{}
	after.Attempts = append(slices.Clone(before.Attempts), store.DeliveryAttempt{
		At: attempt.At, Duration: attempt.Duration, Status: attempt.Status, Failure: string(attempt.Failure),
	})
	return after
}

// record keeps a message's new state for a checkpoint.
func (q *queue) record(m *message, d store.Delivery, now time.Time) {
	if m.step != nil {
		m.step.view = nil
	}
	w := q.pending[d.EventID]
	if w != nil {
		q.clearExpedited(w)
		delete(q.pending, d.EventID)
		q.firstDue = nil
	}
	switch d.Status {
	case store.DeliveryPending:
		q.addPending(&d)
	case store.DeliveryDead:
		if q.dead++; q.dead >= maxDead && q.disableReason == "" {
			q.disableReason = licensing.DisabledDeadLetters
		}
	}
	q.results = append(q.results, result{delivery: &d, step: m.step})
	q.markDirty(now)
}
