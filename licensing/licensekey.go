package licensing

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"hash"
	"strings"
	"sync"
)

// LicenseKey is a license key in canonical form: PREFIX-GGGGG-GGGGG-GGGGG-GGGGG-GGGGG. The 25
// characters are Crockford base32: 2 are the [Slot] of the license's owner, 19 are random (95 bits), 4
// are check characters. [KeyCheck] creates and parses keys.
type LicenseKey string

// LicenseID is the 25 characters of a license key, packed big-endian into 125 bits, with three zero
// bits at the end. It names the license in the store.
type LicenseID [16]byte

const (
	crockford     = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	keyCharacters = 25
	keyGroup      = 5
	checkAt       = 21 // the check characters follow the slot and 19 random ones
	keyBodyLength = keyCharacters + keyCharacters/keyGroup - 1

	// LicenseKeyEntropy is the number of random bytes for [KeyCheck.Mint]: 19 characters of 5 bits, in whole bytes.
	LicenseKeyEntropy = 12

	// MinKeyPrefix and MaxKeyPrefix bound the length of a product's key prefix.
	MinKeyPrefix = 2
	MaxKeyPrefix = 8
)

// Prefix returns the product's prefix, the part before the first dash.
func (k LicenseKey) Prefix() string {
	prefix, _, _ := strings.Cut(string(k), "-")
	return prefix
}

// ID returns the packed 25 characters. The key must be canonical; it may lack its prefix.
func (k LicenseKey) ID() LicenseID {
	var id LicenseID
	body := k[len(k)-keyBodyLength:]
	at := 0
	for i := range len(body) {
		if body[i] == '-' {
			continue
		}
		value := uint(crockfordValues[body[i]])
		// The five bits end at bit at+5; they touch at most two bytes.
		shifted := value << (11 - at%8)
		id[at/8] |= byte(shifted >> 8)
		if low := byte(shifted); low != 0 {
			id[at/8+1] |= low
		}
		at += 5
	}
	return id
}

// Ref names the license with the id.
func (id LicenseID) Ref() Ref { return LicenseRef(id.Key("")) }

// Slot returns the slot of the license: the first ten bits, which are the first two characters of its key.
func (id LicenseID) Slot() Slot { return leadingSlot(id[0], id[1]) }

// ValidKeyPrefix reports whether a product may use the prefix: 2 to 8 of A-Z 0-9.
func ValidKeyPrefix(prefix string) bool {
	if len(prefix) < MinKeyPrefix || len(prefix) > MaxKeyPrefix {
		return false
	}
	for i := range len(prefix) {
		if c := prefix[i]; (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// KeyCheck creates and parses license keys, and the texts of API keys. It holds the store's check key: the
// four check characters are the first 20 bits of an HMAC-SHA256 of the 21 characters before them, under the
// check key. So the service rejects mistyped and guessed keys without a request to the store. The prefix is
// not covered: a key with another prefix than its license's names no license. KeyCheck is safe for
// concurrent use.
type KeyCheck struct{ macs *sync.Pool } // of *keyMAC

// keyMAC is a reusable HMAC, since creating one costs more than using it. input and sum are its
// buffers: arguments of a hash.Hash escape to the heap.
type keyMAC struct {
	hash.Hash
	input []byte
	sum   []byte
}

// NewKeyCheck returns a KeyCheck for the store's check key, 32 bytes that never change.
func NewKeyCheck(key []byte) KeyCheck {
	return KeyCheck{&sync.Pool{New: func() any {
		return &keyMAC{
			Hash:  hmac.New(sha256.New, key),
			input: make([]byte, 0, apiKeyCheckAt),
			sum:   make([]byte, 0, sha256.Size),
		}
	}}}
}

// Mint returns the key of an owner's new license for the random bytes. prefix must be valid.
func (kc KeyCheck) Mint(prefix string, owner Owner, entropy [LicenseKeyEntropy]byte) LicenseKey {
	var body [keyCharacters]byte
	copy(body[:], SlotOf(owner).String())
	var bits, have uint
	next := 0
	for i := SlotLength; i < checkAt; i++ {
		if have < 5 {
			bits = bits<<8 | uint(entropy[next])
			next++
			have += 8
		}
		have -= 5
		body[i] = crockford[bits>>have&31]
	}
	check := kc.characters(body[:checkAt])
	copy(body[checkAt:], check[:])
	return assemble(prefix, body)
}

// Parse parses a key as people type it: in any case, with spaces around it, and in the 25 characters
// with O for 0 and I or L for 1. It returns the canonical form, or ErrInvalidLicenseKey if the form or
// the check characters are wrong.
func (kc KeyCheck) Parse(input string) (LicenseKey, error) {
	input = strings.TrimSpace(input)
	dash := len(input) - keyBodyLength - 1
	if dash < MinKeyPrefix || dash > MaxKeyPrefix || input[dash] != '-' {
		return "", ErrInvalidLicenseKey
	}
	prefix := upperASCII(input[:dash])
	if !ValidKeyPrefix(prefix) {
		return "", ErrInvalidLicenseKey
	}
	var body [keyCharacters]byte
	n := 0
	for i, c := range []byte(input[dash+1:]) {
		if i%(keyGroup+1) == keyGroup {
			if c != '-' {
				return "", ErrInvalidLicenseKey
			}
			continue
		}
		value := crockfordValue(c)
		if value < 0 {
			return "", ErrInvalidLicenseKey
		}
		body[n] = crockford[value]
		n++
	}
	want := kc.characters(body[:checkAt])
	if subtle.ConstantTimeCompare(want[:], body[checkAt:]) != 1 {
		return "", ErrInvalidLicenseKey
	}
	return assemble(prefix, body), nil
}

func (kc KeyCheck) characters(body []byte) [keyCharacters - checkAt]byte {
	mac := kc.macs.Get().(*keyMAC)
	defer kc.macs.Put(mac)
	mac.input = append(mac.input[:0], body...)
	mac.Reset()
	mac.Write(mac.input)
	sum := mac.Sum(mac.sum[:0])
	bits := uint(sum[0])<<16 | uint(sum[1])<<8 | uint(sum[2])
	var check [keyCharacters - checkAt]byte
	for i := range check {
		check[i] = crockford[bits>>(19-5*i)&31]
	}
	return check
}

func assemble(prefix string, body [keyCharacters]byte) LicenseKey {
	text := make([]byte, 0, MaxKeyPrefix+1+keyBodyLength)
	text = append(text, prefix...)
	for i := 0; i < keyCharacters; i += keyGroup {
		text = append(text, '-')
		text = append(text, body[i:i+keyGroup]...)
	}
	return LicenseKey(text)
}

// crockfordValues holds the value of each character of the canonical form.
var crockfordValues = func() (values [256]byte) {
	for i := range len(crockford) {
		values[crockford[i]] = byte(i)
	}
	return values
}()

// crockfordValue returns the value of a character as Crockford's base32 decoder reads it; -1 if the
// character is invalid. https://www.crockford.com/base32.html
func crockfordValue(c byte) int {
	if 'a' <= c && c <= 'z' {
		c -= 'a' - 'A'
	}
	switch c {
	case 'O':
		return 0
	case 'I', 'L':
		return 1
	}
	return strings.IndexByte(crockford, c)
}

// upperASCII is strings.ToUpper for ASCII only: Unicode folding would turn other letters, such as ı or
// ſ, into letters that a prefix may have.
func upperASCII(s string) string {
	if !strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyz") {
		return s
	}
	upper := []byte(s)
	for i, c := range upper {
		if 'a' <= c && c <= 'z' {
			upper[i] = c - ('a' - 'A')
		}
	}
	return string(upper)
}

// Key returns the license key with an id and a product's prefix. It is the inverse of [LicenseKey.ID].
func (id LicenseID) Key(prefix string) LicenseKey {
	var body [keyCharacters]byte
	for i := range body {
		at := 5 * i
		window := uint(id[at/8]) << 8
		if at/8+1 < len(id) {
			window |= uint(id[at/8+1])
		}
		body[i] = crockford[window>>(11-at%8)&31]
	}
	return assemble(prefix, body)
}
