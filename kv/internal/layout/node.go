package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/node/store"
)

// Field numbers of a registration.
const (
	nodeAddress   protowire.Number = 1
	nodePublicKey protowire.Number = 2
)

// EncodeNode returns the value of a node's registration.
func EncodeNode(r store.Registration) []byte {
	b := appendString([]byte{formatVersion}, nodeAddress, r.Address)
	return appendBytes(b, nodePublicKey, r.PublicKey[:])
}

// DecodeNode decodes a node's registration. rest is what follows [NodesPrefix] in the key.
func DecodeNode(rest string, value []byte) (store.Registration, error) {
	var r store.Registration
	if len(rest) != len(r.Incarnation) {
		return r, ErrMalformed
	}
	copy(r.Incarnation[:], rest)
	err := DecodeValue(value, func(f Field) error {
		switch f.Num {
		case nodeAddress:
			r.Address = f.string()
		case nodePublicKey:
			if len(f.Bytes) != len(r.PublicKey) {
				return ErrMalformed
			}
			copy(r.PublicKey[:], f.Bytes)
		}
		return nil
	})
	if err == nil && (r.Address == "" || r.PublicKey == [32]byte{}) {
		err = ErrMalformed
	}
	return r, err
}
