package delivery

import (
	"time"

	"licet/node/store"
)

// waiting is a message that is pending.
type waiting struct {
	id       string
	next     time.Time
	flying   bool
	hastened bool
	// unstored is what came of it until that is stored.
	unstored *store.Delivery
}

// isStoredPending tells whether an event is pending, and is so in the store.
func (q *queue) isStoredPending(event string) bool {
	w := q.waiting[event]
	return w != nil && w.unstored == nil
}

// soonest is the pending message that is tried next.
func (q *queue) soonest() *waiting {
	if q.first == nil {
		for _, w := range q.waiting {
			if !w.flying && (q.first == nil || w.next.Before(q.first.next)) {
				q.first = w
			}
		}
	}
	return q.first
}

// hasten makes all that is pending due, over some seconds.
func (q *queue) hasten(now time.Time) {
	q.first = nil
	for _, w := range q.waiting {
		soon := now.Add(time.Duration(q.random() * float64(spreadOver)))
		if w.flying || !w.next.After(soon) {
			continue
		}
		w.next = soon
		if !w.hastened {
			w.hastened = true
			q.hastened++
		}
	}
}

// calm takes it that a message is tried, or due by its own time.
func (q *queue) calm(w *waiting) {
	if w.hastened {
		w.hastened = false
		q.hastened--
	}
}

// wait takes a message among the pending, with what came of it.
func (q *queue) wait(d *store.Delivery) {
	q.waiting[d.EventID] = &waiting{id: d.EventID, next: d.Next, unstored: d}
	q.first = nil
}
