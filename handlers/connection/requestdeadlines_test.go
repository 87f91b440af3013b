package connection

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestDeadlines(t *testing.T) {
	t.Parallel()
	const timeout = deadlineSteps * time.Second
	d := RequestDeadlines{Timeout: timeout}
	start := time.Now()
	first := d.Context(start)
	f := func(came time.Duration, same bool) {
		t.Helper()
		ctx := d.Context(start.Add(came))
		if (ctx == first) != same {
			t.Errorf("after %v: shared with the first: %v", came, !same)
		}
		deadline, _ := ctx.Deadline()
		if left := deadline.Sub(start.Add(came)); left > timeout || left <= timeout-time.Second {
			t.Errorf("after %v: %v are left", came, left)
		}
		if ctx.Err() != nil {
			t.Errorf("after %v: %v", came, ctx.Err())
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

// Requests that come at once get contexts that live, and that end.
func TestDeadlinesEnd(t *testing.T) {
	t.Parallel()
	const timeout = 100 * time.Millisecond
	d := RequestDeadlines{Timeout: timeout}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				came := time.Now()
				ctx := d.Context(came)
				if err := ctx.Err(); err != nil && time.Since(came) < timeout/2 {
					t.Errorf("ended after %v: %v", time.Since(came), err)
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

func BenchmarkDeadlines(b *testing.B) {
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
