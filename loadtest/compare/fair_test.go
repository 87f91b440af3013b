package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestMeanwhile: an attack must get through while the load runs, or soon after. A refusal is that only if the attack is
// made to be refused.
func TestMeanwhile(t *testing.T) {
	limited := statusError(http.StatusTooManyRequests)
	for _, c := range []struct {
		name    string
		refused bool
		turn    time.Duration
		outcome error
		during  bool // it gets through while the load runs
		proves  bool
	}{
		{"got through", false, time.Millisecond, nil, true, true},
		{"got through soon after", false, 3 * time.Second, nil, false, true},
		{"refused", false, time.Millisecond, limited, false, false},
		{"refused as it should be", true, time.Millisecond, limited, true, true},
		{"without a response", true, time.Millisecond, errors.New("no connection"), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := attack{refused: c.refused}
				d.open = func(*rival, context.Context) turnFunc {
					return func(context.Context, int, int) error {
						time.Sleep(c.turn)
						return c.outcome
					}
				}
				var through int64
				err := attempt(func() {
					_, through = new(rival).meanwhile(t.Context(), d, func() *sample {
						time.Sleep(time.Second)
						return &sample{}
					})
				})
				if (through > 0) != c.during || (err == nil) != c.proves ||
					err != nil && !strings.Contains(err.Error(), "proves nothing") {
					t.Errorf("got through %d times: %v", through, err)
				}
			})
		})
	}
}
