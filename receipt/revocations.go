package receipt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"sort"
)

// Revocations is a list of receipts that are void before their end.
type Revocations struct {
	Issuer    string `json:"iss"`
	AccountID string `json:"account_id"`
	Mode      string `json:"mode"`
	AsOf      int64  `json:"as_of"` // Unix seconds: the list contains all that the service revoked before
	// Epoch is the position of the list. A request with it in after returns what came later.
	Epoch int64 `json:"epoch"`
	// After is the position that an increment continues; 0: the list is whole.
	After int64 `json:"after"`
	// Entries are 24 bytes each, in ascending order: the name of a license, or of a license and a device (see
	// [RevocationName]), and the highest revision that the entry voids, big-endian. In JSON: base64url.
	Entries Entries `json:"entries"`
}

// Entries are the entries of a list, as bytes.
type Entries []byte

const (
	nameSize  = 16
	entrySize = nameSize + 8
)

// RevocationName returns the name of a license in a list of revocations, or of a device of the license.
func RevocationName(licenseID, deviceID string) [nameSize]byte {
	text := "licet revocation\x00" + licenseID
	if deviceID != "" {
		text += "\x00" + deviceID
	}
	sum := sha256.Sum256([]byte(text))
	return [nameSize]byte(sum[:nameSize])
}

// Append adds an entry. Entries must come in ascending order of their names.
func (e Entries) Append(name [nameSize]byte, revision int64) Entries {
	return binary.BigEndian.AppendUint64(append(e, name[:]...), uint64(revision))
}

// voids returns the highest revision that the entries void for a name; 0: none.
func (e Entries) voids(name [nameSize]byte) uint64 {
	n := len(e) / entrySize
	i := sort.Search(n, func(i int) bool { return bytes.Compare(e[i*entrySize:][:nameSize], name[:]) >= 0 })
	if i == n || !bytes.Equal(e[i*entrySize:][:nameSize], name[:]) {
		return 0
	}
	return binary.BigEndian.Uint64(e[i*entrySize+nameSize:])
}

// MarshalText returns the entries as base64url.
func (e Entries) MarshalText() ([]byte, error) { return []byte(encoding.EncodeToString(e)), nil }

// UnmarshalText reads base64url, and refuses entries that are not in order.
func (e *Entries) UnmarshalText(text []byte) error {
	raw, err := unbase64(string(text))
	if err != nil || len(raw)%entrySize != 0 {
		return refuse(Malformed, "entries are not base64url of %d bytes each", entrySize)
	}
	for i := entrySize; i < len(raw); i += entrySize {
		if bytes.Compare(raw[i-entrySize:][:nameSize], raw[i:][:nameSize]) >= 0 {
			return refuse(Malformed, "entries are not in order")
		}
	}
	*e = raw
	return nil
}

// merge returns the entries of both lists; of a name in both, the higher revision.
func (e Entries) merge(later Entries) Entries {
	merged := make(Entries, 0, len(e)+len(later))
	for len(e) > 0 || len(later) > 0 {
		switch order := compareFirst(e, later); {
		case order < 0:
			merged, e = append(merged, e[:entrySize]...), e[entrySize:]
		case order > 0:
			merged, later = append(merged, later[:entrySize]...), later[entrySize:]
		default:
			higher := e[:entrySize]
			if bytes.Compare(later[:entrySize], higher) > 0 {
				higher = later[:entrySize]
			}
			merged, e, later = append(merged, higher...), e[entrySize:], later[entrySize:]
		}
	}
	return merged
}

// compareFirst compares the names of the first entries. No entry comes after any.
func compareFirst(a, b Entries) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return bytes.Compare(a[:nameSize], b[:nameSize])
}

// Sign returns the list as a document, signed with a receipt key.
func (l *Revocations) Sign(key *Signer) (string, error) {
	return key.seal(revocationsType, l)
}

// openRevocations verifies a list under the keys of a verified set.
func openRevocations(document string, keys *KeySet) (*Revocations, error) {
	l := &Revocations{}
	if err := open(document, revocationsType, maxRevocations, keys.key, l); err != nil {
		return nil, err
	}
	if l.AccountID == "" || l.Mode == "" || l.AsOf <= 0 || l.Epoch < 0 || l.After < 0 || l.After > l.Epoch {
		return nil, refuse(Malformed, "a member of the list is out of range")
	}
	return l, nil
}
