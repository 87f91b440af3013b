package webhook

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Outcome says what becomes of a message after an attempt.
type Outcome string

// The outcomes.
const (
	Delivered Outcome = "delivered" // any 2xx, even if the body breaks off
	Retry     Outcome = "retry"     // everything except 2xx and 410
	Gone      Outcome = "gone"      // 410: the endpoint wants no more messages and should be disabled
)

// Attempt is the result of one attempt to send a message.
type Attempt struct {
	Outcome  Outcome
	At       time.Time // when the attempt started
	Duration time.Duration

	Status int // of the response; 0: there was none
	// Answer is the first 1 KiB of the response's body, converted to valid UTF-8.
	Answer string
	// RetryAfter is the pause that the receiver demands, at most MaxRetryAfter; 0: none.
	RetryAfter time.Duration

	Failure Failure // why the message was not delivered
	// Err has details if there was no response. It has names and addresses, so it is for the operator's log and
	// not for the owner of the endpoint.
	Err error
}

// fail makes the attempt one without a response.
func (a *Attempt) fail(why Failure, err error) {
	a.Outcome, a.Failure, a.Err = Retry, why, err
}

// take reads a response. The header decides the outcome. If the body breaks off or comes too slowly, take keeps
// what has come.
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
		// After 101 the body is the connection itself, and no timeout ends a read from it.
		_ = response.Body.Close()
		return
	}
	a.Answer = readAnswer(response.Body)
}

// readAnswer reads at most maxAnswer bytes of a body, and returns at most maxKept. If the body is longer, closing
// it closes the connection.
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

// parseRetryAfter parses a Retry-After header: a number of seconds, or a date. It returns the duration from now,
// between 0 and MaxRetryAfter, and 0 if the header is invalid.
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
