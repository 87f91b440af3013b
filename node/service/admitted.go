package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/oklog/ulid/v2"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// claimTries bounds how often a request is tried when another request was first with one of
// the records that it makes.
const claimTries = 4

// admitted does work with a place among what the node has under way for an owner. Without a
// free place it fails with ErrOverloaded.
func admitted[T any](ctx context.Context, c *core, owner licensing.Owner, work func(node.Place) (T, error)) (result T, err error) {
	place, err := c.engine.Enter(ctx, owner)
	if err != nil {
		return result, err
	}
	defer func() { place.Leave(err) }()
	return work(place)
}

// admittedToList is admitted for a page of a list; see listGate.
func admittedToList[T any](ctx context.Context, c *core, owner licensing.Owner, read func() (T, error)) (T, error) {
	return admitted(ctx, c, owner, func(node.Place) (result T, err error) {
		if err := c.lists.enter(ctx); err != nil {
			return result, err
		}
		defer c.lists.leave()
		return read()
	})
}

// idempotent does what a request with an Idempotency-Key asks for, of an owner: at this node nobody
// else works on a request with the same key meanwhile. stale is why the request can't be made
// any more; nil: the request can be made. The node drains only after idempotent has returned.
func idempotent[T any](
	ctx context.Context, c *core, owner licensing.Owner, key *node.Once, stale error,
	do func(node.Place, *node.Claim) (result T, replayed bool, err error),
) (result T, replayed bool, err error) {
	if err := c.engine.StartWork(); err != nil {
		return result, false, err
	}
	defer c.engine.EndWork()
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

// untilClaimed tries to store what a request comes to until nobody else is first with one of
// its records. After claimTries it fails with ErrUnavailable.
func untilClaimed(try func() error) error {
	for range claimTries {
		if err := try(); !errors.Is(err, store.ErrClaimTaken) {
			return err
		}
	}
	return licensing.ErrUnavailable
}

// newULID makes an id. what names the thing that the id is for in an error.
func newULID(now time.Time, entropy io.Reader, what string) (string, error) {
	id, err := ulid.New(ulid.Timestamp(now), entropy)
	if err != nil {
		return "", fmt.Errorf("make the id of %s: %w", what, err)
	}
	return id.String(), nil
}
