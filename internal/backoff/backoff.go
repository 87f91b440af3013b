package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Exponential is the pause between attempts. Its bound starts at First and doubles with each attempt, up to Longest.
// The pause is random below its bound, so that nodes that failed together don't retry together.
type Exponential struct {
	First, Longest time.Duration
}

// Wait waits after an attempt, which counts from 0, or until ctx ends. It reports whether ctx goes on.
func (e Exponential) Wait(ctx context.Context, attempt int) bool {
	return Sleep(ctx, rand.N(min(e.First<<min(attempt, 10), e.Longest))) // the bounded shift can't overflow
}

// Sleep waits for d, or until ctx ends. It reports whether ctx goes on.
func Sleep(ctx context.Context, d time.Duration) bool { return SleepUnless(ctx, d, nil) }

// SleepUnless waits as Sleep does, but not after woken has received or is closed.
func SleepUnless(ctx context.Context, d time.Duration, woken <-chan struct{}) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-woken:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Around returns a random time between d minus d/part and d plus d/part, so that nodes don't do periodic work at the
// same time. d/part must be positive.
func Around(d time.Duration, part int) time.Duration {
	spread := d / time.Duration(part)
	return d - spread + rand.N(2*spread)
}
