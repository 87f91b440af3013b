package layout

import (
	"licet/licensing/keyring"
)

// SealedIDKey is the id key of a store, sealed under a master key.
type SealedIDKey struct {
	MasterID string
	Sealed   [keyring.SealedIDKeySize]byte
}

func (k *SealedIDKey) table() fieldTable {
	return fieldTable{textField(1, &k.MasterID), arrayField(2, k.Sealed[:])}
}

// Encode returns the value of the id key.
func (k *SealedIDKey) Encode() []byte { return k.table().value() }

// DecodeIDKey decodes the value of the id key.
func DecodeIDKey(value []byte) (k SealedIDKey, err error) {
	if err = DecodeValue(value, k.table().read); err == nil && k.MasterID == "" {
		err = ErrMalformed
	}
	return k, err
}
