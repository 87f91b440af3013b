package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// Keymaker creates and changes API keys. Every field is required. Ring is used only to create keys and
// secrets, Check only to create keys.
type Keymaker struct {
	Store   store.Keys
	Check   keyring.KeyCheck
	Ring    keyring.MasterRing
	Clock   func() time.Time
	Entropy io.Reader // crypto/rand.Reader in production
}

// NewKey describes an API key to create.
type NewKey struct {
	Owner     licensing.Owner
	Name      string
	Scopes    []string
	ExpiresAt time.Time // zero: never
	// RequireSignature: requests with the key must be signed.
	RequireSignature bool
}

// IssuedKey is an API key with the texts that are shown once and never stored.
type IssuedKey struct {
	Key    licensing.APIKey
	Text   string // the API key text; empty after a rotation, which does not change the text
	Secret string
}

// Create creates an API key. An account exists from its first key on. If the outcome is unknown,
// Create returns the key along with the error, so that the caller can look the key up by its id.
func (m Keymaker) Create(ctx context.Context, wanted NewKey) (IssuedKey, error) {
	return m.create(ctx, wanted, noClaims)
}

// claimsFor returns the claims to store along with a change of the API key with the given id.
type claimsFor func(keyID string) []store.Write

func noClaims(string) []store.Write { return nil }

func (m Keymaker) create(ctx context.Context, wanted NewKey, claims claimsFor) (IssuedKey, error) {
	issued, err := m.newKey(wanted)
	if err != nil {
		return IssuedKey{}, err
	}
	if err := m.useCurrent(ctx); err != nil {
		return IssuedKey{}, err
	}
	return issued, m.Store.CreateAPIKey(ctx, issued.Key, claims(issued.Key.ID)...)
}

// newKey returns a new key that is not stored yet.
func (m Keymaker) newKey(wanted NewKey) (IssuedKey, error) {
	now := m.now()
	key := licensing.APIKey{
		Owner:         wanted.Owner,
		Name:          wanted.Name,
		Scopes:        wanted.Scopes,
		SecretVersion: 1,
		MasterID:      m.Ring.Current().ID,
		CreatedAt:     now,
		ExpiresAt:     wanted.ExpiresAt.UTC().Truncate(time.Millisecond),

		RequireSignature: wanted.RequireSignature,
	}
	if err := key.Validate(now); err != nil {
		return IssuedKey{}, err
	}
	var entropy [keyring.APIKeyEntropy]byte
	if _, err := io.ReadFull(m.Entropy, entropy[:]); err != nil {
		return IssuedKey{}, fmt.Errorf("make an API key: %w", err)
	}
	id, err := NewULID(now, m.Entropy, "an API key")
	if err != nil {
		return IssuedKey{}, err
	}
	key.ID = licensing.NewAPIKeyID(key.Owner, id)
	text := m.Check.MintAPIKey(key.Owner, entropy)
	key.Hash = keyring.HashAPIKey(text)
	secret, err := m.Ring.APISecret(&key)
	return IssuedKey{Key: key, Text: text, Secret: secret}, err
}

// How long the previous secret stays valid after a rotation.
const (
	DefaultOverlap = 24 * time.Hour
	MaxOverlap     = 30 * 24 * time.Hour
)

// Rotate gives a key a new secret, derived from the ring's current master key. The previous secret
// stays valid for overlap.
func (m Keymaker) Rotate(
	ctx context.Context, owner licensing.Owner, id string, overlap time.Duration,
) (IssuedKey, error) {
	return m.rotate(ctx, owner, id, overlap, allowAny, noClaims)
}

// allowAny authorizes every rotation: a caller with access to the store itself may change all keys.
func allowAny(*licensing.APIKey) error { return nil }

func (m Keymaker) rotate(
	ctx context.Context, owner licensing.Owner, id string, overlap time.Duration,
	authorize func(*licensing.APIKey) error, claims claimsFor,
) (IssuedKey, error) {
	if err := m.useCurrent(ctx); err != nil {
		return IssuedKey{}, err
	}
	key, err := m.Store.ChangeAPIKey(ctx, owner, id, func(k *licensing.APIKey) error {
		if err := authorize(k); err != nil {
			return err
		}
		return k.Rotate(m.Ring.Current().ID, m.now(), overlap)
	}, claims(id)...)
	if err != nil {
		return IssuedKey{}, err
	}
	secret, err := m.Ring.APISecret(key)
	return IssuedKey{Key: *key, Secret: secret}, err
}

// Revoke revokes a key permanently: within 2 seconds no node accepts the key. The record of the key
// stays. Revoking a revoked key is a no-op.
func (m Keymaker) Revoke(ctx context.Context, owner licensing.Owner, id string) (*licensing.APIKey, error) {
	return m.Store.ChangeAPIKey(ctx, owner, id, func(k *licensing.APIKey) error {
		k.Revoke(m.now())
		return nil
	})
}

// useCurrent checks that the ring contains the store's master keys, and marks the current one as in use.
// Callers derive no secret before that. An error that is not a licensing.Error becomes a ringError.
func (m Keymaker) useCurrent(ctx context.Context) error {
	err := m.Store.CheckRing(ctx, m.Ring)
	if err == nil {
		err = m.Store.UseMaster(ctx, m.Ring.Current())
	}
	var known *licensing.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &ringError{err}
}

// ringError reports that a ring does not contain the store's master keys.
type ringError struct{ error }

// Unwrap returns the difference between the ring and the store.
func (e *ringError) Unwrap() error { return e.error }

func (m Keymaker) now() time.Time { return m.Clock().UTC().Truncate(time.Millisecond) }
