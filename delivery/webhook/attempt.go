package webhook

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Outcome is what is to become of a message after an attempt.
type Outcome string

// The outcomes.
const (
	Delivered Outcome = "delivered" // any 2xx, whatever follows the header
	Retry     Outcome = "retry"     // anything else but 410
	Gone      Outcome = "gone"      // 410: the endpoint wants nothing any more, and is to be disabled
)

// Attempt is what came of sending a message once.
type Attempt struct {
	Outcome  Outcome
	At       time.Time // when it was begun
	Duration time.Duration

	Status int // of the answer; 0: there was none
	// Answer is the first 1 KiB of the answer's body, made valid UTF-8.
	Answer string
	// RetryAfter is how long the receiver has asked to be waited for, at most
	// MaxRetryAfter; 0 if it has not.
	RetryAfter time.Duration

	Failure Failure // why it was not delivered
	// Err says more where there was no answer. It tells of names and addresses, so
	// it is for the log of whoever runs the service, and not for an endpoint's owner.
	Err error
}

func (a *Attempt) fail(why Failure, err error) {
	a.Outcome, a.Failure, a.Err = Retry, why, err
}

// take reads an answer. Its header decides: where the body breaks off, or comes
// too slowly, as much is taken as has come.
func (a *Attempt) take(response *http.Response, clock func() time.Time) {
	a.Status = response.StatusCode
	switch {
	case a.Status >= 200 && a.Status <= 299:
		a.Outcome = Delivered
	case a.Status == http.StatusGone:
		a.Outcome, a.Failure = Gone, FailureStatus
	case a.Status >= 300 && a.Status <= 399:
		a.Outcome, a.Failure = Retry, FailureRedirect
	default:
		a.Outcome, a.Failure = Retry, FailureStatus
	}
	if a.Outcome == Retry {
		a.RetryAfter = parseRetryAfter(response.Header.Get("Retry-After"), clock())
	}
	if a.Status == http.StatusSwitchingProtocols {
		// Then the connection is ours, and nothing ends a read from it.
		_ = response.Body.Close()
		return
	}
	a.Answer = readAnswer(response.Body)
}

// readAnswer reads as much of a body as is read at all. If that was not
// everything, closing it closes the connection.
func readAnswer(body io.ReadCloser) string {
	defer func() { _ = body.Close() }()
	kept := make([]byte, maxKept)
	n, err := io.ReadFull(body, kept)
	if err == nil {
		_, _ = io.CopyN(io.Discard, body, maxAnswer-maxKept)
	}
	text := strings.ToValidUTF8(string(kept[:n]), string(utf8.RuneError))
	if len(text) <= maxKept {
		return text
	}
	end := maxKept
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// parseRetryAfter reads a number of seconds or a date, and gives how long that
// is from now.
func parseRetryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0
	}
	if strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(MaxRetryAfter/time.Second) {
			return MaxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), MaxRetryAfter)
}
