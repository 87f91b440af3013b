package client

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// APIKeyService creates and manages API keys.
type APIKeyService struct{ client *Client }

// Key describes an API key, without its text and its secret.
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

// IssuedKey is an API key with the parts that the service shows once.
type IssuedKey struct {
	Key
	APIKey    string `json:"api_key"` // empty after a rotation, which does not change it
	APISecret string `json:"api_secret"`
}

// NewKey describes an API key to create. Name and Scopes are required.
type NewKey struct {
	Name             string    `json:"name"`
	Scopes           []string  `json:"scopes"`
	ExpiresAt        time.Time `json:"expires_at,omitzero"` // zero: never
	RequireSignature bool      `json:"require_signature,omitempty"`
}

// Create creates an API key of the same account and mode. The service shows the key and its secret once. If that
// response is lost, Create returns [ErrSecretLost] and the description of the key: revoke that key, which no
// program can use.
func (s *APIKeyService) Create(ctx context.Context, key NewKey, options ...CallOption) (*IssuedKey, error) {
	k := new(IssuedKey)
	if err := s.client.do(ctx, "POST /v1/keys", nil, nil, key, k, options); err != nil {
		return nil, err
	}
	if k.APIKey == "" {
		return k, fmt.Errorf("the API key %s can't be used: revoke it and create another: %w", k.ID, ErrSecretLost)
	}
	return k, nil
}

// Get returns an API key by its id.
func (s *APIKeyService) Get(ctx context.Context, id string, options ...CallOption) (*Key, error) {
	return s.key(ctx, "GET /v1/keys/{key_id}", id, options)
}

// Revoke revokes an API key. A revocation can't be undone.
func (s *APIKeyService) Revoke(ctx context.Context, id string, options ...CallOption) (*Key, error) {
	return s.key(ctx, "DELETE /v1/keys/{key_id}", id, options)
}

func (s *APIKeyService) key(ctx context.Context, route, id string, options []CallOption) (*Key, error) {
	k := new(Key)
	if err := s.client.do(ctx, route, []string{id}, nil, nil, k, options); err != nil {
		return nil, err
	}
	return k, nil
}

// Rotation configures the replacement of a secret.
type Rotation struct {
	Overlap *time.Duration // how long the old secret stays valid, in whole seconds; nil: 24 hours
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

// Rotate replaces the secret of an API key. The service shows the new secret once. If that response is lost,
// Rotate returns [ErrSecretLost]: rotate the key again.
func (s *APIKeyService) Rotate(
	ctx context.Context, id string, rotation Rotation, options ...CallOption,
) (*IssuedKey, error) {
	k := new(IssuedKey)
	const route = "POST /v1/keys/{key_id}/rotate"
	if err := s.client.do(ctx, route, []string{id}, nil, rotation.body(), k, options); err != nil {
		return nil, err
	}
	if k.APISecret == "" {
		return k, fmt.Errorf("the new secret of the API key %s is unknown: rotate the API key again: %w", k.ID,
			ErrSecretLost)
	}
	return k, nil
}

// List reads a page of API keys, the newest first, including revoked and expired keys.
func (s *APIKeyService) List(ctx context.Context, page Page, options ...CallOption) (*List[Key], error) {
	var listed struct {
		Keys []Key  `json:"keys"`
		Next string `json:"next_cursor"`
	}
	if err := s.client.do(ctx, "GET /v1/keys", nil, page.query(), nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Key]{listed.Keys, listed.Next}, nil
}

// All yields all API keys of the account and mode, the newest first.
func (s *APIKeyService) All(ctx context.Context) iter.Seq2[Key, error] {
	return allPages(listPage, func(page Page) (*List[Key], error) { return s.List(ctx, page) })
}
