package kv

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is a pause between attempts. It doubles with each attempt, and is random below that, so that
// nodes which failed together don't come back together.
type backoff struct {
	First, Longest time.Duration
}

// wait waits before the attempt after attempt, which counts from 0, or until ctx ends. It reports whether
// ctx goes on.
func (b backoff) wait(ctx context.Context, attempt int) bool {
	return pause(ctx, rand.N(min(b.First<<min(attempt, 10), b.Longest)))
}

// pauseBeforeReissue waits before a request whose outcome is unknown is sent again.
func pauseBeforeReissue(ctx context.Context, attempt int) {
	backoff{First: 10 * time.Millisecond, Longest: 200 * time.Millisecond}.wait(ctx, attempt)
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
