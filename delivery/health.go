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
	failingAfter = 5
	firstPause   = 5 * time.Second // between two of them; it doubles
	longestPause = 5 * time.Minute
	pauseJitter  = 0.2

	// longestHold is how long at most an endpoint that asks to be left alone is: what
	// it has answered that to waits for as long as it says.
	longestHold = 5 * time.Minute

	// maxDead is how many messages are given up until the endpoint is.
	maxDead = 10_000

	// spreadOver is the time over which what becomes due at once is sent.
	spreadOver = 5 * time.Second
)

// health is how an endpoint has taken what was sent to it lately.
type health struct {
	window   int
	slow     bool     // the last attempt has taken long
	failures int      // in a row
	streak   []string // different events among them, up to failingAfter
	since    time.Time
	probe    time.Time // while failing: when the next attempt is
	probes   int       // in vain
	hold     time.Time // it has asked to be left alone until then
	success  time.Time // the last one
}

func (h *health) failing() bool { return !h.probe.IsZero() }

// forget begins anew, as with an endpoint of which nothing is known.
func (h *health) forget() { *h = health{window: firstWindow, success: h.success} }

// succeeded takes a success. It tells whether the endpoint was failing until then.
func (h *health) succeeded(at time.Time, took time.Duration) (recovered bool) {
	recovered = h.failing()
	slow, most := took >= slowAfter, maxWindow
	if slow {
		most = firstWindow
	}
	*h = health{window: min(2*h.window, most), slow: slow, success: at, hold: h.hold}
	return recovered
}

// failed takes a failure of an event. It answers why the endpoint should be disabled,
// if it should. probe tells that the attempt was begun because of an earlier failure,
// and says something of the endpoint as it is by now.
func (h *health) failed(event string, attempt *webhook.Attempt, probe bool, now time.Time, random float64) licensing.DisableReason {
	if attempt.RetryAfter > 0 && (attempt.Status == 429 || attempt.Status == 503) {
		h.hold = later(h.hold, now.Add(min(attempt.RetryAfter, longestHold)))
	}
	h.slow = attempt.Duration >= slowAfter
	h.failures++
	if h.failures == 1 {
		h.since = now
	} else {
		h.window = 1
	}
	switch {
	case attempt.Outcome == webhook.Gone:
		return licensing.DisabledGone
	case !h.failing():
		if !slices.Contains(h.streak, event) {
			h.streak = append(h.streak, event)
		}
		if len(h.streak) >= failingAfter {
			h.streak = nil
			h.probe = now.Add(probePause(0, random))
		}
	case probe:
		h.probes++
		h.probe = now.Add(probePause(h.probes, random))
		if now.Sub(h.since) >= webhook.MaxFailing {
			return licensing.DisabledFailing
		}
	}
	return ""
}

func probePause(inVain int, random float64) time.Duration {
	pause := longestPause
	if inVain < 10 {
		pause = min(firstPause<<inVain, longestPause)
	}
	pause = time.Duration(float64(pause) * (1 - pauseJitter + 2*pauseJitter*random))
	return min(pause, longestPause)
}

// mayBegin is when the next attempt may be, however many are under way.
func (h *health) mayBegin() time.Time { return later(h.hold, h.probe) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
