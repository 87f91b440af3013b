package client

import (
	"context"
	"fmt"
	"time"
)

// Key is what is known of an API key. It has neither its text nor its secret.
type Key struct {
	ID                  string    `json:"id"`
	Name                string    `json:"name"`
	Status              string    `json:"status"`
	Scopes              []string  `json:"scopes"`
	RequireSignature    bool      `json:"require_signature"`
	ExpiresAt           time.Time `json:"expires_at"` // zero: never
	CreatedAt           time.Time `json:"created_at"`
	LastUsedAt          time.Time `json:"last_used_at"`
	RevokedAt           time.Time `json:"revoked_at"`
	PreviousSecretUntil time.Time `json:"previous_secret_until"`
	AccountID           string    `json:"account_id"`
	Mode                string    `json:"mode"`
}

// IssuedKey is an API key with what is shown once.
type IssuedKey struct {
	Key
	APIKey    string `json:"api_key"` // empty after a rotation, which leaves it as it is
	APISecret string `json:"api_secret"`
}

// NewKey says what API key to make. Name and scopes are needed.
type NewKey struct {
	Name             string    `json:"name"`
	Scopes           []string  `json:"scopes"`
	ExpiresAt        time.Time `json:"expires_at,omitzero"` // zero: never
	RequireSignature bool      `json:"require_signature,omitempty"`
}

// CreateKey makes an API key of the same account and mode. What it answers is
// shown this once. If that answer is lost it returns [ErrSecretLost], with a key
// that nobody can use and that is better revoked.
func (c *Client) CreateKey(ctx context.Context, key NewKey, options ...CallOption) (*IssuedKey, error) {
	k := new(IssuedKey)
	if err := c.do(ctx, "POST /v1/keys", nil, nil, key, k, options); err != nil {
		return nil, err
	}
	if k.APIKey == "" {
		return k, fmt.Errorf("the API key %s can't be used, so revoke it and make another: %w", k.ID, ErrSecretLost)
	}
	return k, nil
}

// Key looks an API key up.
func (c *Client) Key(ctx context.Context, id string, options ...CallOption) (*Key, error) {
	return c.key(ctx, "GET /v1/keys/{key_id}", id, options)
}

// RevokeKey ends an API key for good.
func (c *Client) RevokeKey(ctx context.Context, id string, options ...CallOption) (*Key, error) {
	return c.key(ctx, "DELETE /v1/keys/{key_id}", id, options)
}

func (c *Client) key(ctx context.Context, route, id string, options []CallOption) (*Key, error) {
	k := new(Key)
	if err := c.do(ctx, route, []string{id}, nil, nil, k, options); err != nil {
		return nil, err
	}
	return k, nil
}

// Rotation says how long the secret before stays good.
type Rotation struct {
	Overlap *time.Duration // in whole seconds; nil: 24 hours
}

type rotationBody struct {
	Overlap string `json:"overlap,omitempty"`
}

func (r Rotation) body() (in rotationBody) {
	if r.Overlap != nil {
		in.Overlap = fmt.Sprintf("PT%dS", *r.Overlap/time.Second)
	}
	return in
}

// RotateKey gives an API key a new secret, which is shown this once. If that
// answer is lost it returns [ErrSecretLost]: rotate it again.
func (c *Client) RotateKey(ctx context.Context, id string, rotation Rotation, options ...CallOption) (*IssuedKey, error) {
	k := new(IssuedKey)
	if err := c.do(ctx, "POST /v1/keys/{key_id}/rotate", []string{id}, nil, rotation.body(), k, options); err != nil {
		return nil, err
	}
	if k.APISecret == "" {
		return k, fmt.Errorf("the new secret of the API key %s is unknown, so rotate it again: %w", k.ID, ErrSecretLost)
	}
	return k, nil
}

// ListKeys reads one page of API keys, the newest first. Those that are revoked
// or expired are among them.
func (c *Client) ListKeys(ctx context.Context, page Page, options ...CallOption) (*List[Key], error) {
	var listed struct {
		Keys []Key  `json:"keys"`
		Next string `json:"next_cursor"`
	}
	if err := c.do(ctx, "GET /v1/keys", nil, page.query(), nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Key]{listed.Keys, listed.Next}, nil
}
