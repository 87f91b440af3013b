package webhook

import "time"

const (
	// Attempts is how often a message is sent at most before it is given up.
	Attempts = 10
	// MaxRetryAfter is the longest that a receiver can have itself waited for.
	MaxRetryAfter = 24 * time.Hour
	// MaxFailing is how long an endpoint may fail, with nothing that comes through, until
	// it should be disabled: as long as its first message is tried.
	MaxFailing = 75*time.Hour + 35*time.Minute
	// jitter is by how much of itself a pause is longer or shorter.
	jitter = 0.2
)

// pauseAfter gives the pause after so many failed attempts. It is the schedule
// that Standard Webhooks 1.0 suggests: 75 hours and 35 minutes in all.
func pauseAfter(failed int) time.Duration {
	pauses := [Attempts - 1]time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
	return pauses[failed-1]
}

// Delay says how long to wait after so many failed attempts, the first being 1,
// until the next one; false says that there is none, and the message is given up.
//
// retryAfter is what the receiver has asked for with its last answer, or 0. It is
// waited for, up to [MaxRetryAfter]. random is from [0, 1): it spreads what has
// failed at the same time by a fifth of the pause to both sides, or after what
// the receiver asked for by a fifth of that, behind it.
func Delay(failed int, retryAfter time.Duration, random float64) (time.Duration, bool) {
	if failed < 1 || failed >= Attempts {
		return 0, false
	}
	pause := spread(pauseAfter(failed), 1-jitter+2*jitter*random)
	asked := spread(min(max(retryAfter, 0), MaxRetryAfter), 1+jitter*random)
	return max(pause, asked), true
}

func spread(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor)
}
