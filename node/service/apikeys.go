package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// Keys offers the use cases of API keys: create, change, read, and authenticate.
type Keys struct {
	*core
	cache *keyCache
}

// KeyCreation asks for a new API key. The caller has validated the fields.
type KeyCreation struct {
	NewKey
	Once *node.Once // nil: the request came without an Idempotency-Key
	// Stale is the error if the request can no longer be made; see [Grant].
	Stale error
}

// KeyRotation asks for a new secret of an API key. The caller has validated the fields.
type KeyRotation struct {
	Owner   licensing.Owner
	ID      string
	Overlap time.Duration
	// By is the API key of the caller; see [licensing.APIKey.MayRotate].
	By   *licensing.APIKey
	Once *node.Once // nil: the request came without an Idempotency-Key
}

// CreateAPIKey creates an API key. With in.Once, repeating the request returns the key as it is now,
// without its text and secret, and replayed is true. CreateAPIKey refuses with ReasonAPIKeyLimit if the owner has
// Config.MaxAPIKeys usable keys. This refusal is not kept for in.Once, so the request may be repeated once there are
// fewer keys.
func (k *Keys) CreateAPIKey(ctx context.Context, in KeyCreation) (issued IssuedKey, replayed bool, err error) {
	stale := cmp.Or(in.Stale, k.budgets.admit(ctx, in.Owner))
	return k.issue(ctx, in.Owner, in.Once, stale, func(claims claimsFor) (IssuedKey, error) {
		if err := k.checkCount(ctx, in.Owner); err != nil {
			return IssuedKey{}, err
		}
		return k.keymaker().create(ctx, in.NewKey, claims)
	})
}

// countedKeys is how many of an owner's newest API keys checkCount looks at, as a multiple of the maximum. Without it,
// each new key of an owner with many revoked keys would cost a read of all of them.
const countedKeys = 10

// checkCount refuses a new API key of an owner who has as many usable keys as an owner may have. Requests at the same
// time may exceed the maximum by as many. An exact count would have to be stored with each change of a key.
func (k *Keys) checkCount(ctx context.Context, owner licensing.Owner) error {
	most := k.cfg.MaxAPIKeys
	if most == 0 {
		return nil
	}
	if err := k.lists.enter(ctx, owner); err != nil {
		return err
	}
	defer k.lists.leave(owner)
	usable, now := 0, k.engine.Now()
	page := clamp(store.Page{Limit: store.MaxListPage})
	for looked := 0; looked < countedKeys*most; looked += store.MaxListPage {
		list, err := k.cfg.Keys.ListAPIKeys(ctx, owner, page)
		if err != nil {
			return err
		}
		for i := range list.Items {
			if list.Items[i].Usable(now) {
				usable++
			}
		}
		switch {
		case usable >= most:
			return tooManyAPIKeys(most)
		case list.Next == "":
			return nil
		}
		page.Before = list.Next
	}
	return nil
}

func tooManyAPIKeys(most int) error {
	return &licensing.Error{
		Reason:  licensing.ReasonAPIKeyLimit,
		Message: "too many API keys: revoke an API key first",
		Details: map[string]int{"max_api_keys": most},
	}
}

// RotateAPIKey gives an API key a new secret, derived from the ring's current master key. in.Once
// works as in CreateAPIKey.
func (k *Keys) RotateAPIKey(ctx context.Context, in KeyRotation) (issued IssuedKey, replayed bool, err error) {
	return k.issue(ctx, in.Owner, in.Once, nil, func(claims claimsFor) (IssuedKey, error) {
		if !licensing.ValidAPIKeyID(in.ID) { // checked here, since a replay takes precedence
			return IssuedKey{}, licensing.ErrAPIKeyNotFound
		}
		return k.keymaker().rotate(ctx, in.Owner, in.ID, in.Overlap, in.By.MayRotate, claims)
	})
}

// RevokeAPIKey revokes an API key permanently: within 2 seconds no node accepts the key. The record of
// the key stays. Revoking a revoked key is a no-op.
func (k *Keys) RevokeAPIKey(ctx context.Context, owner licensing.Owner, id string) (licensing.APIKey, error) {
	if !licensing.ValidAPIKeyID(id) {
		return licensing.APIKey{}, licensing.ErrAPIKeyNotFound
	}
	if err := k.engine.StartWork(); err != nil {
		return licensing.APIKey{}, err
	}
	defer k.engine.EndWork()
	return admitted(ctx, k.core, owner, func(node.Place) (licensing.APIKey, error) {
		if err := k.engine.TakeChange(owner); err != nil {
			return licensing.APIKey{}, err
		}
		revoked, err := k.keymaker().Revoke(ctx, owner, id)
		if err != nil {
			return licensing.APIKey{}, err
		}
		return *revoked, nil
	})
}

// APIKey returns an API key of an owner by its public id. The read is linearizable.
func (k *Keys) APIKey(ctx context.Context, owner licensing.Owner, id string) (licensing.APIKey, error) {
	if !licensing.ValidAPIKeyID(id) {
		return licensing.APIKey{}, licensing.ErrAPIKeyNotFound
	}
	return admitted(ctx, k.core, owner, func(node.Place) (licensing.APIKey, error) {
		return k.readAPIKey(ctx, owner, id)
	})
}

// readAPIKey returns an API key. The caller holds an admission place.
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

// issue runs do, which creates a secret, at most once per Idempotency-Key. A replay returns the key
// without its secret.
func (k *Keys) issue(
	ctx context.Context, owner licensing.Owner, once *node.Once, stale error, do func(claimsFor) (IssuedKey, error),
) (issued IssuedKey, replayed bool, err error) {
	run := func(_ node.Place, claim *node.Claim) (issued IssuedKey, replayed bool, err error) {
		err = retryConflicts(maxClaimTries, func() error {
			if _, err := k.engine.LoadWithClaim(ctx, claim); err != nil {
				replayed = claim.Replayed()
				return err
			}
			if claim.Replayed() {
				key, err := k.readAPIKey(ctx, owner, claim.Earlier.APIKeyID)
				issued, replayed = IssuedKey{Key: key}, err == nil
				return err
			}
			if err := k.engine.TakeChange(owner); err != nil {
				return err
			}
			issued, err = do(func(keyID string) []store.Write {
				claim.Effect.APIKeyID = keyID
				return claim.Change(k.engine.Now(), nil).Writes
			})
			return err
		})
		return issued, replayed, k.explainRing(err)
	}
	return idempotent(ctx, k.core, owner, once, stale, run)
}

var errOtherRing = &licensing.Error{
	Reason:  licensing.ReasonUnavailable,
	Message: "the master keys of this node are not those of the service; nothing was changed",
}

// explainRing logs a ringError and returns errOtherRing in its place: another node may have the right
// master keys. explainRing returns any other error unchanged.
func (c *core) explainRing(err error) error {
	var wrong *ringError
	if !errors.As(err, &wrong) {
		return err
	}
	c.cfg.Log.Error().Err(err).
		Msg("this node can't derive new secrets: give the node the master keys of the service and restart it")
	return errOtherRing
}

func (c *core) keymaker() Keymaker {
	return Keymaker{
		Store: c.cfg.Keys, Check: c.cfg.LicenseKeys.KeyCheck, Ring: c.cfg.Ring, Clock: c.cfg.Clock,
		Entropy: c.cfg.Entropy,
	}
}

// useRing makes sure, before the node creates its first order, that the ring has the store's master keys and that the
// store knows the current one: so no two nodes derive pay tokens from different keys under one id. useRing never
// reports an unknown outcome, because the order was not created.
//
// A master key may be retired later. A node whose ring still begins with this key continues to create orders; their
// pay pages open, but nodes without the master key show no pay_url.
func (o *Orders) useRing(ctx context.Context) error {
	if o.ringUsed.Load() {
		return nil
	}
	err := o.keymaker().useCurrent(ctx)
	if licensing.ReasonOf(err) == licensing.ReasonOutcomeUnknown {
		return fmt.Errorf("%w: note the master key in use: %v", licensing.ErrUnavailable, err)
	}
	if err == nil {
		o.ringUsed.Store(true)
	}
	return o.explainRing(err)
}
