package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// RevocationsFamily begins the keys of the entries in the owners' lists of revocations. Behind the owner, a key has the
// 16 bytes of the name.
const RevocationsFamily = "rv/"

// RevocationsOf returns the beginning of the keys of an owner's list of revocations.
func RevocationsOf(owner licensing.Owner) string { return OfOwner(owner, RevocationsFamily) }

// RevocationKey returns the key of an entry.
func RevocationKey(owner licensing.Owner, name licensing.RevocationName) string {
	return RevocationsOf(owner) + string(name[:])
}

// CutRevocation parses a key's part behind the family.
func CutRevocation(rest string) (owner licensing.Owner, name licensing.RevocationName, ok bool) {
	owner, text, ok := CutOwner(rest)
	if !ok || len(text) != len(name) {
		return owner, name, false
	}
	copy(name[:], text)
	return owner, name, true
}

func revocationTable(r *licensing.Revocation) fieldTable {
	return fieldTable{numberField(1, &r.Revision), numberField(2, &r.Until)}
}

// EncodeRevocation returns the value of an entry. The name is in the key.
func EncodeRevocation(r licensing.Revocation) []byte { return revocationTable(&r).value() }

// DecodeRevocation decodes the value of the entry with a name.
func DecodeRevocation(name licensing.RevocationName, value []byte) (licensing.Revocation, error) {
	r := licensing.Revocation{Name: name}
	err := DecodeValue(value, revocationTable(&r).read)
	if err == nil && (r.Revision == 0 || r.Until == 0) {
		err = ErrMalformed
	}
	return r, err
}

// appendRevocations writes both members in one number. The zero RevocationCount takes no byte.
func appendRevocations(b []byte, num protowire.Number, c licensing.RevocationCount) []byte {
	return appendUint(b, num, uint64(c.Day)<<revocationBits|uint64(c.Count))
}

// revocationBits hold the count, which is at most licensing.MaxRevocationsADay.
const revocationBits = 12

func (f Field) revocations() licensing.RevocationCount {
	return licensing.RevocationCount{Day: licensing.ReceiptDay(f.varint >> revocationBits),
		Count: uint16(f.varint & (1<<revocationBits - 1))}
}
