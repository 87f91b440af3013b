package verify

import (
	"encoding/binary"
	"encoding/hex"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// claimChecks checks the claims of Idempotency-Keys.
type claimChecks struct{ *reading }

// claimOf parses the owner and the hash in the key of a claim.
func claimOf(rest string) (licensing.Owner, string, bool) {
	owner, hash, ok := keyspace.CutOwner(rest)
	return owner, hash, ok && len(hash) == keyspace.ClaimHashSize
}

// checkClaim checks the memory of a request with an Idempotency-Key, and that the objects exist that the request
// created.
func (v *claimChecks) checkClaim(e entry) {
	owner, hash, ok := claimOf(e.rest)
	if !ok {
		v.report("claim", "y/"+Opaque(e.rest), "key", "this is not the key of a claim")
		return
	}
	name := "y/" + keyspace.OwnerPath(owner) + hex.EncodeToString([]byte(hash))
	bad := func(rule, format string, args ...any) { v.report("claim", name, rule, format, args...) }
	claim, _, err := layout.DecodeClaim(e.value)
	if err != nil {
		bad("value", "the value can't be read: %v", err)
		return
	}
	checkWriters(e.value, layout.ClaimWriter, bad)
	v.want(keyspace.ClaimAgeKey(claim.CreatedAt, owner, hash), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("age_missing", "the index by age lacks it, so no sweep will remove it")
		}
	})
	v.checkEffect(owner, claim, bad)
}

// checkEffect checks that a claim remembers one effect, and looks up the objects of the effect.
func (v *claimChecks) checkEffect(
	owner licensing.Owner, claim *licensing.Claim, bad func(rule, format string, args ...any),
) {
	effects := 0
	if claim.OrderNo != "" {
		effects++
		v.want(keyspace.OrderKey(owner, claim.OrderNo), func(kv *mvccpb.KeyValue) {
			if kv == nil {
				bad("order_missing", "the order that it remembers does not exist")
			}
		})
	}
	if !claim.LicenseKey.IsZero() {
		effects++
		v.checkChanged(owner, claim.LicenseKey, bad)
	}
	if claim.Refusal != nil {
		effects++
	}
	if claim.APIKeyID != "" {
		effects++
		v.want(keyspace.APIKeyIndexKey(owner, claim.APIKeyID), func(kv *mvccpb.KeyValue) {
			if kv == nil {
				bad("api_key_missing", "the API key that it remembers does not exist")
			}
		})
	}
	if claim.EndpointID != "" { // the endpoint may have been deleted since
		effects++
		if !licensing.ValidEndpointID(claim.EndpointID) {
			bad("endpoint", "the id of the webhook endpoint that it remembers is malformed")
		}
	}
	if claim.ProductID != "" { // the product may have been deleted since
		effects++
	}
	if g := claim.Grant; g != nil {
		effects++
		if g.Done < 0 || g.Done > g.Quantity || g.Quantity > licensing.MaxQuantity ||
			!licensing.ValidKeyPrefix(g.Terms.KeyPrefix) {
			bad("grant", "%d of %d licenses are granted, which can't be", g.Done, g.Quantity)
		} else {
			v.checkGranted(owner, g, bad)
		}
	}
	if r := claim.Redaction; r != nil {
		effects++
		if r.Licenses < 0 || r.Orders < 0 {
			bad("redaction", "%d orders were redacted and %d licenses, which can't be", r.Orders, r.Licenses)
		}
	}
	if effects != 1 {
		bad("effect", "it remembers %d effects of one request", effects)
	}
}

// checkChanged looks up the license that a request has changed.
func (v *claimChecks) checkChanged(
	owner licensing.Owner, key licensing.LicenseKey, bad func(rule, format string, args ...any),
) {
	id := key.ID()
	v.want(keyspace.LicenseKey(id), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("license_missing", "the license %s that it remembers does not exist", id)
			return
		}
		if stored, err := layout.DecodeLicense(id, kv.Value); err == nil &&
			(!key.Names(stored.License.Key) || stored.License.Owner != owner) {
			bad("license_other", "the license %s that it remembers has another key or owner", id)
		}
	})
}

// checkGranted looks up the licenses of a grant. Their keys follow from the grant's seed.
func (v *claimChecks) checkGranted(
	owner licensing.Owner, g *licensing.GrantProgress, bad func(rule, format string, args ...any),
) {
	if v.cfg.Keys == nil {
		return // keys can't be derived
	}
	for i := range g.Done {
		id := v.cfg.Keys.GrantKey(g, owner, i).ID()
		v.want(keyspace.LicenseKey(id), func(kv *mvccpb.KeyValue) {
			if kv == nil {
				bad("license_missing", "its license %s, number %d, does not exist", id, i)
			}
		})
	}
}

// checkClaimAge checks a claim's entry in the index by age. An entry that is older than its claim is left from an
// earlier claim, and the next sweep removes it.
func (v *claimChecks) checkClaimAge(e entry) {
	if len(e.rest) < 8 {
		v.report("claim_age", "z/"+Opaque(e.rest), "key",
			"this is not the key of a claim's entry by age")
		return
	}
	at := int64(binary.BigEndian.Uint64([]byte(e.rest)))
	owner, hash, ok := claimOf(e.rest[8:])
	if !ok {
		v.report("claim_age", "z/"+Opaque(e.rest), "key",
			"this is not the key of a claim's entry by age")
		return
	}
	name := "z/" + time.UnixMilli(at).UTC().Format(time.RFC3339Nano) + "/" + keyspace.OwnerPath(owner) +
		hex.EncodeToString([]byte(hash))
	if len(e.value) > 0 {
		v.report("claim_age", name, "value", "it has a value")
	}
	v.want(keyspace.ClaimKey(owner, hash), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.report("claim_age", name, "claim_missing", "there is no such claim")
			return
		}
		if claim, _, err := layout.DecodeClaim(kv.Value); err == nil && at > claim.CreatedAt.UnixMilli() {
			v.report("claim_age", name, "misplaced", "its claim is older, from %s",
				claim.CreatedAt.Format(time.RFC3339Nano))
		}
	})
}
