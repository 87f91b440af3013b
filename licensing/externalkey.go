package licensing

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxExternalKey is the greatest length of an external key, in Unicode code points.
const MaxExternalKey = 1024

// ParseExternalKey parses a key that another service has issued: 1 to MaxExternalKey printable characters, in
// Unicode's Normalization Form C. It converts the text to that form, and removes spaces around the text. problem says
// what is wrong with the text; empty if nothing is.
func ParseExternalKey(text string) (key, problem string) {
	if !utf8.ValidString(text) {
		return "", "must be UTF-8"
	}
	if len(text) > utf8.UTFMax*MaxExternalKey { // before the conversion, which takes time
		return "", problemExternalKey()
	}
	key = strings.TrimSpace(norm.NFC.String(text))
	switch n := utf8.RuneCountInString(key); {
	case n == 0, n > MaxExternalKey:
		return "", problemExternalKey()
	case strings.ContainsFunc(key, func(c rune) bool { return !unicode.IsPrint(c) }):
		return "", "must contain printable characters only"
	}
	return key, ""
}

func problemExternalKey() string { return fmt.Sprintf("must have 1 to %d characters", MaxExternalKey) }

// KeyMatching says when two texts are the same external key.
type KeyMatching string

// The ways to match external keys.
const (
	// MatchExact tells all texts apart. It is the default.
	MatchExact KeyMatching = "exact"
	// MatchCompact ignores case, blanks and dashes.
	MatchCompact KeyMatching = "compact"
)

// Of returns the text by which an external key is found; empty if nothing of the key remains.
func (m KeyMatching) Of(key string) string {
	if m != MatchCompact {
		return key
	}
	compact := strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || unicode.Is(unicode.Pd, c) {
			return -1
		}
		return c
	}, strings.ToUpper(key))
	return norm.NFC.String(compact)
}

// AliasOf returns the name of an owner's external key. text is what [KeyMatching.Of] returned. Without the id key,
// the name can neither be computed nor be used to guess the key.
func (k LicenseKeys) AliasOf(owner Owner, text string) AliasName {
	mac := hmac.New(sha256.New, k.aliases)
	mac.Write([]byte(owner.AccountID + "\x00" + string(owner.Mode) + "\x00" + text))
	return AliasName(NewLicenseID(SlotOf(owner), [LicenseBlockSize]byte(mac.Sum(nil))))
}

// SealExternalKey encrypts the external key of a license by AES-256-GCM. The nonce is an HMAC of the license's id and
// of the key, so the result is always the same, and no nonce seals two texts.
func (k LicenseKeys) SealExternalKey(id LicenseID, key string) string {
	mac := hmac.New(sha256.New, k.nonces)
	mac.Write(id[:])
	mac.Write([]byte(key))
	nonce := mac.Sum(nil)[:k.seal.NonceSize()]
	return string(k.seal.Seal(nonce, nonce, []byte(key), id[:]))
}

// OpenExternalKey decrypts what SealExternalKey returned. ok is false for anything else.
func (k LicenseKeys) OpenExternalKey(id LicenseID, sealed string) (key string, ok bool) {
	size := k.seal.NonceSize()
	if len(sealed) < size {
		return "", false
	}
	opened, err := k.seal.Open(nil, []byte(sealed[:size]), []byte(sealed[size:]), id[:])
	return string(opened), err == nil
}
