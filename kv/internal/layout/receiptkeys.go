package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// ReceiptKeysWriter is the number of the repeated field with the writers of receipt keys.
const ReceiptKeysWriter protowire.Number = 15

// ReceiptKeys is the value of an owner's receipt keys. The owner's account and mode are in the key.
type ReceiptKeys struct {
	ReceiptKeys licensing.ReceiptKeys
	Writers     []Writer
	Unknown     []byte // fields of a newer format, to be kept
}

func (s *ReceiptKeys) table() fieldTable {
	k := &s.ReceiptKeys
	return fieldTable{
		textField(1, &k.Root.MasterID),
		arrayField(2, k.Root.Sealed[:]),
		customField(3, &k.Keys, appendReceiptKeys, func(f Field) ([]licensing.ReceiptKey, error) {
			var key licensing.ReceiptKey
			err := decodeMessage(f.Bytes, receiptKeyTable(&key).read)
			return append(k.Keys, key), err
		}),
		writersField(ReceiptKeysWriter, &s.Writers),
		unknownFields(&s.Unknown),
	}
}

func receiptKeyTable(k *licensing.ReceiptKey) fieldTable {
	return fieldTable{numberField(1, &k.Number), timeField(2, &k.CreatedAt)}
}

func appendReceiptKeys(b []byte, num protowire.Number, keys []licensing.ReceiptKey) []byte {
	for i := range keys {
		b = appendMessage(b, num, receiptKeyTable(&keys[i]))
	}
	return b
}

// Encode returns the value of receipt keys.
func (s *ReceiptKeys) Encode() []byte { return s.table().value() }

// DecodeReceiptKeys decodes the value of an owner's receipt keys.
func DecodeReceiptKeys(owner licensing.Owner, value []byte) (*ReceiptKeys, error) {
	s := &ReceiptKeys{ReceiptKeys: licensing.ReceiptKeys{Owner: owner}}
	err := DecodeValue(value, s.table().read)
	if err == nil && (s.ReceiptKeys.Root.MasterID == "" || len(s.ReceiptKeys.Keys) == 0) {
		err = ErrMalformed
	}
	return s, err
}
