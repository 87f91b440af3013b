package delivery

import (
	"time"

	"licet/metrics"
)

// loopStatus is a loop's part in the metrics.
type loopStatus struct {
	failing       bool
	busy          bool // delivering
	pending, dead int
	oldest        time.Time // time of the oldest unsent event; zero: none
}

// setMetrics sets the metrics of the loops of a node.
func setMetrics(m *metrics.Metrics, loops map[string]*endpointLoop, now time.Time) {
	states := map[string]int{"delivering": 0, "failing": 0, "idle": 0}
	var pending, dead int
	var lag time.Duration
	for _, l := range loops {
		l.mu.Lock()
		status := l.status
		l.mu.Unlock()
		pending, dead = pending+status.pending, dead+status.dead
		switch {
		case status.failing:
			states["failing"]++
		case status.busy:
			states["delivering"]++
		default:
			states["idle"]++
		}
		if !status.failing && !status.oldest.IsZero() {
			lag = max(lag, now.Sub(status.oldest))
		}
	}
	for state, n := range states {
		m.WebhookEndpoints.WithLabelValues(state).Set(float64(n))
	}
	m.WebhookPending.Set(float64(pending))
	m.WebhookDeadLetters.Set(float64(dead))
	m.WebhookLag.Set(lag.Seconds())
}

// publishStatus updates the loop's part in the metrics, and the node's count of events in memory.
func (l *endpointLoop) publishStatus() {
	buffered := l.queue.feed.unsent() + l.queue.inFlight
	if l.queue.replay != nil {
		buffered += l.queue.replay.unsent()
	}
	l.engine.bufferedEvents.Add(int64(buffered - l.buffered))
	l.buffered = buffered
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status = loopStatus{
		failing: l.queue.health.isFailing(), busy: l.queue.inFlight > 0 || l.queue.behind(),
		pending: len(l.queue.pending), dead: l.queue.dead, oldest: l.queue.oldestUnsent(),
	}
}
