package licet

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
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
	ID     string   // public id, key_…; also the keyid of request signatures
	Hash   [32]byte // SHA-256 of the API key text
	Owner  Owner
	Name   string
	Scopes []string
	// RequireSignature refuses requests with this key that are not signed with
	// its secret.
	RequireSignature bool
	SecretVersion    int    // of the secret derived for it, from 1
	MasterID         string // the master key that the secret is derived from
	Previous         PreviousSecret
	CreatedAt        time.Time
	ExpiresAt        time.Time // zero: never
	RevokedAt        time.Time // zero: not revoked
}

// PreviousSecret is the secret that a rotation has replaced, and how long it
// stays good beside the new one. The zero value stands for none.
type PreviousSecret struct {
	Version  int
	MasterID string
	Until    time.Time
}

// Rotate gives the key a new secret, derived from the named master key. The
// one before stays good until the overlap has passed; one that an earlier
// rotation left is dropped, so that there are never more than two.
func (k *APIKey) Rotate(masterID string, now time.Time, overlap time.Duration) error {
	if !k.Usable(now) {
		return &Error{Reason: ReasonAPIKeyNotFound, Message: "the API key is revoked or expired, so its secret can't be rotated"}
	}
	k.Previous = PreviousSecret{}
	if overlap > 0 {
		k.Previous = PreviousSecret{Version: k.SecretVersion, MasterID: k.MasterID, Until: now.Add(overlap)}
	}
	k.SecretVersion++
	k.MasterID = masterID
	return nil
}

// Revoke ends the key for good. Revoking it again changes nothing.
func (k *APIKey) Revoke(now time.Time) {
	if k.RevokedAt.IsZero() {
		k.RevokedAt = now
	}
}

// Usable reports whether the key may be used at now.
func (k *APIKey) Usable(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// Allows reports whether the key has a scope, such as "orders" or
// "orders:read". A scope includes its own :read form, and "*" includes all.
func (k *APIKey) Allows(scope string) bool {
	return slices.ContainsFunc(k.Scopes, func(have string) bool {
		return have == "*" || have == scope || have == strings.TrimSuffix(scope, readOnlySuffix)
	})
}

const (
	accountPrefix  = "acct_"
	maxAccountID   = 64
	maxAPIKeyName  = 255
	maxScopes      = 32
	readOnlySuffix = ":read"
)

// ValidAccountID reports whether a text can be the id of an account: acct_ and
// more of a-z 0-9 _, up to 64 characters in all.
func ValidAccountID(id string) bool {
	rest, found := strings.CutPrefix(id, accountPrefix)
	return found && rest != "" && len(id) <= maxAccountID &&
		strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// Scopes lists what an API key can be allowed, apart from "*", which is all of
// it. Each also exists in a form that ends in :read.
func Scopes() []string {
	return []string{"orders", "licenses", "products", "webhooks", "events", "keys"}
}

// ValidScope reports whether there is such a scope.
func ValidScope(scope string) bool {
	return scope == "*" || slices.Contains(Scopes(), strings.TrimSuffix(scope, readOnlySuffix))
}

// Validate checks what somebody who makes a key may choose, and names every
// bad member.
func (k *APIKey) Validate(now time.Time) error {
	var problems []FieldProblem
	bad := func(field, problem string) { problems = append(problems, FieldProblem{Field: field, Problem: problem}) }
	if !ValidAccountID(k.Owner.AccountID) {
		bad("account", "must be acct_ and more of a-z 0-9 _, up to 64 characters in all")
	}
	if k.Owner.Mode != Test && k.Owner.Mode != Live {
		bad("mode", "must be test or live")
	}
	if !validAPIKeyName(k.Name) {
		bad("name", "must be 1 to 255 characters without control characters")
	}
	switch i := slices.IndexFunc(k.Scopes, func(s string) bool { return !ValidScope(s) }); {
	case len(k.Scopes) == 0 || len(k.Scopes) > maxScopes || i >= 0:
		bad("scopes", "must be some of "+strings.Join(Scopes(), ", ")+", each also with :read behind it, or *")
	}
	if !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(now) {
		bad("expires_at", "must be in the future")
	}
	if problems == nil {
		return nil
	}
	return &Error{Reason: ReasonInvalidField, Message: "the API key has invalid members", Fields: problems}
}

func validAPIKeyName(name string) bool {
	return utf8.ValidString(name) && name != "" && utf8.RuneCountInString(name) <= maxAPIKeyName &&
		!strings.ContainsFunc(name, unicode.IsControl)
}
