package delivery

import (
	"time"

	"licet/node/store"
)

// waiting is a message that is pending.
type pendingMessage struct {
	id        string
	due       time.Time
	inFlight  bool
	expedited bool
	// unstored is what came of it until that is stored.
	unstored *store.Delivery
}

// isStoredPending tells whether an event is pending, and is so in the store.
func (q *queue) isStoredPending(event string) bool {
	w := q.pending[event]
	return w != nil && w.unstored == nil
}

// soonest is the pending message that is tried next.
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

// hasten makes all that is pending due, over some seconds.
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

// calm takes it that a message is tried, or due by its own time.
func (q *queue) clearExpedited(w *pendingMessage) {
	if w.expedited {
		w.expedited = false
		q.expedited--
	}
}

// wait takes a message among the pending, with what came of it.
func (q *queue) addPending(d *store.Delivery) {
	q.pending[d.EventID] = &pendingMessage{id: d.EventID, due: d.Next, unstored: d}
	q.firstDue = nil
}
