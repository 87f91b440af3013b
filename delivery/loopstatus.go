package delivery

import (
	"sync/atomic"
	"time"

	"licet/metrics"
)

// load is how much there is on a node.
type load struct {
	events atomic.Int64 // that lie here
}

// standing is what is told of a route.
type loopStatus struct {
	failing       bool
	busy          bool
	pending, dead int
	oldest        time.Time
}

// report sets the metrics of the endpoints that are held here.
func (l *load) report(m *metrics.Metrics, routes map[string]*endpointLoop, now time.Time) {
	states := map[string]int{"delivering": 0, "failing": 0, "idle": 0}
	var pending, dead int
	var lag time.Duration
	for _, r := range routes {
		r.mu.Lock()
		seen := r.status
		r.mu.Unlock()
		pending, dead = pending+seen.pending, dead+seen.dead
		switch {
		case seen.failing:
			states["failing"]++
		case seen.busy:
			states["delivering"]++
		default:
			states["idle"]++
		}
		if !seen.failing && !seen.oldest.IsZero() {
			lag = max(lag, now.Sub(seen.oldest))
		}
	}
	for state, n := range states {
		m.WebhookEndpoints.WithLabelValues(state).Set(float64(n))
	}
	m.WebhookPending.Set(float64(pending))
	m.WebhookDeadLetters.Set(float64(dead))
	m.WebhookLag.Set(lag.Seconds())
}

// none sets them when there is none.
func (l *load) none(m *metrics.Metrics) { l.report(m, nil, time.Time{}) }

// tell notes how it stands.
func (l *endpointLoop) publishStatus() {
	held := l.queue.feed.unsent() + l.queue.inFlight
	if l.queue.replay != nil {
		held += l.queue.replay.unsent()
	}
	l.engine.load.events.Add(int64(held - l.buffered))
	l.buffered = held
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status = loopStatus{
		failing: l.queue.health.isFailing(), busy: l.queue.inFlight > 0 || l.queue.behind(),
		pending: len(l.queue.pending), dead: l.queue.dead, oldest: l.queue.oldestUnsent(),
	}
}
