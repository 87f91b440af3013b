package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// Keymaker makes API keys and changes them. Every field is needed, the ring
// only to make keys and secrets.
type Keymaker struct {
	Store   store.Keys
	Ring    licensing.MasterRing
	Clock   func() time.Time
	Entropy io.Reader // crypto/rand.Reader in production
}

// NewKey says what API key to make.
type NewKey struct {
	Owner     licensing.Owner
	Name      string
	Scopes    []string
	ExpiresAt time.Time // zero: never
	// RequireSignature: requests with it must be signed.
	RequireSignature bool
}

// IssuedKey is an API key with what is shown once and kept nowhere.
type IssuedKey struct {
	Key    licensing.APIKey
	Text   string // the API key itself; empty after a rotation, which leaves it as it is
	Secret string
}

// Create makes an API key. Its account needs no making: it exists from its
// first key on. Where the outcome is unknown the key is answered too, since its
// id tells what to look for.
func (m Keymaker) Create(ctx context.Context, wanted NewKey) (IssuedKey, error) {
	return m.create(ctx, wanted, noClaims)
}

// claimsOf gives the claims that go with a change of the API key of an id.
type claimsOf func(keyID string) []store.Write

func noClaims(string) []store.Write { return nil }

func (m Keymaker) create(ctx context.Context, wanted NewKey, claims claimsOf) (IssuedKey, error) {
	issued, err := m.draw(wanted)
	if err != nil {
		return IssuedKey{}, err
	}
	if err := m.useCurrent(ctx); err != nil {
		return IssuedKey{}, err
	}
	return issued, m.Store.CreateAPIKey(ctx, issued.Key, claims(issued.Key.ID)...)
}

// draw makes a key that is not stored yet.
func (m Keymaker) draw(wanted NewKey) (IssuedKey, error) {
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
	var entropy [licensing.APIKeyEntropy]byte
	if _, err := io.ReadFull(m.Entropy, entropy[:]); err != nil {
		return IssuedKey{}, fmt.Errorf("make an API key: %w", err)
	}
	id, err := newULID(now, m.Entropy, "an API key")
	if err != nil {
		return IssuedKey{}, err
	}
	key.ID = "key_" + strings.ToLower(id)
	text := licensing.NewAPIKeyText(key.Owner.Mode, entropy)
	key.Hash = licensing.HashAPIKey(text)
	secret, err := m.Ring.APISecret(&key)
	return IssuedKey{Key: key, Text: text, Secret: secret}, err
}

// How long the secret before stays good after a rotation: if nothing is said,
// and at the most.
const (
	DefaultOverlap = 24 * time.Hour
	MaxOverlap     = 30 * 24 * time.Hour
)

// Rotate gives a key a new secret, derived from the ring's current master key.
// The secret before stays good for as long as overlap says.
func (m Keymaker) Rotate(ctx context.Context, owner licensing.Owner, id string, overlap time.Duration) (IssuedKey, error) {
	return m.rotate(ctx, owner, id, overlap, anybody, noClaims)
}

// anybody may rotate any key: whoever has the store itself has all keys.
func anybody(*licensing.APIKey) error { return nil }

func (m Keymaker) rotate(ctx context.Context, owner licensing.Owner, id string, overlap time.Duration, may func(*licensing.APIKey) error, claims claimsOf) (IssuedKey, error) {
	if err := m.useCurrent(ctx); err != nil {
		return IssuedKey{}, err
	}
	key, err := m.Store.ChangeAPIKey(ctx, owner, id, func(k *licensing.APIKey) error {
		if err := may(k); err != nil {
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

// Revoke ends a key for good: within 2 seconds no node takes it any more. Its
// record stays. Revoking it again changes nothing.
func (m Keymaker) Revoke(ctx context.Context, owner licensing.Owner, id string) (*licensing.APIKey, error) {
	return m.Store.ChangeAPIKey(ctx, owner, id, func(k *licensing.APIKey) error {
		k.Revoke(m.now())
		return nil
	})
}

// useCurrent makes sure that the ring is the store's before anything is
// derived from it.
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

// ringError tells that a ring is not the store's.
type ringError struct{ error }

// Unwrap gives what is wrong with the ring.
func (e *ringError) Unwrap() error { return e.error }

func (m Keymaker) now() time.Time { return m.Clock().UTC().Truncate(time.Millisecond) }
