package delivery

import "time"

const (
	// putBackPause is how long what could not be sent waits, for a reason of our own.
	putBackPause = time.Second
	// longestRest is how long at most everything does. Until then it doubles.
	longestLocalPause = 15 * time.Second
)

// trouble has everything wait where a message could not be sent for a reason of our
// own: the next could not be either, and each would become pending. It answers for how
// long; 0: it waits already.
func (q *queue) localFailure(now time.Time) time.Duration {
	if now.Before(q.pausedUntil) {
		return 0
	}
	pause := min(putBackPause<<min(q.localFailures, 10), longestLocalPause)
	q.localFailures++
	q.pausedUntil = now.Add(pause)
	return pause
}

// mayBegin is when the next attempt may be, however many are under way.
func (q *queue) nextAttemptAt() time.Time { return later(q.health.nextAttemptAt(), q.pausedUntil) }
