package webhook

import "time"

const (
	// Attempts is the most attempts to send a message before it is given up.
	Attempts = 10
	// MaxRetryAfter is the longest pause that a receiver can demand.
	MaxRetryAfter = 24 * time.Hour
	// LongestDelay is the longest pause between two attempts of a message, see Delay.
	LongestDelay = MaxRetryAfter * 6 / 5
	// MaxFailing is how long an endpoint may fail, without one success, until it should be disabled. It is the
	// time from the first to the last attempt of a message.
	MaxFailing = 75*time.Hour + 35*time.Minute
	// jitter is the largest share by which a pause is longer or shorter.
	jitter = 0.2
)

// pauseAfter returns the pause after a number of failed attempts. This is the schedule that Standard Webhooks 1.0
// suggests: 75 hours and 35 minutes in total.
func pauseAfter(failed int) time.Duration {
	pauses := [Attempts - 1]time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
	return pauses[failed-1]
}

// Delay returns the pause before the next attempt after a number of failed attempts, at least 1. It reports false
// if there is no next attempt and the message is given up.
//
// retryAfter is the pause that the receiver demanded with its last response, or 0. The result is at least
// retryAfter, up to [MaxRetryAfter]. random is in [0, 1). It spreads messages that failed at the same time: by up
// to a fifth of the regular pause to both sides, or by up to a fifth of retryAfter behind retryAfter.
func Delay(failed int, retryAfter time.Duration, random float64) (time.Duration, bool) {
	if failed < 1 || failed >= Attempts {
		return 0, false
	}
	pause := spread(pauseAfter(failed), 1-jitter+2*jitter*random)
	asked := spread(min(max(retryAfter, 0), MaxRetryAfter), 1+jitter*random)
	return max(pause, asked), true
}

// spread returns d times factor.
func spread(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor)
}
