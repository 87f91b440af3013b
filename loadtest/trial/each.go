package trial

import (
	"context"

	"licet/loadtest/rig"
)

// workers is how many goroutines Each uses.
const workers = 16

// Each calls do for each item of a list, several at a time, until ctx ends.
func Each[T any](ctx context.Context, list []T, do func(context.Context, T)) {
	_ = rig.Each(ctx, len(list), workers, func(ctx context.Context, i int) error { // no call fails
		do(ctx, list[i])
		return nil
	})
}
