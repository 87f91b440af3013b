package keyring

import (
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"strconv"

	"licet/licensing"
)

// RootSecret is the secret that the root key and the receipt keys of an owner are derived from. It prints as its name.
type RootSecret struct {
	secret [licensing.RootSecretSize]byte
}

// NewRootSecret returns the root secret with these bytes, which must be random.
func NewRootSecret(secret [licensing.RootSecretSize]byte) RootSecret { return RootSecret{secret} }

// String returns a name instead of the secret.
func (RootSecret) String() string { return "root secret" }

// GoString is String for %#v.
func (s RootSecret) GoString() string { return s.String() }

// RootKey returns the key that signs the set of receipt keys. The derivation must never change, since programs have the
// public half of the key.
func (s RootSecret) RootKey() ed25519.PrivateKey { return s.derive("licet receipt root") }

// ReceiptKey returns a receipt key. The derivation must never change.
func (s RootSecret) ReceiptKey(k licensing.ReceiptKey) ed25519.PrivateKey {
	return s.derive("licet receipt key\x00" + strconv.FormatUint(k.Number, 10))
}

func (s RootSecret) derive(label string) ed25519.PrivateKey {
	seed, err := hkdf.Key(sha256.New, s.secret[:], nil, label, ed25519.SeedSize)
	if err != nil {
		panic(err) // SHA-256 can fill a seed
	}
	return ed25519.NewKeyFromSeed(seed)
}

// SealRoot seals an owner's root secret under the ring's current master key, by AES-256-GCM. The nonce must be random.
func (r MasterRing) SealRoot(
	owner licensing.Owner, secret RootSecret, nonce [licensing.RootNonceSize]byte,
) (licensing.SealedRoot, error) {
	master := r.Current()
	seal, err := master.rootSeal()
	if err != nil {
		return licensing.SealedRoot{}, err
	}
	sealed := seal.Seal(nonce[:], nonce[:], secret.secret[:], rootOwner(owner))
	return licensing.SealedRoot{MasterID: master.ID, Sealed: [licensing.SealedRootSize]byte(sealed)}, nil
}

// OpenRoot opens an owner's sealed root secret. It fails if the ring lacks the master key, or if the secret was sealed
// for another owner.
func (r MasterRing) OpenRoot(owner licensing.Owner, sealed licensing.SealedRoot) (RootSecret, error) {
	master, found := r.Lookup(sealed.MasterID)
	if !found {
		return RootSecret{}, fmt.Errorf("the root key for receipts of %s (%s) is sealed under the master key %q, "+
			"which the master key ring lacks", owner.AccountID, owner.Mode, sealed.MasterID)
	}
	seal, err := master.rootSeal()
	if err != nil {
		return RootSecret{}, err
	}
	nonce, text := sealed.Sealed[:licensing.RootNonceSize], sealed.Sealed[licensing.RootNonceSize:]
	secret, err := seal.Open(nil, nonce, text, rootOwner(owner))
	if err != nil {
		return RootSecret{}, fmt.Errorf("the master key %q does not open the root key for receipts of %s (%s)",
			master.ID, owner.AccountID, owner.Mode)
	}
	return RootSecret{[licensing.RootSecretSize]byte(secret)}, nil
}

func rootOwner(owner licensing.Owner) []byte {
	return []byte(owner.AccountID + "\x00" + string(owner.Mode))
}

// rootSeal derives the key that seals root secrets. As with API secrets, the derivation must never change.
func (k MasterKey) rootSeal() (cipher.AEAD, error) { return k.seal("licet receipt root seal") }
