package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/licensing"
)

// Resolve sends a transaction until its outcome is known. See Resend.
func (c *Client) Resolve(
	ctx context.Context, operation string, inDoubt *bool, compares []clientv3.Cmp, then, otherwise []clientv3.Op,
) (response *clientv3.TxnResponse, err error) {
	err = c.Resend(ctx, operation, inDoubt, func() (err error) {
		response, err = c.Txn(ctx, operation, compares, then, otherwise)
		return err
	})
	return response, err
}

// Resend calls send, which sends one transaction, until the outcome of the transaction is known or ctx ends. The
// compares of the transaction must make sure that only one copy of it lands. Resend sets inDoubt once the outcome of
// an attempt is unknown: then a transaction that lost may have lost to an earlier copy of itself.
func (c *Client) Resend(ctx context.Context, operation string, inDoubt *bool, send func() error) error {
	for attempt := 0; ; attempt++ {
		if ctx.Err() != nil {
			return GaveUp(*inDoubt, ctx.Err())
		}
		err := send()
		switch Classify(err) {
		case Succeeded:
			return nil
		case Refused:
			return GaveUp(*inDoubt, err)
		case Rejected:
			if !errors.Is(err, rpctypes.ErrLeaseNotFound) { // a lease may end at any time
				c.Log.Error().Err(err).Str("operation", operation).Msg("etcd rejects the form of a transaction")
			}
			if *inDoubt {
				return GaveUp(*inDoubt, err)
			}
			return fmt.Errorf("%w: %w", licensing.ErrInternal, err)
		case Unknown:
			*inDoubt = true
			c.Resent.Inc()
			PauseBeforeResend(ctx, attempt)
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
