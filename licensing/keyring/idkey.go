package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// IDKeySize is the length of an id key in bytes: a key of AES-128.
const IDKeySize = 16

// IDKey is the secret under which license ids are made from license keys. It is made once, for all cells, and never
// changes. A store has it only sealed. It prints as its name.
type IDKey struct{ key [IDKeySize]byte }

// NewIDKey returns the id key with these bytes, which must be random.
func NewIDKey(key [IDKeySize]byte) IDKey { return IDKey{key} }

// String returns a name instead of the key, so that a log or a print by mistake does not reveal the key.
func (IDKey) String() string { return "id key" }

// GoString is String for %#v.
func (k IDKey) GoString() string { return k.String() }

// IDKeyNonceSize is how many random bytes sealing an id key takes.
const IDKeyNonceSize = 12

// SealedIDKeySize is the length of a sealed id key: the nonce, the key, and the tag of AES-GCM.
const SealedIDKeySize = IDKeyNonceSize + IDKeySize + 16

// ErrIDKeySeal means that the sealed id key was changed, or was sealed under another master key of the same id.
var ErrIDKeySeal = errors.New("the master key does not open the id key of the store")

// SealIDKey encrypts an id key under the master key, by AES-256-GCM. The nonce must be random.
func (k MasterKey) SealIDKey(id IDKey, nonce [IDKeyNonceSize]byte) ([]byte, error) {
	seal, err := k.idKeySeal()
	if err != nil {
		return nil, err
	}
	return seal.Seal(nonce[:], nonce[:], id.key[:], nil), nil
}

// OpenIDKey decrypts what [MasterKey.SealIDKey] returned, or fails with ErrIDKeySeal.
func (k MasterKey) OpenIDKey(sealed []byte) (IDKey, error) {
	if len(sealed) != SealedIDKeySize {
		return IDKey{}, ErrIDKeySeal
	}
	seal, err := k.idKeySeal()
	if err != nil {
		return IDKey{}, err
	}
	key, err := seal.Open(nil, sealed[:IDKeyNonceSize], sealed[IDKeyNonceSize:], nil)
	if err != nil {
		return IDKey{}, ErrIDKeySeal
	}
	return IDKey{[IDKeySize]byte(key)}, nil
}

// idKeySeal derives the key that seals the id key. As with API secrets, the derivation must never change.
func (k MasterKey) idKeySeal() (cipher.AEAD, error) { return k.seal("licet id key") }

// seal derives a key that seals secrets of one kind.
func (k MasterKey) seal(kind string) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, k.key[:], nil, kind+"\x00"+k.ID, 32)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	return newGCM(derived)
}

// newGCM returns AES-GCM under a key.
func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("use a key: %w", err)
	}
	return cipher.NewGCM(block)
}
