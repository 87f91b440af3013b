package licensing

import (
	"encoding/base32"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// LicenseID names a license, in the store and to callers. The first two bytes have the [Slot] of the license's owner,
// in their first ten bits; six zero bits follow. The other 16 bytes are an AES-128 block, which keyring.LicenseKeys
// makes of the license's key. So a license needs no index from its id to its key, and the key can't be derived from the
// id without the id key. The text of an id is lic_ and the block in 26 characters, without the slot, which is in the
// block.
type LicenseID [slotSize + LicenseBlockSize]byte

const (
	// LicenseBlockSize is the length of an id without the slot.
	LicenseBlockSize = 16

	// LicenseIDPrefix begins the text of an id. No license key begins with it.
	LicenseIDPrefix = "lic_"

	slotSize = 2
)

// licenseIDText is Crockford's base32 in lower case, as all ids but order numbers have it.
var licenseIDText = base32.NewEncoding(strings.ToLower(Crockford)).WithPadding(base32.NoPadding)

// NewLicenseID returns the id with the block, in the slot.
func NewLicenseID(slot Slot, block [LicenseBlockSize]byte) LicenseID {
	id := LicenseID{byte(slot >> 2), byte(slot << 6)}
	copy(id[slotSize:], block[:])
	return id
}

// Slot returns the slot of the license's owner.
func (id LicenseID) Slot() Slot { return LeadingSlot(id[0], id[1]) }

// Block returns the id without the slot.
func (id LicenseID) Block() [LicenseBlockSize]byte { return [LicenseBlockSize]byte(id[slotSize:]) }

// String returns the id as callers see it: lic_ and 26 characters.
func (id LicenseID) String() string {
	return string(licenseIDText.AppendEncode(append(make([]byte, 0, 64), LicenseIDPrefix...), id[slotSize:]))
}

// Key returns the key of the license with the id, with a product's prefix.
func (id LicenseID) Key(prefix string) LicenseKey { return newLicenseKey(string(id[:]), prefix, "") }

// Ref names the license with the id.
func (id LicenseID) Ref() Ref { return LicenseRef(id.Key("")) }

// IsLicenseID reports whether a text is in the form of an id, of this or of another store.
func IsLicenseID(text string) bool {
	_, ok := ParseLicenseBlock(text)
	return ok
}

// ParseLicenseBlock reads the block of an id's text. It accepts only what String returns.
func ParseLicenseBlock(text string) (block [LicenseBlockSize]byte, ok bool) {
	rest, ok := strings.CutPrefix(text, LicenseIDPrefix)
	if !ok || len(rest) != licenseIDText.EncodedLen(LicenseBlockSize) {
		return block, false
	}
	n, err := licenseIDText.Decode(block[:], []byte(rest))
	return block, err == nil && n == LicenseBlockSize && licenseIDText.EncodeToString(block[:]) == rest
}

// LicenseKey stands for a license key inside of the service: the id of the license, and the prefix of the key. The key
// itself is a secret of the customer, so neither records nor logs contain it: only keyring.LicenseKeys.Text returns it.
// The zero LicenseKey is no key. LicenseKey prints as the license's id.
//
// A license that was reissued has other keys than the key that its id is made of. keyring.LicenseKeys.Parse returns
// such a key as an alias, which [LicenseKey.Of] turns into a key of the license.
type LicenseKey struct {
	// packed is one string, since commands are copied often: the id, the prefix, a dash, and by. Empty: no key.
	packed string
}

// prefixAt is where the prefix begins in a packed key.
const prefixAt = len(LicenseID{})

func newLicenseKey(id, prefix, by string) LicenseKey { return LicenseKey{id + prefix + "-" + by} }

// parts returns the bytes of a LicenseID, or of an alias the bytes of its name, with the prefix and by. All are empty
// if there is no key.
func (k LicenseKey) parts() (id, prefix, by string) {
	id = k.id()
	prefix, by, _ = strings.Cut(k.packed[len(id):], "-")
	return id, prefix, by
}

func (k LicenseKey) id() string { return k.packed[:min(len(k.packed), prefixAt)] }

// Prefix returns the product's prefix, the part of a key before the first dash. It is empty if the license was named by
// its id, or by an external key.
func (k LicenseKey) Prefix() string {
	_, prefix, _ := k.parts()
	return prefix
}

// By returns by what other key than the first key of the license the license was named; see [LicenseKey.WithBy]. It is
// byExternalKey, or the block of a reissued key. It is empty if the license was named by its id, or by the key that the
// id is made of. It is no secret.
func (k LicenseKey) By() string {
	_, _, by := k.parts()
	return by
}

// byExternalKey stands for the external key of a license. A block is longer.
const byExternalKey = "external"

// External returns the license with the id, named by its external key.
func (id LicenseID) External() LicenseKey { return newLicenseKey(string(id[:]), "", byExternalKey) }

// IsAlias reports whether the key is a reissued key whose license is not known yet.
func (k LicenseKey) IsAlias() bool {
	id, _, by := k.parts()
	return by != "" && by == id[slotSize:]
}

// Alias returns the name of the alias of a reissued key.
func (k LicenseKey) Alias() AliasName {
	return AliasName(NewLicenseID(k.ID().Slot(), [LicenseBlockSize]byte([]byte(k.By()))))
}

// Of returns the reissued key as a key of the license with an id.
func (k LicenseKey) Of(id LicenseID) LicenseKey {
	return LicenseKey{string(id[:]) + k.packed[prefixAt:]}
}

// WithBy returns the key that By of another node has returned.
func (k LicenseKey) WithBy(by string) LicenseKey {
	id, prefix, _ := k.parts()
	return newLicenseKey(id, prefix, by)
}

// ID returns the id of the license; zero if there is no key.
func (k LicenseKey) ID() (id LicenseID) {
	copy(id[:], k.packed)
	return id
}

// IsZero reports whether there is no key.
func (k LicenseKey) IsZero() bool { return k.packed == "" }

// Equal reports whether two keys are the same, as == does; cmp.Equal needs the method.
func (k LicenseKey) Equal(other LicenseKey) bool { return k == other }

// String returns the text of the license's id.
func (k LicenseKey) String() string { return k.ID().String() }

// GoString is String for %#v.
func (k LicenseKey) GoString() string { return k.String() }

// Names reports whether k names the license that has the key l: by id, or by the same key.
func (k LicenseKey) Names(l LicenseKey) bool {
	return k == l || k.id() == l.id() && (k.Prefix() == "" || k.Prefix() == l.Prefix())
}

const (
	// Crockford is the alphabet of Crockford's base32, which ids and license keys are written in.
	Crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

	// MinKeyPrefix and MaxKeyPrefix bound the length of a product's key prefix.
	MinKeyPrefix = 2
	MaxKeyPrefix = 8
)

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

// Reissued returns a key as an alias: the reissued key of a license that is not known yet.
func (k LicenseKey) Reissued() LicenseKey { return k.WithBy(k.id()[slotSize:]) }

// PackedKey returns the key whose packed form is the bytes of an id, a prefix and a dash. The key keeps the string.
func PackedKey(packed string) LicenseKey { return LicenseKey{packed} }

// AliasName names a license besides its id, and has the form of an id: the slot of the license's owner, and a block.
// The block is that of a reissued key, or the beginning of an HMAC of an external key, see keyring.LicenseKeys.AliasOf.
type AliasName LicenseID

// Alias leads from an [AliasName] to a license. The transaction that creates the license, or gives it another key,
// creates the alias too. An alias never changes.
type Alias struct {
	License LicenseID
	Owner   Owner // of the license
}

// AliasRef names an alias.
func AliasRef(name AliasName) Ref { return Ref{Kind: KindAlias, ID: string(name[:])} }

// AliasName returns the name of the alias that a Ref names.
func (r Ref) AliasName() AliasName { return AliasName(r.LicenseID()) }

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
