package licensing

import "time"

// ClaimLifetime is how long the service remembers an Idempotency-Key at least. A claim is in force until
// a sweep removes it: a node whose clock is ahead must not run a request again.
const ClaimLifetime = 24 * time.Hour

// Claim contains a request that came with an Idempotency-Key, and its outcome. Exactly one of OrderNo,
// Grant, LicenseKey, APIKeyID, EndpointID, ProductID, Redaction and Refusal is set. The transaction that makes
// the request's change stores the claim. The claim of a redaction, which can be repeated, is stored
// before and after the redaction.
type Claim struct {
	Fingerprint [32]byte // of the request, made with the Idempotency-Key
	CreatedAt   time.Time

	OrderNo string         // the order that was created or changed
	Number  string         // along with OrderNo: of the refund, or of the change of a subscription, that was requested
	Grant   *GrantProgress // the licenses that were granted, or are being granted
	// LicenseKey is the license that was changed, or needed no change.
	LicenseKey LicenseKey
	APIKeyID   string // the API key that was created, or got a new secret
	EndpointID string // the webhook endpoint that was created, or got a new secret
	ProductID  string // the product whose rollout was begun
	Refusal    *Error // the request was refused permanently
	Redaction  *Redaction
}

// Redaction is the progress of the redaction of a buyer. Repeating the request continues
// until Complete.
type Redaction struct {
	Orders, Licenses int  // the redacted orders, and their licenses and the granted licenses
	Complete         bool // no order and no granted license of the buyer was left
}

// GrantProgress is the progress of a grant of licenses that takes more than one transaction. Repeating
// the request continues from there.
type GrantProgress struct {
	Seed     KeySeed // all keys derive from it and the id key, so they can be derived again
	Terms    Terms
	Quantity int
	Done     int // the licenses 0 to Done-1 are stored
}

// ClaimRef names the claim of an owner's Idempotency-Key, given as its hash.
func ClaimRef(owner Owner, hash string) Ref {
	return Ref{Kind: KindClaim, Owner: owner, ID: hash}
}
