package licensing

import (
	"crypto/sha256"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Mode separates test data from live data. Everything belongs to one mode of one account and is
// invisible in the other mode.
type Mode string

// The two modes.
const (
	Test Mode = "test"
	Live Mode = "live"
)

// Owner is the account and mode that an object belongs to, or that a caller acts for. As a condition,
// an empty field matches anything.
type Owner struct {
	AccountID string
	Mode      Mode
}

// Matches reports whether an object of owner o satisfies the condition want.
func (o Owner) Matches(want Owner) bool {
	return (want.AccountID == "" || want.AccountID == o.AccountID) &&
		(want.Mode == "" || want.Mode == o.Mode)
}

// APIKey is one API key of an account and mode. It does not contain the key's text: the store keeps only
// the SHA-256 of the text. The secret is derived, never stored.
type APIKey struct {
	ID            string   // public id, key_…; also the keyid of request signatures
	Hash          [32]byte // SHA-256 of the API key text
	Owner         Owner
	Name          string
	Scopes        []string
	SecretVersion int    // of the derived secret, from 1
	MasterID      string // the master key that the secret is derived from
	Previous      PreviousSecret
	CreatedAt     time.Time
	ExpiresAt     time.Time // zero: never
	RevokedAt     time.Time // zero: not revoked
	// RequireSignature: requests with the key must be signed.
	RequireSignature bool
	// LastUsedAt is about when a node last accepted the key, at most some minutes off. It is zero if
	// the key was never used, or if the use was not read: it is stored apart from the other fields.
	LastUsedAt time.Time
}

// APIKeyStatus says whether an API key may be used.
type APIKeyStatus string

// The states of an API key. The last two are permanent.
const (
	APIKeyActive  APIKeyStatus = "active"
	APIKeyExpired APIKeyStatus = "expired"
	APIKeyRevoked APIKeyStatus = "revoked"
)

// PreviousSecret is the secret that a rotation has replaced, and until when it stays valid beside the
// new secret. The zero value is no secret.
type PreviousSecret struct {
	Version  int
	MasterID string
	Until    time.Time
}

// Rotate gives the key a new secret, derived from the named master key. The previous secret stays
// valid until the overlap has passed. At most two secrets are valid: a rotation drops the secret
// before the previous one.
func (k *APIKey) Rotate(masterID string, now time.Time, overlap time.Duration) error {
	if !k.Usable(now) {
		return &Error{
			Reason:  ReasonAPIKeyNotFound,
			Message: "the API key is revoked or expired, so its secret can't be rotated",
		}
	}
	k.Previous = PreviousSecret{}
	if overlap > 0 {
		k.Previous = PreviousSecret{Version: k.SecretVersion, MasterID: k.MasterID, Until: now.Add(overlap)}
	}
	k.SecretVersion++
	k.MasterID = masterID
	return nil
}

// MayRotate returns an error if the key may not rotate the secret of another key. The caller sees the new secret, and
// the API key with its secret is all that signing a request takes. So the key must have all scopes of the other key:
// rotation must not give the caller more rights. And the key must require signatures if the other key does: otherwise
// the texts of the two API keys, as a log may contain them, would suffice to sign with the other key. Revoking a key
// requires less, since the caller gains nothing.
func (k *APIKey) MayRotate(other *APIKey) error {
	if other.RequireSignature && !k.RequireSignature {
		return &Error{
			Reason: ReasonForbidden,
			Message: "the rotated key has require_signature: only an API key with require_signature, or `licet store " +
				"keys rotate`, can rotate its secret",
		}
	}
	beyond := k.Beyond(other.Scopes)
	if len(beyond) == 0 {
		return nil
	}
	return &Error{
		Reason: ReasonForbidden,
		Message: "only an API key with all scopes of the rotated key may rotate its secret; your API key lacks " +
			strings.Join(beyond, ", "),
	}
}

// Revoke revokes the key permanently. Revoking a revoked key is a no-op.
func (k *APIKey) Revoke(now time.Time) {
	if k.RevokedAt.IsZero() {
		k.RevokedAt = now
	}
}

// Usable reports whether the key may be used at now.
func (k *APIKey) Usable(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// Status returns the state of the key at now.
func (k *APIKey) Status(now time.Time) APIKeyStatus {
	switch {
	case !k.RevokedAt.IsZero():
		return APIKeyRevoked
	case !k.Usable(now):
		return APIKeyExpired
	default:
		return APIKeyActive
	}
}

// Allows reports whether the key has a scope, such as "orders" or "orders:read". A scope includes its
// own :read form, and "*" includes all.
func (k *APIKey) Allows(scope string) bool {
	return slices.ContainsFunc(k.Scopes, func(have string) bool {
		return have == "*" || have == scope || have == strings.TrimSuffix(scope, readOnlySuffix)
	})
}

// Beyond returns the scopes that the key does not have itself, and so can't give to another key.
func (k *APIKey) Beyond(scopes []string) []string {
	var beyond []string
	for _, scope := range scopes {
		if !k.Allows(scope) && !slices.Contains(beyond, scope) {
			beyond = append(beyond, scope)
		}
	}
	return beyond
}

const (
	accountPrefix  = "acct_"
	maxAccountID   = 64
	apiKeyIDPrefix = "key_"
	maxAPIKeyID    = 64
	maxAPIKeyName  = 255
	maxScopes      = 32
	readOnlySuffix = ":read"
)

// NewAPIKeyID returns the public id of an owner's new API key: key_, the owner's slot and a ULID, in lower case.
func NewAPIKeyID(owner Owner, ulid string) string {
	return apiKeyIDPrefix + strings.ToLower(SlotOf(owner).String()+ulid)
}

// ValidAPIKeyID reports whether a text can be the public id of an API key: key_ followed by a-z 0-9 _,
// up to 64 characters in all.
func ValidAPIKeyID(id string) bool {
	rest, found := strings.CutPrefix(id, apiKeyIDPrefix)
	return found && rest != "" && len(id) <= maxAPIKeyID &&
		strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// ValidAccountID reports whether a text can be the id of an account: acct_ followed by a-z 0-9 _, up
// to 64 characters in all.
func ValidAccountID(id string) bool {
	rest, found := strings.CutPrefix(id, accountPrefix)
	return found && rest != "" && len(id) <= maxAccountID &&
		strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// Scopes returns the scopes that exist also in a form that ends in :read.
func Scopes() []string {
	return []string{"orders", "licenses", "products", "webhooks", "events", "keys", "account"}
}

// MoneyScopes returns the scopes to record payments, to refund them, and to change subscriptions. They stand outside
// "orders": with the API key of a storefront, an attacker can't get licenses or money back, or charge a buyer.
func MoneyScopes() []string {
	return []string{"orders:payments", "orders:refunds", "orders:subscriptions"}
}

// ScopeForms returns all scopes that an API key can have, apart from "*", which includes all: those of Scopes, each
// followed by its form that ends in :read, and MoneyScopes.
func ScopeForms() (all []string) {
	for _, scope := range Scopes() {
		all = append(all, scope, scope+readOnlySuffix)
	}
	return append(all, MoneyScopes()...)
}

// ScopesInWords lists the scopes for people.
func ScopesInWords() string {
	return strings.Join(Scopes(), ", ") + ", each also with the suffix :read, " + strings.Join(MoneyScopes(), ", ") +
		", or *"
}

// ValidScope reports whether a scope exists.
func ValidScope(scope string) bool { return scope == "*" || slices.Contains(ScopeForms(), scope) }

// ValidScopes reports whether an API key can have these scopes: 1 to 32 existing ones.
func ValidScopes(scopes []string) bool {
	return len(scopes) > 0 && len(scopes) <= maxScopes &&
		!slices.ContainsFunc(scopes, func(s string) bool { return !ValidScope(s) })
}

// Validate checks the fields that the creator of a key may choose, and returns an error with every
// invalid field.
func (k *APIKey) Validate(now time.Time) error {
	var problems []FieldProblem
	bad := func(field, problem string) { problems = append(problems, FieldProblem{Field: field, Problem: problem}) }
	if !ValidAccountID(k.Owner.AccountID) {
		bad("account", "must be acct_ followed by a-z, 0-9 or _, at most 64 characters in all")
	}
	if k.Owner.Mode != Test && k.Owner.Mode != Live {
		bad("mode", "must be test or live")
	}
	if !ValidAPIKeyName(k.Name) {
		bad("name", "must be 1 to 255 characters without control characters")
	}
	if !ValidScopes(k.Scopes) {
		bad("scopes", "must be some of "+ScopesInWords())
	}
	if !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(now) {
		bad("expires_at", "must be in the future")
	}
	if problems == nil {
		return nil
	}
	return InvalidFields("the API key", problems)
}

// ValidAPIKeyName reports whether a text can be the name of an API key: 1 to 255 characters without
// control characters.
func ValidAPIKeyName(name string) bool {
	return utf8.ValidString(name) && name != "" && utf8.RuneCountInString(name) <= maxAPIKeyName &&
		!strings.ContainsFunc(name, unicode.IsControl)
}

// Slot is one of the 1,024 parts that all data is divided into. All records of an account and mode are in one slot, so
// a transaction needs one slot only, and a slot can move to another store cluster. The ids of records contain their
// slot, so that finding the cluster of an id needs no look-up.
type Slot uint16

// Slots is the number of slots.
const Slots = 1 << 10

// SlotLength is the length of a slot in an id: two Crockford characters.
const SlotLength = 2

// SlotOf returns the slot of an account and mode: the first ten bits of a SHA-256. Ids contain the slot, so SlotOf must
// never change.
func SlotOf(owner Owner) Slot {
	// Neither part can contain a zero byte, so no two owners share an input.
	input := make([]byte, 0, 96)
	input = append(input, "licet slot\x00"...)
	input = append(input, owner.AccountID...)
	input = append(input, 0)
	input = append(input, owner.Mode...)
	sum := sha256.Sum256(input)
	return LeadingSlot(sum[0], sum[1])
}

// leadingSlot returns the first ten bits of two bytes.
func LeadingSlot(first, second byte) Slot { return Slot(first)<<2 | Slot(second>>6) }

// String returns the slot as ids contain it: two Crockford characters, 00 to ZZ, which sort as the slots do.
func (s Slot) String() string { return string([]byte{Crockford[s>>5&31], Crockford[s&31]}) }

// In reports whether an id contains the slot; see [SlotIn].
func (s Slot) In(id string) bool {
	slot, ok := SlotIn(id)
	return ok && slot == s
}

// SlotIn returns the slot that an id contains after its first underscore: an order number, or the id of an endpoint, an
// API key or an event. Ids in lower case contain the slot in lower case.
func SlotIn(id string) (slot Slot, ok bool) {
	_, rest, _ := strings.Cut(id, "_")
	if len(rest) < SlotLength {
		return 0, false
	}
	return ParseSlot(strings.ToUpper(rest[:SlotLength]))
}

// ParseSlot parses the two characters of [Slot.String].
func ParseSlot(text string) (slot Slot, ok bool) {
	if len(text) != SlotLength {
		return 0, false
	}
	high, low := strings.IndexByte(Crockford, text[0]), strings.IndexByte(Crockford, text[1])
	return Slot(high<<5 | low), high >= 0 && low >= 0
}
