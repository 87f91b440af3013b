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

// Tally counts what is done, and keeps what is found wrong on the way. Its zero
// value is empty.
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

// Problem notes something that should have been otherwise.
func (t *Tally) Problem(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = append(t.problems, fmt.Sprintf(format, args...))
}

// Err is the problems so far, for whoever can't go on.
func (t *Tally) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, p := range t.problems {
		errs = append(errs, errors.New(p))
	}
	return errors.Join(errs...)
}

// Report begins a report with what there is so far.
func (t *Tally) Report() *Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &Report{Problems: slices.Clone(t.problems)}
	for _, what := range slices.Sorted(maps.Keys(t.done)) {
		r.Count(what, t.done[what])
	}
	return r
}

// answerTime is how long one request may take with its answer; the service ends
// the work on one within 4 seconds.
const answerTime = 15 * time.Second

// Client makes a client that goes through a balancer, and tries again for so long.
// How often it does is counted, by why.
func (t *Tally) Client(b *stage.Balancer, patience time.Duration, apiKey string, more ...client.Option) (*client.Client, error) {
	return client.New(stage.PublicURL, apiKey, append([]client.Option{
		client.WithHTTPClient(&http.Client{Transport: b, Timeout: answerTime}),
		client.RetryFor(patience),
		client.OnRetry(t.again),
	}, more...)...)
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
