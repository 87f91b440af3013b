package kv

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/node/store"
)

// Field numbers of a registration.
const (
	nodeAddress   protowire.Number = 1
	nodePublicKey protowire.Number = 2
)

func encodeNode(r store.Registration) []byte {
	b := appendString([]byte{formatVersion}, nodeAddress, r.Address)
	return appendBytes(b, nodePublicKey, r.PublicKey[:])
}

func decodeNode(rest string, value []byte) (store.Registration, error) {
	var r store.Registration
	if len(rest) != len(r.Incarnation) {
		return r, errMalformed
	}
	copy(r.Incarnation[:], rest)
	err := decodeValue(value, func(f field) error {
		switch f.num {
		case nodeAddress:
			r.Address = f.string()
		case nodePublicKey:
			if len(f.bytes) != len(r.PublicKey) {
				return errMalformed
			}
			copy(r.PublicKey[:], f.bytes)
		}
		return nil
	})
	if err == nil && (r.Address == "" || r.PublicKey == [32]byte{}) {
		err = errMalformed
	}
	return r, err
}
