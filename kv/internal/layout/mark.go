package layout

import (
	"encoding/binary"
	"time"

	"licet/kv/internal/keyspace"
)

// RetentionMark says that the events up to Epoch were recorded before At.
type RetentionMark struct {
	Epoch keyspace.Epoch
	At    time.Time
	// Measured says that the ledgers of all owners count the events up to Epoch. The marks of older builds contain the
	// bytes of all owners' events instead, and an older build that sweeps by bytes relies on these marks alone.
	Measured bool
}

// table lists the fields of a mark. Field 2 was the bytes of all owners' events since the mark before.
func (m *RetentionMark) table() fieldTable {
	return fieldTable{timeField(1, &m.At), boolField(3, &m.Measured)}
}

// Encode returns the mark's value.
func (m *RetentionMark) Encode() []byte { return m.table().value() }

// DecodeMark decodes a mark. rest is what follows the prefix in the mark's key.
func DecodeMark(rest string, value []byte) (m RetentionMark, err error) {
	if m.Epoch, err = DecodeEpoch([]byte(rest)); err != nil {
		return m, err
	}
	err = DecodeValue(value, m.table().read)
	if err == nil && m.At.IsZero() {
		err = ErrMalformed
	}
	return m, err
}

// DecodeEpoch decodes what AppendEpoch appends to nothing.
func DecodeEpoch(b []byte) (keyspace.Epoch, error) {
	if len(b) != keyspace.EpochSize {
		return 0, ErrMalformed
	}
	return keyspace.Epoch(binary.BigEndian.Uint64(b)), nil
}
