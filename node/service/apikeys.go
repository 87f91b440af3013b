package service

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// Keys are the API keys: how they are made and changed, and who they let in.
type Keys struct {
	*core
	cache *keyCache
}

// KeyCreation asks for an API key. Its members have been checked.
type KeyCreation struct {
	NewKey
	Once *node.Once // nil: the request came without an Idempotency-Key
	// Stale is why the request can't be made any more, as that of a Grant.
	Stale error
}

// KeyRotation asks for a new secret of an API key. Its members have been
// checked.
type KeyRotation struct {
	Owner   licensing.Owner
	ID      string
	Overlap time.Duration
	// By is the API key that asks, which must have all scopes of the other one.
	By   *licensing.APIKey
	Once *node.Once // nil: the request came without an Idempotency-Key
}

// CreateAPIKey makes an API key. With in.Once it is made once: the same request
// again answers the key as it is now, without its text and secret, and replayed
// is true.
func (k *Keys) CreateAPIKey(ctx context.Context, in KeyCreation) (issued IssuedKey, replayed bool, err error) {
	return k.issue(ctx, in.Owner, in.Once, in.Stale, func(claims claimsOf) (IssuedKey, error) {
		return k.keymaker().create(ctx, in.NewKey, claims)
	})
}

// RotateAPIKey gives an API key a new secret, derived from the ring's current
// master key. With in.Once that is done once, as CreateAPIKey does.
func (k *Keys) RotateAPIKey(ctx context.Context, in KeyRotation) (issued IssuedKey, replayed bool, err error) {
	return k.issue(ctx, in.Owner, in.Once, nil, func(claims claimsOf) (IssuedKey, error) {
		if !licensing.ValidAPIKeyID(in.ID) { // nobody has it; but what the Idempotency-Key says comes first
			return IssuedKey{}, licensing.ErrAPIKeyNotFound
		}
		return k.keymaker().rotate(ctx, in.Owner, in.ID, in.Overlap, in.By.MayRotate, claims)
	})
}

// RevokeAPIKey ends an API key for good: within 2 seconds no node takes it any
// more. Its record stays. Revoking it again changes nothing.
func (k *Keys) RevokeAPIKey(ctx context.Context, owner licensing.Owner, id string) (licensing.APIKey, error) {
	if !licensing.ValidAPIKeyID(id) {
		return licensing.APIKey{}, licensing.ErrAPIKeyNotFound
	}
	if err := k.engine.StartWork(); err != nil {
		return licensing.APIKey{}, err
	}
	defer k.engine.EndWork()
	return admitted(ctx, k.core, owner, func(node.Place) (licensing.APIKey, error) {
		revoked, err := k.keymaker().Revoke(ctx, owner, id)
		if err != nil {
			return licensing.APIKey{}, err
		}
		return *revoked, nil
	})
}

// APIKey looks an API key of an owner up by its public id, linearizably.
func (k *Keys) APIKey(ctx context.Context, owner licensing.Owner, id string) (licensing.APIKey, error) {
	if !licensing.ValidAPIKeyID(id) {
		return licensing.APIKey{}, licensing.ErrAPIKeyNotFound
	}
	return admitted(ctx, k.core, owner, func(node.Place) (licensing.APIKey, error) {
		return k.readAPIKey(ctx, owner, id)
	})
}

// readAPIKey looks up an API key for somebody who was let in.
func (k *Keys) readAPIKey(ctx context.Context, owner licensing.Owner, id string) (licensing.APIKey, error) {
	key, err := k.cfg.Keys.FindAPIKey(ctx, owner, id)
	switch {
	case err != nil:
		return licensing.APIKey{}, err
	case key == nil:
		return licensing.APIKey{}, licensing.ErrAPIKeyNotFound
	}
	return *key, nil
}

// issue does what shows a secret, once for an Idempotency-Key.
func (k *Keys) issue(ctx context.Context, owner licensing.Owner, once *node.Once, stale error, do func(claimsOf) (IssuedKey, error)) (issued IssuedKey, replayed bool, err error) {
	return idempotent(ctx, k.core, owner, once, stale, func(_ node.Place, claim *node.Claim) (issued IssuedKey, replayed bool, err error) {
		err = untilClaimed(func() error {
			if _, err := k.engine.LoadWithClaim(ctx, claim); err != nil {
				replayed = claim.Replayed()
				return err
			}
			if claim.Replayed() {
				key, err := k.readAPIKey(ctx, owner, claim.Earlier.APIKeyID)
				issued, replayed = IssuedKey{Key: key}, err == nil
				return err
			}
			issued, err = do(func(keyID string) []store.Write {
				claim.Effect.APIKeyID = keyID
				return claim.Change(k.engine.Now(), nil).Writes
			})
			return err
		})
		return issued, replayed, k.explainRing(err)
	})
}

var errOtherRing = &licensing.Error{Reason: licensing.ReasonUnavailable, Message: "the master keys of this node are not those of the service; nothing was changed"}

// explainRing turns a ring that is not the store's into a refusal: another node
// may have the right one. What is wrong with it is for the log.
func (c *core) explainRing(err error) error {
	var wrong *ringError
	if !errors.As(err, &wrong) {
		return err
	}
	c.cfg.Log.Error().Err(err).Msg("no API key can be made or rotated here: give this node the ring of master keys and start it again")
	return errOtherRing
}

func (c *core) keymaker() Keymaker {
	return Keymaker{Store: c.cfg.Keys, Ring: c.cfg.Ring, Clock: c.cfg.Clock, Entropy: c.cfg.Entropy}
}
