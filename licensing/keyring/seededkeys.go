package keyring

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"licet/licensing"
)

// OrderKey returns the first key of the order's license with index i. The license may have another key now.
func (k LicenseKeys) OrderKey(o *licensing.Order, i int) licensing.LicenseKey {
	if i == 0 {
		return o.LicenseKey
	}
	return k.SeededKey(o.KeySeed, o.Terms.KeyPrefix, o.Owner, i)
}

// GrantKey returns the key of the license with index i of an owner's grant.
func (k LicenseKeys) GrantKey(g *licensing.GrantProgress, owner licensing.Owner, i int) licensing.LicenseKey {
	return k.SeededKey(g.Seed, g.Terms.KeyPrefix, owner, i)
}

// SeededKey returns the key of an owner's license with index i, of the licenses whose keys derive from a seed.
func (k LicenseKeys) SeededKey(
	seed licensing.KeySeed, prefix string, owner licensing.Owner, i int,
) licensing.LicenseKey {
	return k.Mint(prefix, owner, k.derive(seed, i))
}

// derive returns the random bytes of the key with index i of a grant with the seed. The seed is stored, so it takes the
// id key to derive them.
func (k LicenseKeys) derive(seed [32]byte, i int) [LicenseKeyEntropy]byte {
	mac := hmac.New(sha256.New, k.grants)
	mac.Write(binary.BigEndian.AppendUint64(seed[:], uint64(i)))
	return [LicenseKeyEntropy]byte(mac.Sum(nil))
}
