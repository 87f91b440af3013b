package rig

import (
	"cmp"
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
)

// Each calls do for each number below n, from so many goroutines, until ctx ends or a call fails. It returns the first
// error.
func Each(ctx context.Context, n, workers int, do func(ctx context.Context, i int) error) error {
	group, doing := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := 0; i < n && doing.Err() == nil; i++ {
		group.Go(func() error { return do(doing, i) })
	}
	return cmp.Or(group.Wait(), context.Cause(ctx))
}

// Collect reads a list to its end.
func Collect[T any](list iter.Seq2[T, error]) (all []T, err error) {
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}
