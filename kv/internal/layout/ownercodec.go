package layout

import (
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv/internal/keyspace"
	"licet/licensing"
)

// Modes as they are stored.
const (
	storedTest byte = 1
	storedLive byte = 2
)

// Forms of a stored account id. Every version of a license has its owner, so the forms leave out what most ids have
// in common.
const (
	accountText byte = iota // the whole id
	accountName             // without accountPrefix
	accountULID             // the 16 bytes of the lower-case ULID behind accountPrefix
)

const accountPrefix = "acct_"

// appendOwner writes an owner in one field: a byte with the mode and, two bits
// up, the form of the account id; then the id.
func appendOwner(b []byte, num protowire.Number, o licensing.Owner) []byte {
	mode := storedLive
	if o.Mode == licensing.Test {
		mode = storedTest
	}
	b = protowire.AppendTag(b, num, protowire.BytesType)
	name, prefixed := strings.CutPrefix(o.AccountID, accountPrefix)
	if !prefixed {
		return appendAccount(b, accountText<<2|mode, o.AccountID)
	}
	if id, ok := packULID(name, true); ok {
		b = append(b, byte(1+len(id)), accountULID<<2|mode)
		return append(b, id[:]...)
	}
	return appendAccount(b, accountName<<2|mode, name)
}

func appendAccount(b []byte, first byte, text string) []byte {
	b = protowire.AppendVarint(b, uint64(1+len(text)))
	return append(append(b, first), text...)
}

// owner reads an owner. It refuses a field that names no owner: a value must never be shown to another account.
func (f Field) owner() (o licensing.Owner, err error) {
	if len(f.Bytes) == 0 {
		return o, errNoOwner
	}
	first, id := f.Bytes[0], f.Bytes[1:]
	switch first & 3 {
	case storedTest:
		o.Mode = licensing.Test
	case storedLive:
		o.Mode = licensing.Live
	default:
		return o, errNoOwner
	}
	switch first >> 2 {
	case accountText:
		o.AccountID = string(id)
	case accountName:
		o.AccountID = accountPrefix + string(id)
	case accountULID:
		var buffer [len(accountPrefix) + ulid.EncodedSize]byte
		var text []byte
		text, err = appendULID(append(buffer[:0], accountPrefix...), id, true)
		o.AccountID = string(text)
	default:
		err = errNoOwner
	}
	return o, err
}

var errNoOwner = fmt.Errorf("%w: no owner", ErrMalformed)

// owned returns err, or an error if a value without an error names no owner.
func owned(o licensing.Owner, err error) error {
	if err == nil && (o.AccountID == "" || o.Mode == "") {
		return errNoOwner
	}
	return err
}

// appendOrderNo writes an order number in field packed, as its slot and the bytes of its ULID. It writes the text in
// another field if the number is not made of both.
func appendOrderNo(b []byte, packed, text protowire.Number, orderNo string) []byte {
	const slotEnd = licensing.SlotLength
	if rest, ok := strings.CutPrefix(orderNo, keyspace.OrderPrefix); ok && len(rest) == slotEnd+ulid.EncodedSize {
		if id, ok := packULID(rest[slotEnd:], false); ok {
			b = protowire.AppendTag(b, packed, protowire.BytesType)
			b = append(b, byte(slotEnd+len(id)))
			b = append(b, rest[:slotEnd]...)
			return append(b, id[:]...)
		}
	}
	return appendString(b, text, orderNo)
}

// orderNo reads a packed order number.
func (f Field) orderNo() (string, error) {
	if len(f.Bytes) < licensing.SlotLength {
		return "", ErrMalformed
	}
	slot, id := f.Bytes[:licensing.SlotLength], f.Bytes[licensing.SlotLength:]
	var buffer [len(keyspace.OrderPrefix) + licensing.SlotLength + ulid.EncodedSize]byte
	text, err := appendULID(append(append(buffer[:0], keyspace.OrderPrefix...), slot...), id, false)
	return string(text), err
}

// packULID returns the bytes of a ULID, and whether they decode to the same text: a ULID may be written in either case,
// and in a mix of both.
func packULID(text string, lower bool) (ulid.ULID, bool) {
	id, err := ulid.ParseStrict(text)
	if err != nil {
		return id, false
	}
	var buffer [ulid.EncodedSize]byte
	again, err := appendULID(buffer[:0], id[:], lower)
	return id, err == nil && string(again) == text
}

// appendULID appends the text of a packed ULID to b.
func appendULID(b, packed []byte, lower bool) ([]byte, error) {
	if len(packed) != len(ulid.ULID{}) {
		return nil, fmt.Errorf("%w: a ULID of %d bytes", ErrMalformed, len(packed))
	}
	var text [ulid.EncodedSize]byte
	if err := ulid.ULID(packed).MarshalTextTo(text[:]); err != nil {
		return nil, err
	}
	if lower {
		for i, c := range text {
			if c >= 'A' {
				text[i] = c | 0x20
			}
		}
	}
	return append(b, text[:]...), nil
}

// ownerField is an owner of a value. [owned] refuses a value without this field.
func ownerField(num protowire.Number, at *licensing.Owner) tableField {
	return customField(num, at, appendOwner, Field.owner)
}

// orderOwnerTable lists the one field of the value under an order's number.
func orderOwnerTable(o *licensing.Owner) fieldTable { return fieldTable{ownerField(1, o)} }

// EncodeOwner returns the value under an order's number.
func EncodeOwner(o licensing.Owner) []byte { return orderOwnerTable(&o).value() }

// DecodeOwner decodes the value under an order's number.
func DecodeOwner(value []byte) (o licensing.Owner, err error) {
	err = DecodeValue(value, orderOwnerTable(&o).read)
	return o, owned(o, err)
}
