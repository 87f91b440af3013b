package layout

import (
	"encoding/binary"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// How old events are must be known without reading them. So now and then a node that
// sweeps makes a mark behind an epoch that is sealed: the time. Before that it measures
// the events of all owners up to there, see [retention.measureEvents].
const MarksPrefix = Prefix + "t/"

// RetentionMark says of the events up to an epoch that they were recorded before a moment.
type RetentionMark struct {
	Epoch Epoch
	At    time.Time
	// Measured: the ledgers of all owners count the events up to the epoch. Marks of
	// older builds have the bytes of all owners' events instead, and an older build that
	// sweeps by bytes goes by those alone.
	Measured bool
}

// MarkKey returns the key of a retention mark.
func MarkKey(e Epoch) string { return MarksPrefix + string(AppendEpoch(nil, e)) }

// Field numbers of a mark. 2 was the bytes of all owners' events since the mark before.
const (
	markAt       protowire.Number = 1
	markMeasured protowire.Number = 3
)

// Encode returns the mark's value.
func (m *RetentionMark) Encode() []byte {
	return appendBool(appendTime([]byte{formatVersion}, markAt, m.At), markMeasured, m.Measured)
}

// DecodeMark reads a mark, given what follows the prefix in its key.
func DecodeMark(rest string, value []byte) (m RetentionMark, err error) {
	if len(rest) != EpochSize {
		return m, ErrMalformed
	}
	m.Epoch = Epoch(binary.BigEndian.Uint64([]byte(rest)))
	err = DecodeValue(value, func(f Field) error {
		switch f.Num {
		case markAt:
			m.At = f.time()
		case markMeasured:
			m.Measured = f.bool()
		}
		return nil
	})
	if err == nil && m.At.IsZero() {
		err = ErrMalformed
	}
	return m, err
}
