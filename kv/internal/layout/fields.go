package layout

import (
	"encoding/binary"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv/internal/keyspace"
	"licet/licensing"
)

// fieldTable lists the fields of a message, in the order of their bytes. Tables encode and decode the kinds of values
// that are read and written rarely. Licenses, devices and events are on the path of every activation: hand-written code
// encodes and decodes them, since a table takes more memory and time.
//
// A field's number is never used for another field. A number up to 15 takes a byte less than a higher one.
type fieldTable []tableField

// tableField is a field, and the Go variable with its content.
type tableField struct {
	num protowire.Number
	variable
}

// variable is a Go variable as the content of a field. Types with nothing but a pointer take no allocation.
type variable interface {
	write(b []byte, num protowire.Number) []byte // appends the field to b
	read(f Field) error
}

// otherNumbers in a table's last entry stands for every number that the table does not list.
const otherNumbers protowire.Number = -1

// appendTo appends the message to b.
func (t fieldTable) appendTo(b []byte) []byte {
	for i := range t {
		b = t[i].write(b, t[i].num)
	}
	return b
}

// value returns the format version and the message.
func (t fieldTable) value() []byte { return t.appendTo([]byte{formatVersion}) }

// appendMessage appends a field with the message of a table.
func appendMessage(b []byte, num protowire.Number, t fieldTable) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	from := len(b)
	b = t.appendTo(b)
	var size [binary.MaxVarintLen64]byte
	return slices.Insert(b, from, protowire.AppendVarint(size[:0], uint64(len(b)-from))...)
}

// read reads one field of the message into its variable. It skips a field that the table does not list.
func (t fieldTable) read(f Field) error {
	for i := range t {
		if t[i].num == f.Num || t[i].num == otherNumbers {
			return t[i].variable.read(f)
		}
	}
	return nil
}

type textVar[S ~string] struct{ at *S }

func textField[S ~string](num protowire.Number, at *S) tableField {
	return tableField{num, textVar[S]{at}}
}

func (v textVar[S]) write(b []byte, num protowire.Number) []byte {
	return appendString(b, num, string(*v.at))
}
func (v textVar[S]) read(f Field) error { *v.at = S(f.Bytes); return nil }

// licenseKeyVar is a license key, stored as the id of the license and the prefix.
type licenseKeyVar struct{ at *licensing.LicenseKey }

func (v licenseKeyVar) write(b []byte, num protowire.Number) []byte {
	if v.at.IsZero() {
		return b
	}
	id := v.at.ID()
	return appendBytes(b, num, append(id[:], v.at.Prefix()...))
}

func (v licenseKeyVar) read(f Field) error {
	if len(f.Bytes) < len(licensing.LicenseID{}) {
		return ErrMalformed
	}
	id, prefix := licensing.LicenseID(f.Bytes), string(f.Bytes[len(licensing.LicenseID{}):])
	if prefix != "" && !licensing.ValidKeyPrefix(prefix) {
		return ErrMalformed
	}
	*v.at = id.Key(prefix)
	return nil
}

type integer interface {
	~int | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

type numberVar[N integer] struct{ at *N }

func numberField[N integer](num protowire.Number, at *N) tableField {
	return tableField{num, numberVar[N]{at}}
}

func (v numberVar[N]) write(b []byte, num protowire.Number) []byte {
	return appendUint(b, num, uint64(*v.at))
}
func (v numberVar[N]) read(f Field) error { *v.at = N(f.varint); return nil }

type boolVar struct{ at *bool }

func boolField(num protowire.Number, at *bool) tableField { return tableField{num, boolVar{at}} }

func (v boolVar) write(b []byte, num protowire.Number) []byte { return appendBool(b, num, *v.at) }
func (v boolVar) read(f Field) error                          { *v.at = f.bool(); return nil }

type timeVar struct{ at *time.Time }

func timeField(num protowire.Number, at *time.Time) tableField { return tableField{num, timeVar{at}} }

func (v timeVar) write(b []byte, num protowire.Number) []byte { return appendTime(b, num, *v.at) }
func (v timeVar) read(f Field) error                          { *v.at = f.time(); return nil }

// arrayVar has a fixed length, and is written even if every byte is zero.
type arrayVar []byte

func arrayField(num protowire.Number, array []byte) tableField {
	return tableField{num, arrayVar(array)}
}

func (v arrayVar) write(b []byte, num protowire.Number) []byte { return appendBytes(b, num, v) }
func (v arrayVar) read(f Field) error                          { return f.fill(v) }

// lastEventVar must be in the first field of its table: see locationAt.
type lastEventVar struct {
	at       *keyspace.Location
	sequence *uint64
}

func lastEventField(num protowire.Number, at *keyspace.Location, sequence *uint64) tableField {
	return tableField{num, lastEventVar{at, sequence}}
}

func (v lastEventVar) write(b []byte, num protowire.Number) []byte {
	return appendLastEvent(b, num, *v.at, *v.sequence)
}
func (v lastEventVar) read(f Field) (err error) { *v.at, *v.sequence, err = f.lastEvent(); return err }

// unknownVar keeps the fields of a newer format as they are.
type unknownVar struct{ at *[]byte }

// unknownFields must be the last entry of its table.
func unknownFields(at *[]byte) tableField { return tableField{otherNumbers, unknownVar{at}} }

func (v unknownVar) write(b []byte, _ protowire.Number) []byte { return append(b, *v.at...) }
func (v unknownVar) read(f Field) error                        { *v.at = append(*v.at, f.raw...); return nil }

// customVar is a variable of any other type. It takes an allocation, so orders and the log of deliveries have none.
type customVar[T any] struct {
	at     *T
	encode func(b []byte, num protowire.Number, v T) []byte
	decode func(Field) (T, error)
}

func customField[T any](
	num protowire.Number, at *T, encode func([]byte, protowire.Number, T) []byte, decode func(Field) (T, error),
) tableField {
	return tableField{num, &customVar[T]{at, encode, decode}}
}

func (v *customVar[T]) write(b []byte, num protowire.Number) []byte { return v.encode(b, num, *v.at) }
func (v *customVar[T]) read(f Field) (err error)                    { *v.at, err = v.decode(f); return err }

// textsField is a repeated field. Empty texts are written too.
func textsField[S ~string](num protowire.Number, at *[]S) tableField {
	encode := func(b []byte, num protowire.Number, all []S) []byte {
		for _, s := range all {
			b = appendBytes(b, num, []byte(s))
		}
		return b
	}
	return customField(num, at, encode, func(f Field) ([]S, error) { return append(*at, S(f.Bytes)), nil })
}

// messageField is a message with a table of its own. The zero value is not written.
func messageField[T comparable](num protowire.Number, at *T, table func(*T) fieldTable) tableField {
	encode := func(b []byte, num protowire.Number, m T) []byte {
		if m == *new(T) {
			return b
		}
		return appendMessage(b, num, table(&m))
	}
	return customField(num, at, encode, func(f Field) (m T, err error) {
		err = decodeMessage(f.Bytes, table(&m).read)
		return m, err
	})
}

// pointerField is a message with a table of its own. A nil pointer is not written; a zero value is.
func pointerField[T any](num protowire.Number, at **T, table func(*T) fieldTable) tableField {
	encode := func(b []byte, num protowire.Number, m *T) []byte {
		if m == nil {
			return b
		}
		return appendMessage(b, num, table(m))
	}
	return customField(num, at, encode, func(f Field) (*T, error) {
		m := new(T)
		return m, decodeMessage(f.Bytes, table(m).read)
	})
}

type writersVar struct{ at *[]Writer }

func writersField(num protowire.Number, at *[]Writer) tableField {
	return tableField{num, writersVar{at}}
}

func (v writersVar) write(b []byte, num protowire.Number) []byte {
	return appendWriters(b, num, *v.at)
}
func (v writersVar) read(f Field) (err error) { *v.at, err = decodeWriter(*v.at, f.Bytes); return err }
