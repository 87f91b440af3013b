package delivery

import (
	"slices"
	"time"

	"licet/delivery/webhook"
	"licet/licensing"
)

const (
	// How many attempts to an endpoint are under way at once: begins with few, and
	// doubles with each success.
	firstWindow = 4
	maxWindow   = 32

	// slowAfter is from when on an attempt has taken long. Whoever takes long gets few
	// at once, and the places of the node only while there are many: what is quick
	// gives them back soon, and may have any.
	slowAfter = time.Second

	// failingAfter is after how many failures in a row, of different events, an
	// endpoint is failing: then one attempt at a time finds out whether it still is.
	failingAfter      = 5
	firstProbePause   = 5 * time.Second // between two of them; it doubles
	longestProbePause = 5 * time.Minute
	probeJitter       = 0.2

	// longestHold is how long at most an endpoint that asks to be left alone is: what
	// it has answered that to waits for as long as it says.
	maxEndpointPause = 5 * time.Minute

	// maxDead is how many messages are given up until the endpoint is.
	maxDead = 10_000

	// spreadOver is the time over which what becomes due at once is sent.
	spreadOver = 5 * time.Second
)

// health is how an endpoint has taken what was sent to it lately.
type health struct {
	window       int
	slow         bool     // the last attempt has taken long
	failures     int      // in a row
	failedEvents []string // different events among them, up to failingAfter
	failingSince time.Time
	nextProbe    time.Time // while failing: when the next attempt is
	failedProbes int       // in vain
	pausedUntil  time.Time // it has asked to be left alone until then
	lastSuccess  time.Time // the last one
}

func (h *health) isFailing() bool { return !h.nextProbe.IsZero() }

// forget begins anew, as with an endpoint of which nothing is known.
func (h *health) reset() { *h = health{window: firstWindow, lastSuccess: h.lastSuccess} }

// succeeded takes a success. It tells whether the endpoint was failing until then.
func (h *health) succeeded(at time.Time, took time.Duration) (recovered bool) {
	recovered = h.isFailing()
	slow, most := took >= slowAfter, maxWindow
	if slow {
		most = firstWindow
	}
	*h = health{window: min(2*h.window, most), slow: slow, lastSuccess: at, pausedUntil: h.pausedUntil}
	return recovered
}

// failed takes a failure of an event. It answers why the endpoint should be disabled,
// if it should. probe tells that the attempt was begun because of an earlier failure,
// and says something of the endpoint as it is by now.
func (h *health) failed(event string, attempt *webhook.Attempt, probe bool, now time.Time, random float64) licensing.DisableReason {
	if attempt.RetryAfter > 0 && (attempt.Status == 429 || attempt.Status == 503) {
		h.pausedUntil = later(h.pausedUntil, now.Add(min(attempt.RetryAfter, maxEndpointPause)))
	}
	h.slow = attempt.Duration >= slowAfter
	h.failures++
	if h.failures == 1 {
		h.failingSince = now
	} else {
		h.window = 1
	}
	switch {
	case attempt.Outcome == webhook.Gone:
		return licensing.DisabledGone
	case !h.isFailing():
		if !slices.Contains(h.failedEvents, event) {
			h.failedEvents = append(h.failedEvents, event)
		}
		if len(h.failedEvents) >= failingAfter {
			h.failedEvents = nil
			h.nextProbe = now.Add(probePause(0, random))
		}
	case probe:
		h.failedProbes++
		h.nextProbe = now.Add(probePause(h.failedProbes, random))
		if now.Sub(h.failingSince) >= webhook.MaxFailing {
			return licensing.DisabledFailing
		}
	}
	return ""
}

func probePause(inVain int, random float64) time.Duration {
	pause := longestProbePause
	if inVain < 10 {
		pause = min(firstProbePause<<inVain, longestProbePause)
	}
	pause = time.Duration(float64(pause) * (1 - probeJitter + 2*probeJitter*random))
	return min(pause, longestProbePause)
}

// mayBegin is when the next attempt may be, however many are under way.
func (h *health) nextAttemptAt() time.Time { return later(h.pausedUntil, h.nextProbe) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
