package licet

import (
	"slices"
	"strings"
	"time"
)

// Mode separates play money from real money. Everything belongs to one mode
// of one account, and nothing is visible from the other.
type Mode string

// The two modes.
const (
	Test Mode = "test"
	Live Mode = "live"
)

// Owner is the account and mode that a thing belongs to, or that a caller
// acts for. As a condition, an empty member matches anything.
type Owner struct {
	AccountID string
	Mode      Mode
}

// Matches reports whether a thing of owner o satisfies the condition want.
func (o Owner) Matches(want Owner) bool {
	return (want.AccountID == "" || want.AccountID == o.AccountID) &&
		(want.Mode == "" || want.Mode == o.Mode)
}

// APIKey is one key pair of an account and mode. The key itself is not in it:
// the store keeps only its SHA-256; the secret is derived, never stored.
type APIKey struct {
	ID            string   // public id, key_…; also the keyid of request signatures
	Hash          [32]byte // SHA-256 of the API key text
	Owner         Owner
	Name          string
	Scopes        []string
	SecretVersion int    // of the secret derived for it, from 1
	MasterID      string // the master key that the secret is derived from
	CreatedAt     time.Time
	ExpiresAt     time.Time // zero: never
	RevokedAt     time.Time // zero: not revoked
}

// Usable reports whether the key may be used at now.
func (k *APIKey) Usable(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// Allows reports whether the key has a scope, such as "orders" or
// "orders:read". A scope includes its own :read form, and "*" includes all.
func (k *APIKey) Allows(scope string) bool {
	return slices.ContainsFunc(k.Scopes, func(have string) bool {
		return have == "*" || have == scope || have == strings.TrimSuffix(scope, ":read")
	})
}
