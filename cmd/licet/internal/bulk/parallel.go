package bulk

import (
	"context"
	"iter"
	"sync"
)

// inParallel calls do for each item, up to workers at a time, until ctx ends or a call fails. It returns the first
// error, once all calls have ended.
func inParallel[T any](ctx context.Context, workers int, items iter.Seq[T], do func(T) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work := make(chan T)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for item := range work {
				if err := do(item); err != nil {
					stop(err)
				}
			}
		})
	}
	for item := range items {
		select {
		case work <- item:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	close(work)
	running.Wait()
	return context.Cause(ctx)
}
