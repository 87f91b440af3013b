package trial

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"licet/client"
	"licet/loadtest/stage"
)

// Tally counts what is done, and collects problems. The zero value is empty. A Tally is
// safe for concurrent use.
type Tally struct {
	mu       sync.Mutex
	done     map[string]int
	problems []string
}

// Did counts something that was done.
func (t *Tally) Did(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		t.done = map[string]int{}
	}
	t.done[what]++
}

// Done counts what was done, and reports whether that worked: an error is a problem. about names the subject.
func (t *Tally) Done(what string, about any, err error) bool {
	if err != nil {
		t.Problem("%v: %s: %v", about, what, err)
		return false
	}
	t.Did(what)
	return true
}

// Problem adds a problem.
func (t *Tally) Problem(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = append(t.problems, fmt.Sprintf(format, args...))
}

// Err returns the problems so far as one error, nil if there are none.
func (t *Tally) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, p := range t.problems {
		errs = append(errs, errors.New(p))
	}
	return errors.Join(errs...)
}

// Report begins a report with the counts and problems so far.
func (t *Tally) Report() *Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &Report{Problems: slices.Clone(t.problems)}
	for _, what := range slices.Sorted(maps.Keys(t.done)) {
		r.Count(what, t.done[what])
	}
	return r
}

// CodeOf returns the code of a refusal, 0 for a success, and -1 without an answer.
func CodeOf(err error) int {
	var refused *client.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &refused):
		return refused.Code
	default:
		return -1
	}
}

// answerTime is how long one request may take. The service ends its work on a request
// within 4 seconds.
const answerTime = 15 * time.Second

// Client returns a client that sends its requests through a balancer and repeats them for
// as long as patience. Each repetition is counted, with its reason.
func (t *Tally) Client(b *stage.Balancer, patience time.Duration, apiKey string) (*client.Client, error) {
	return client.New(stage.PublicURL, apiKey, client.WithHTTPClient(&http.Client{Transport: b, Timeout: answerTime}),
		client.RetryFor(patience), client.OnRetry(t.again))
}

func (t *Tally) again(err error, _ time.Duration) bool {
	why := "no answer"
	var refused *client.Error
	if errors.As(err, &refused) {
		why = fmt.Sprintf("%d %s", refused.Code, refused.Reason)
	}
	t.Did("sent again after: " + why)
	return true
}
