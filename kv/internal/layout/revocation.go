package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

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

// revocationBits contain the count, which is at most licensing.MaxRevocationsADay.
const revocationBits = 12

func (f Field) revocations() licensing.RevocationCount {
	return licensing.RevocationCount{Day: licensing.ReceiptDay(f.varint >> revocationBits),
		Count: uint16(f.varint & (1<<revocationBits - 1))}
}
