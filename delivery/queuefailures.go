package delivery

import "time"

const (
	// putBackPause is the pause of a message that this node failed to send.
	putBackPause = time.Second
	// longestLocalPause bounds the pause of the whole endpoint, which starts at putBackPause and doubles.
	longestLocalPause = 15 * time.Second
)

// localFailure pauses the endpoint after this node failed to send a message: the next message would fail too,
// and each would become pending. It returns the pause; 0: the endpoint is paused already.
func (q *queue) localFailure(now time.Time) time.Duration {
	if now.Before(q.pausedUntil) {
		return 0
	}
	pause := min(putBackPause<<min(q.localFailures, 10), longestLocalPause)
	q.localFailures++
	q.pausedUntil = now.Add(pause)
	return pause
}

// nextAttemptAt returns the earliest time of the next attempt, whatever the window allows.
func (q *queue) nextAttemptAt() time.Time { return later(q.health.nextAttemptAt(), q.pausedUntil) }
