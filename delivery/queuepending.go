package delivery

import (
	"time"

	"licet/node/store"
)

// pendingMessage is a message whose attempt failed, and which has a time for the next attempt.
type pendingMessage struct {
	id        string
	due       time.Time
	inFlight  bool
	expedited bool
	// unstored is the message's state until it is in a checkpoint; nil afterward.
	unstored *store.Delivery
}

// isStoredPending reports whether the store has an event's message as pending.
func (q *queue) isStoredPending(event string) bool {
	w := q.pending[event]
	return w != nil && w.unstored == nil
}

// soonestPending returns the pending message that is due first, of those not in flight; nil: there is none.
func (q *queue) soonestPending() *pendingMessage {
	if q.firstDue == nil {
		for _, w := range q.pending {
			if !w.inFlight && (q.firstDue == nil || w.due.Before(q.firstDue.due)) {
				q.firstDue = w
			}
		}
	}
	return q.firstDue
}

// expedite makes all pending messages due within spreadOver.
func (q *queue) expedite(now time.Time) {
	q.firstDue = nil
	for _, w := range q.pending {
		soon := now.Add(time.Duration(q.random() * float64(spreadOver)))
		if w.inFlight || !w.due.After(soon) {
			continue
		}
		w.due = soon
		if !w.expedited {
			w.expedited = true
			q.expedited++
		}
	}
}

// clearExpedited clears the expedited mark: the message was attempted, or its regular time applies.
func (q *queue) clearExpedited(w *pendingMessage) {
	if w.expedited {
		w.expedited = false
		q.expedited--
	}
}

// addPending adds a pending message whose state is in no checkpoint yet.
func (q *queue) addPending(d *store.Delivery) {
	q.pending[d.EventID] = &pendingMessage{id: d.EventID, due: d.Next, unstored: d}
	q.firstDue = nil
}
