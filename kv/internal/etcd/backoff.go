package etcd

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is a pause between attempts. It doubles with each attempt, and is random below that, so that
// nodes which failed together don't come back together.
type Backoff struct {
	First, Longest time.Duration
}

// Wait waits before the attempt after attempt, which counts from 0, or until ctx ends. It reports whether
// ctx goes on.
func (b Backoff) Wait(ctx context.Context, attempt int) bool {
	return Pause(ctx, rand.N(min(b.First<<min(attempt, 10), b.Longest)))
}

// PauseBeforeReissue waits before a request whose outcome is unknown is sent again.
func PauseBeforeReissue(ctx context.Context, attempt int) {
	Backoff{First: 10 * time.Millisecond, Longest: 200 * time.Millisecond}.Wait(ctx, attempt)
}

// Pause waits, and reports whether ctx goes on.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
