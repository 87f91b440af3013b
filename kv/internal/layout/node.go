package layout

import (
	"time"

	"licet/node/store"
)

// registrationTable lists the fields of a node's registration. The incarnation is in the key.
func registrationTable(r *store.Registration, at *time.Time) fieldTable {
	return fieldTable{
		textField(1, &r.Address), arrayField(2, r.PublicKey[:]), timeField(3, at), textField(4, &r.Version),
	}
}

// EncodeNode returns the value of a node's registration, with the time by the node's clock.
func EncodeNode(r store.Registration, at time.Time) []byte { return registrationTable(&r, &at).value() }

// DecodeNode decodes a node's registration and the time by the node's clock, which is zero if an older version wrote
// the registration. rest is what follows [NodesPrefix] in the key.
func DecodeNode(rest string, value []byte) (r store.Registration, at time.Time, err error) {
	if len(rest) != len(r.Incarnation) {
		return r, at, ErrMalformed
	}
	copy(r.Incarnation[:], rest)
	err = DecodeValue(value, registrationTable(&r, &at).read)
	if err == nil && (r.Address == "") != (r.PublicKey == [32]byte{}) {
		err = ErrMalformed
	}
	return r, at, err
}
