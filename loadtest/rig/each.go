package rig

import (
	"context"
	"sync"
)

// Each calls do for each number below n, from so many goroutines, until ctx ends or a call fails. It returns the first
// error.
func Each(ctx context.Context, n, workers int, do func(ctx context.Context, i int) error) error {
	numbers := make(chan int)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var group sync.WaitGroup
	for range min(n, workers) {
		group.Go(func() {
			for i := range numbers {
				if err := do(ctx, i); err != nil {
					fail(err)
					return
				}
			}
		})
	}
	for i := range n {
		select {
		case numbers <- i:
		case <-ctx.Done():
		}
	}
	close(numbers)
	group.Wait()
	return context.Cause(ctx)
}
