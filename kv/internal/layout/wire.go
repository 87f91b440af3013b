package layout

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv/internal/keyspace"
	"licet/licensing"
	"licet/node/store"
)

// formatVersion is the first byte of every value.
const formatVersion = 1

// ErrMalformed is the error of a value or a key that is not in the form of its kind.
var ErrMalformed = errors.New("malformed value")

// Internal wraps err, the error of a stored value that can't be decoded, as an internal error. It returns nil for nil.
func Internal(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", licensing.ErrInternal, err)
}

// The append functions write no field for a zero value, as proto3 does, unless their comment says otherwise.

func appendUint(b []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

// appendCount also writes zero: a missing limit must not be read as no limit.
func appendCount(b []byte, num protowire.Number, v int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(v))
}

func appendInt(b []byte, num protowire.Number, v int) []byte { return appendUint(b, num, uint64(v)) }

// appendNatural writes a number. It writes a negative number as zero.
func appendNatural(b []byte, num protowire.Number, v int) []byte {
	return appendUint(b, num, uint64(max(0, v)))
}

func appendBool(b []byte, num protowire.Number, v bool) []byte {
	return appendUint(b, num, protowire.EncodeBool(v))
}

func appendString(b []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
}

// appendBytes writes empty bytes too.
func appendBytes(b []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}

// appendTime writes a time in whole milliseconds since 1970. Zero stands for the zero time.
func appendTime(b []byte, num protowire.Number, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return appendUint(b, num, uint64(t.UnixMilli()))
}

// appendTimeAfter writes a time in whole milliseconds after start, which takes fewer bytes than milliseconds since
// 1970. A zero start stands for 1970. The time may be before start, since the clocks of nodes differ.
func appendTimeAfter(b []byte, num protowire.Number, t, start time.Time) []byte {
	if t.IsZero() {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.VarintType)
	return protowire.AppendVarint(b, protowire.EncodeZigZag(t.UnixMilli()-sinceEpoch(start)))
}

// sinceEpoch returns the milliseconds since 1970, and 0 for the zero time.
func sinceEpoch(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// foreignField replaces the number of a field whose wire type this build does not use.
const foreignField protowire.Number = 0

// Field is one field of an encoded message.
type Field struct {
	Num    protowire.Number
	varint uint64
	Bytes  []byte // aliases the message; nil if the field is a varint
	raw    []byte // the whole field with its tag; aliases the message
}

func (f Field) string() string { return string(f.Bytes) }
func (f Field) bool() bool     { return f.varint != 0 }
func (f Field) int() int       { return int(int64(f.varint)) }

func (f Field) time() time.Time {
	if f.varint == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(f.varint)).UTC()
}

// timeAfter reads a time that [appendTimeAfter] wrote. It returns the zero time if the message has no such field.
func (f Field) timeAfter(start time.Time) time.Time {
	if f.raw == nil || f.Bytes != nil {
		return time.Time{}
	}
	return time.UnixMilli(sinceEpoch(start) + protowire.DecodeZigZag(f.varint)).UTC()
}

// DecodeValue checks a value's format version, and calls each for every field of its message.
func DecodeValue(value []byte, each func(Field) error) error {
	if err := checkFormat(value, formatVersion); err != nil {
		return err
	}
	return decodeMessage(value[1:], each)
}

// checkFormat refuses a value of a format version that this build does not know. newest is the newest known version.
func checkFormat(value []byte, newest byte) error {
	if len(value) == 0 {
		return fmt.Errorf("%w: empty", ErrMalformed)
	}
	switch version := value[0]; {
	case version > newest:
		return fmt.Errorf("%w: %w: format version %d; this build knows %d", ErrMalformed, store.ErrNewerFormat, version,
			newest)
	case version < formatVersion:
		return fmt.Errorf("%w: format version %d; this build knows %d", ErrMalformed, version, newest)
	}
	return nil
}

// decodeMessage calls each for every field of a message. Only a newer format has fields that are neither varint nor
// bytes: of such a field, each receives the raw bytes alone.
func decodeMessage(b []byte, each func(Field) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		whole := b
		b = b[n:]
		f := Field{Num: num}
		switch typ {
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.Bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		b = b[n:]
		f.raw = whole[:len(whole)-len(b)]
		if typ != protowire.VarintType && typ != protowire.BytesType {
			f.Num = foreignField
		}
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

// locationAt is where the location of the latest event stands in the value of a record that has events: after the
// format version, and the tag and the length of the first field. TestLocationIn guards this.
const locationAt = 1 + 2 + 1

// LocationIn returns the bytes of a record's value that contain the location of the record's latest event.
func LocationIn(value []byte) []byte { return value[locationAt:][:keyspace.LocationSize] }

// appendLastEvent appends the location of a record's latest event and the event's number; nothing if the record has
// had no event. It must be the first field, for LocationIn.
func appendLastEvent(b []byte, num protowire.Number, at keyspace.Location, sequence uint64) []byte {
	if sequence == 0 {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(keyspace.LocationSize+protowire.SizeVarint(sequence)))
	return protowire.AppendVarint(keyspace.AppendLocation(b, at), sequence)
}

func (f Field) lastEvent() (at keyspace.Location, sequence uint64, err error) {
	if len(f.Bytes) <= keyspace.LocationSize {
		return at, 0, ErrMalformed
	}
	sequence, n := protowire.ConsumeVarint(f.Bytes[keyspace.LocationSize:])
	if n != len(f.Bytes)-keyspace.LocationSize {
		return at, 0, ErrMalformed
	}
	return keyspace.ReadLocation(f.Bytes), sequence, nil
}
