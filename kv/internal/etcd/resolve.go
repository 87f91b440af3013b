package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/licensing"
)

// Resolve sends a transaction until its outcome is known. The compares must make sure that only one
// copy of the transaction lands. resolve sets inDoubt once the outcome of an attempt is unknown: then
// a transaction that lost may have lost to an earlier copy of itself.
func (c *Client) Resolve(
	ctx context.Context, operation string, inDoubt *bool, compares []clientv3.Cmp, then, otherwise []clientv3.Op,
) (*clientv3.TxnResponse, error) {
	for attempt := 0; ; attempt++ {
		if ctx.Err() != nil {
			return nil, GaveUp(*inDoubt, ctx.Err())
		}
		response, err := c.Txn(ctx, operation, compares, then, otherwise)
		switch Classify(err) {
		case Succeeded:
			return response, nil
		case Refused:
			return nil, GaveUp(*inDoubt, err)
		case Rejected:
			if !errors.Is(err, rpctypes.ErrLeaseNotFound) { // a lease may end at any time
				c.Log.Error().Err(err).Str("operation", operation).Msg("etcd rejects a transaction's form")
			}
			if *inDoubt {
				return nil, GaveUp(*inDoubt, err)
			}
			return nil, fmt.Errorf("%w: %w", licensing.ErrInternal, err)
		case Unknown:
			*inDoubt = true
			c.Reissued.Inc()
			PauseBeforeReissue(ctx, attempt)
		}
	}
}

// GaveUp returns the error of a swap that will not be sent again. Doubt is sticky: that etcd refused
// a later attempt says nothing of an earlier one.
func GaveUp(inDoubt bool, cause error) error {
	if inDoubt {
		return fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, cause)
	}
	return Unavailable(cause)
}

// Unavailable returns the error of a read that was not made, or of a write that was not executed.
func Unavailable(cause error) error {
	if licensing.NotExecuted(cause) {
		return cause
	}
	return fmt.Errorf("%w: %w", licensing.ErrUnavailable, cause)
}
