package layout

import (
	"time"
)

// MarksPrefix begins the keys of retention marks. A mark says how old events are, so that a sweep need not read them.
// Now and then a node that sweeps makes a mark for a sealed epoch. Before that, it measures the events of all owners up
// to that epoch: see [retention.measureEvents].
const MarksPrefix = CellPrefix + "t/"

// RetentionMark says that the events up to Epoch were recorded before At.
type RetentionMark struct {
	Epoch Epoch
	At    time.Time
	// Measured says that the ledgers of all owners count the events up to Epoch. The marks of older builds hold the
	// bytes of all owners' events instead, and an older build that sweeps by bytes relies on these marks alone.
	Measured bool
}

// MarkKey returns the key of a retention mark.
func MarkKey(e Epoch) string { return MarksPrefix + string(AppendEpoch(nil, e)) }

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
