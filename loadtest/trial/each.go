package trial

import (
	"context"
	"sync"
	"sync/atomic"
)

// workers is how many goroutines Each uses.
const workers = 16

// Each calls do for each item of a list, several at a time, until ctx ends.
func Each[T any](ctx context.Context, list []T, do func(context.Context, T)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(workers, len(list)) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if i >= len(list) {
					return
				}
				do(ctx, list[i])
			}
		})
	}
	group.Wait()
}
