package node

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// KeyCreation asks for an API key. Its members have been checked.
type KeyCreation struct {
	NewKey
	Once *Once // nil: the request came without an Idempotency-Key
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
	Once *Once // nil: the request came without an Idempotency-Key
}

// CreateAPIKey makes an API key. With in.Once it is made once: the same request
// again answers the key as it is now, without its text and secret, and replayed
// is true.
func (n *Node) CreateAPIKey(ctx context.Context, in KeyCreation) (issued IssuedKey, replayed bool, err error) {
	return n.issue(ctx, in.Owner, in.Once, in.Stale, func(claims claimsOf) (IssuedKey, error) {
		return n.keymaker().create(ctx, in.NewKey, claims)
	})
}

// RotateAPIKey gives an API key a new secret, derived from the ring's current
// master key. With in.Once that is done once, as CreateAPIKey does.
func (n *Node) RotateAPIKey(ctx context.Context, in KeyRotation) (issued IssuedKey, replayed bool, err error) {
	return n.issue(ctx, in.Owner, in.Once, nil, func(claims claimsOf) (IssuedKey, error) {
		if !licensing.ValidAPIKeyID(in.ID) { // nobody has it; but what the Idempotency-Key says comes first
			return IssuedKey{}, licensing.ErrAPIKeyNotFound
		}
		return n.keymaker().rotate(ctx, in.Owner, in.ID, in.Overlap, in.By.MayRotate, claims)
	})
}

// RevokeAPIKey ends an API key for good: within 2 seconds no node takes it any
// more. Its record stays. Revoking it again changes nothing.
func (n *Node) RevokeAPIKey(ctx context.Context, owner licensing.Owner, id string) (key licensing.APIKey, err error) {
	if !licensing.ValidAPIKeyID(id) {
		return licensing.APIKey{}, licensing.ErrAPIKeyNotFound
	}
	if err := n.enter(); err != nil {
		return licensing.APIKey{}, err
	}
	defer n.work.Done()
	who, err := n.admission.enterFor(ctx, owner)
	if err != nil {
		return licensing.APIKey{}, err
	}
	defer func() { n.admission.leave(who, err) }()
	revoked, err := n.keymaker().Revoke(ctx, owner, id)
	if err != nil {
		return licensing.APIKey{}, err
	}
	return *revoked, nil
}

// APIKey looks an API key of an owner up by its public id, linearizably.
func (n *Node) APIKey(ctx context.Context, owner licensing.Owner, id string) (key licensing.APIKey, err error) {
	if !licensing.ValidAPIKeyID(id) {
		return licensing.APIKey{}, licensing.ErrAPIKeyNotFound
	}
	who, err := n.admission.enterFor(ctx, owner)
	if err != nil {
		return licensing.APIKey{}, err
	}
	defer func() { n.admission.leave(who, err) }()
	return n.readAPIKey(ctx, owner, id)
}

// readAPIKey looks up an API key for somebody who was let in.
func (n *Node) readAPIKey(ctx context.Context, owner licensing.Owner, id string) (licensing.APIKey, error) {
	key, err := n.cfg.Keys.FindAPIKey(ctx, owner, id)
	switch {
	case err != nil:
		return licensing.APIKey{}, err
	case key == nil:
		return licensing.APIKey{}, licensing.ErrAPIKeyNotFound
	}
	return *key, nil
}

// issue does what shows a secret, once for an Idempotency-Key.
func (n *Node) issue(ctx context.Context, owner licensing.Owner, once *Once, stale error, do func(claimsOf) (IssuedKey, error)) (issued IssuedKey, replayed bool, err error) {
	if err := n.enter(); err != nil {
		return IssuedKey{}, false, err
	}
	defer n.work.Done()
	who, err := n.admission.enterFor(ctx, owner)
	if err != nil {
		return IssuedKey{}, false, err
	}
	defer func() { n.admission.leave(who, err) }()
	c, end, err := n.begin(owner, once, stale)
	if err != nil {
		return IssuedKey{}, false, err
	}
	defer end()
	for range createTries {
		if _, err := n.loadWithClaim(ctx, c); err != nil {
			return IssuedKey{}, c.replayed(), err
		}
		if c.replayed() {
			key, err := n.readAPIKey(ctx, owner, c.earlier.APIKeyID)
			return IssuedKey{Key: key}, err == nil, err
		}
		issued, err := do(func(keyID string) []store.Write {
			c.effect.APIKeyID = keyID
			return c.change(n.Now(), nil).Writes
		})
		if !errors.Is(err, store.ErrClaimTaken) {
			return issued, false, n.explainRing(err)
		}
	}
	return IssuedKey{}, false, licensing.ErrUnavailable
}

var errOtherRing = &licensing.Error{Reason: licensing.ReasonUnavailable, Message: "the master keys of this node are not those of the service; nothing was changed"}

// explainRing turns a ring that is not the store's into a refusal: another node
// may have the right one. What is wrong with it is for the log.
func (n *Node) explainRing(err error) error {
	var wrong *ringError
	if !errors.As(err, &wrong) {
		return err
	}
	n.cfg.Log.Error().Err(err).Msg("no API key can be made or rotated here: give this node the ring of master keys and start it again")
	return errOtherRing
}

func (n *Node) keymaker() Keymaker {
	return Keymaker{Store: n.cfg.Keys, Ring: n.cfg.Ring, Clock: n.cfg.Clock, Entropy: n.cfg.Entropy}
}
