package licensing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// ClaimLifetime is how long an Idempotency-Key is remembered.
const ClaimLifetime = 24 * time.Hour

// Claim is what is remembered of a request that came with an Idempotency-Key:
// which request it was, and what became of it. Exactly one of OrderNo, Grant,
// LicenseKey, APIKeyID, EndpointID, Redaction and Refusal is set. It is stored in the transaction
// that has the effect; of a redaction, which may be made again, before and after.
type Claim struct {
	Fingerprint [32]byte // of the request, made with the Idempotency-Key
	CreatedAt   time.Time

	OrderNo string         // the order that was made, or changed
	Grant   *GrantProgress // the licenses that were granted, or are being
	// LicenseKey is of the license that was changed, or found as it should be.
	LicenseKey LicenseKey
	APIKeyID   string // the API key that was made, or got a new secret
	EndpointID string // the endpoint of webhooks that was made, or got a new secret
	Refusal    *Error // the request was refused, for good
	Redaction  *Redaction
}

// Redaction tells how far the redaction of a buyer's orders has come. Whoever sends
// the same request again goes on, until it is complete.
type Redaction struct {
	Orders, Licenses int  // the orders that were redacted, and how many licenses they have
	Complete         bool // no order of the buyer was left
}

// Live reports whether the claim still holds at now.
func (c *Claim) Live(now time.Time) bool { return now.Sub(c.CreatedAt) < ClaimLifetime }

// GrantProgress tells how far a grant of licenses has come that is more than
// one transaction. Whoever sends the same request again goes on from there.
type GrantProgress struct {
	Seed     [32]byte // all keys follow from it, so that they can be found again
	Terms    Terms
	Quantity int
	Done     int // the licenses 0 to Done-1 are stored
}

// Key gives the key of the grant's license number i.
func (g *GrantProgress) Key(check KeyCheck, cell byte, i int) LicenseKey {
	mac := hmac.New(sha256.New, g.Seed[:])
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(i))
	mac.Write(number[:])
	return check.Mint(g.Terms.KeyPrefix, cell, [LicenseKeyEntropy]byte(mac.Sum(nil)[:LicenseKeyEntropy]))
}

// ClaimRef names the claim of an owner's Idempotency-Key, given as its hash.
func ClaimRef(owner Owner, hash string) Ref {
	return Ref{Kind: KindClaim, Owner: owner, ID: hash}
}
