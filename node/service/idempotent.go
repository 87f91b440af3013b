package service

import (
	"context"
	"errors"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// maxClaimTries bounds how often a request with one transaction is tried.
const maxClaimTries = 4

// idempotent runs a request that may carry an Idempotency-Key. This node runs no other request with
// the same owner and key at the same time. stale is the error if the request can no longer be made;
// nil if it can. Draining the node waits until idempotent has returned.
func idempotent[T any](
	ctx context.Context, c *core, owner licensing.Owner, key *node.Once, stale error,
	do func(node.Place, *node.Claim) (result T, replayed bool, err error),
) (result T, replayed bool, err error) {
	if err := c.engine.StartWork(); err != nil {
		return result, false, err
	}
	defer c.engine.EndWork()
	if key != nil && stale == nil {
		stale = c.budgets.refuseClaim(owner)
	}
	result, err = admitted(ctx, c, owner, func(place node.Place) (result T, err error) {
		claim, end, err := c.engine.BeginOnce(owner, key, stale)
		if err != nil {
			return result, err
		}
		defer end()
		result, replayed, err = do(place, claim)
		return result, err
	})
	return result, replayed, err
}

// retryConflicts calls try until try does not fail with ErrClaimTaken: another request has written one
// of the records first. After so many tries it returns ErrUnavailable.
func retryConflicts(tries int, try func() error) error {
	for range tries {
		if err := try(); !errors.Is(err, store.ErrClaimTaken) {
			return err
		}
	}
	return licensing.ErrUnavailable
}
