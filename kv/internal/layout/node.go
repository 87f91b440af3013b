package layout

import "licet/node/store"

// registrationTable lists the fields of a node's registration. The incarnation is in the key.
func registrationTable(r *store.Registration) fieldTable {
	return fieldTable{textField(1, &r.Address), arrayField(2, r.PublicKey[:])}
}

// EncodeNode returns the value of a node's registration.
func EncodeNode(r store.Registration) []byte { return registrationTable(&r).value() }

// DecodeNode decodes a node's registration. rest is what follows [NodesPrefix] in the key.
func DecodeNode(rest string, value []byte) (store.Registration, error) {
	var r store.Registration
	if len(rest) != len(r.Incarnation) {
		return r, ErrMalformed
	}
	copy(r.Incarnation[:], rest)
	err := DecodeValue(value, registrationTable(&r).read)
	if err == nil && (r.Address == "" || r.PublicKey == [32]byte{}) {
		err = ErrMalformed
	}
	return r, err
}
