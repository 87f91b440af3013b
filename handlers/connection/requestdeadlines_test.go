package connection

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// TestRequestDeadlines: requests of the same step share a context, and each has its whole time but for
// a step.
func TestRequestDeadlines(t *testing.T) {
	t.Parallel()
	const timeout = deadlineSteps * time.Second
	d := RequestDeadlines{Timeout: timeout}
	start := time.Now()
	first := d.Context(start)
	f := func(after time.Duration, same bool) {
		t.Helper()
		ctx := d.Context(start.Add(after))
		if (ctx == first) != same {
			t.Errorf("after %v: shared with the first: %v", after, !same)
		}
		deadline, _ := ctx.Deadline()
		if left := deadline.Sub(start.Add(after)); left > timeout || left <= timeout-time.Second {
			t.Errorf("after %v: %v are left", after, left)
		}
		if ctx.Err() != nil {
			t.Errorf("after %v: %v", after, ctx.Err())
		}
	}
	f(0, true)
	f(time.Second-1, true)
	f(time.Second, false)
	f(time.Second+time.Second/2, false)
	f(10*time.Second, false)
	if first.Err() != nil {
		t.Errorf("the first one ended with its step: %v", first.Err())
	}
}

// TestRequestDeadlinesEnd: concurrent requests get contexts that have not ended, and that end in time.
func TestRequestDeadlinesEnd(t *testing.T) {
	t.Parallel()
	const timeout = 100 * time.Millisecond
	d := RequestDeadlines{Timeout: timeout}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				arrived := time.Now()
				ctx := d.Context(arrived)
				if err := ctx.Err(); err != nil && time.Since(arrived) < timeout/2 {
					t.Errorf("ended after %v: %v", time.Since(arrived), err)
				}
				time.Sleep(100 * time.Microsecond)
			}
			ctx := d.Context(time.Now())
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
				t.Error("never ends")
			}
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("ended with %v", ctx.Err())
			}
		})
	}
	all.Wait()
}

func BenchmarkRequestDeadlines(b *testing.B) {
	b.Run("shared", func(b *testing.B) {
		d := RequestDeadlines{Timeout: 4 * time.Second}
		b.ReportAllocs()
		for b.Loop() {
			_ = d.Context(time.Now())
		}
	})
	b.Run("own", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, cancel := context.WithTimeout(context.Background(), 4*time.Second)
			cancel()
		}
	})
}
