package keyring

import (
	"crypto/hmac"
	"crypto/sha256"

	"licet/licensing"
)

// AliasOf returns the name of an owner's external key. text is what [licensing.KeyMatching.Of] returned. Without the id
// key, the name can neither be computed nor be used to guess the key.
func (k LicenseKeys) AliasOf(owner licensing.Owner, text string) licensing.AliasName {
	mac := hmac.New(sha256.New, k.aliases)
	mac.Write([]byte(owner.AccountID + "\x00" + string(owner.Mode) + "\x00" + text))
	block := [licensing.LicenseBlockSize]byte(mac.Sum(nil))
	return licensing.AliasName(licensing.NewLicenseID(licensing.SlotOf(owner), block))
}

// SealExternalKey encrypts the external key of a license by AES-256-GCM. The nonce is an HMAC of the license's id and
// of the key, so the result is always the same, and no nonce seals two texts.
func (k LicenseKeys) SealExternalKey(id licensing.LicenseID, key string) string {
	mac := hmac.New(sha256.New, k.nonces)
	mac.Write(id[:])
	mac.Write([]byte(key))
	nonce := mac.Sum(nil)[:k.seal.NonceSize()]
	return string(k.seal.Seal(nonce, nonce, []byte(key), id[:]))
}

// OpenExternalKey decrypts what SealExternalKey returned. ok is false for anything else.
func (k LicenseKeys) OpenExternalKey(id licensing.LicenseID, sealed string) (key string, ok bool) {
	size := k.seal.NonceSize()
	if len(sealed) < size {
		return "", false
	}
	opened, err := k.seal.Open(nil, []byte(sealed[:size]), []byte(sealed[size:]), id[:])
	return string(opened), err == nil
}
