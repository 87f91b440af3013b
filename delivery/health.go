package delivery

import (
	"slices"
	"time"

	"licet/delivery/webhook"
	"licet/licensing"
)

const (
	// firstWindow and maxWindow bound the concurrent attempts to an endpoint. The window doubles with each success.
	firstWindow = 4
	maxWindow   = 32

	// slowAfter is the duration from which an attempt is slow. A slow endpoint gets a small window, and extra
	// slots only while the node has many; see Engine.takeExtraSlot.
	slowAfter = time.Second

	// failingAfter is how many failures in a row, of different events, make an endpoint failing. A failing
	// endpoint is probed by one attempt at a time.
	failingAfter      = 5
	firstProbePause   = 5 * time.Second // doubles with each failed probe
	longestProbePause = 5 * time.Minute
	probeJitter       = 0.2

	// maxEndpointPause bounds how long a Retry-After header pauses the whole endpoint. The message itself waits as
	// long as the header says.
	maxEndpointPause = 5 * time.Minute

	// maxDead is how many dead messages disable the endpoint.
	maxDead = 10_000

	// spreadOver is the time over which messages that become due together are sent.
	spreadOver = 5 * time.Second
)

// health is an endpoint's concurrency window, and its recent successes and failures.
type health struct {
	window       int
	slow         bool     // the last attempt was slow
	failures     int      // failed attempts in a row
	failedEvents []string // the different events among the failures, up to failingAfter
	failingSince time.Time
	sinceInDoubt bool      // the clock was in doubt when failingSince was set
	nextProbe    time.Time // when the next probe is due; zero: the endpoint is not failing
	failedProbes int       // since the endpoint is failing
	pausedUntil  time.Time // by a Retry-After header
	lastSuccess  time.Time
}

// isFailing reports whether the endpoint is failing; see failingAfter.
func (h *health) isFailing() bool { return !h.nextProbe.IsZero() }

// reset forgets everything but the last success.
func (h *health) reset() { *h = health{window: firstWindow, lastSuccess: h.lastSuccess} }

// succeeded takes a successful attempt, and reports whether the endpoint was failing until then.
func (h *health) succeeded(at time.Time, took time.Duration) (recovered bool) {
	recovered = h.isFailing()
	slow, most := took >= slowAfter, maxWindow
	if slow {
		most = firstWindow
	}
	*h = health{window: min(2*h.window, most), slow: slow, lastSuccess: at, pausedUntil: h.pausedUntil}
	return recovered
}

// failed takes a failed attempt to send an event. It returns why the endpoint should be disabled; empty if it
// should not. probe says that the attempt started while the endpoint was failing, and inDoubt that now may be wrong.
func (h *health) failed(
	event string, attempt *webhook.Attempt, probe, inDoubt bool, now time.Time, random float64,
) licensing.DisableReason {
	if attempt.RetryAfter > 0 && (attempt.Status == 429 || attempt.Status == 503) {
		h.pausedUntil = later(h.pausedUntil, now.Add(min(attempt.RetryAfter, maxEndpointPause)))
	}
	h.slow = attempt.Duration >= slowAfter
	h.failures++
	if h.failures == 1 || h.sinceInDoubt {
		h.failingSince, h.sinceInDoubt = now, inDoubt
	}
	if h.failures > 1 {
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
		if !inDoubt && now.Sub(h.failingSince) >= webhook.MaxFailing {
			return licensing.DisabledFailing
		}
	}
	return ""
}

// probePause returns the pause after a number of failed probes. random is in [0, 1).
func probePause(failed int, random float64) time.Duration {
	pause := longestProbePause
	if failed < 10 {
		pause = min(firstProbePause<<failed, longestProbePause)
	}
	pause = time.Duration(float64(pause) * (1 - probeJitter + 2*probeJitter*random))
	return min(pause, longestProbePause)
}

// nextAttemptAt returns the earliest time of the next attempt, whatever the window allows.
func (h *health) nextAttemptAt() time.Time { return later(h.pausedUntil, h.nextProbe) }

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
