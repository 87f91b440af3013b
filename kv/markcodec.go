package kv

import (
	"encoding/binary"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// How old events are must be known without reading them. So now and then a node that
// sweeps makes a mark behind an epoch that is sealed: the time. Before that it measures
// the events of all owners up to there, see [Store.measureEvents].
const marksPrefix = layout + "t/"

// eventMark says of the events up to an epoch that they were recorded before a moment.
type eventMark struct {
	epoch epoch
	at    time.Time
	// measured: the ledgers of all owners count the events up to the epoch. Marks of
	// older builds have the bytes of all owners' events instead, and an older build that
	// sweeps by bytes goes by those alone.
	measured bool
}

func markKey(e epoch) string { return marksPrefix + string(appendEpoch(nil, e)) }

// Field numbers of a mark. 2 was the bytes of all owners' events since the mark before.
const (
	markAt       protowire.Number = 1
	markMeasured protowire.Number = 3
)

func (m *eventMark) encode() []byte {
	return appendBool(appendTime([]byte{formatVersion}, markAt, m.at), markMeasured, m.measured)
}

// readMark reads a mark, given what follows the prefix in its key.
func readMark(rest string, value []byte) (m eventMark, err error) {
	if len(rest) != epochSize {
		return m, errMalformed
	}
	m.epoch = epoch(binary.BigEndian.Uint64([]byte(rest)))
	err = decodeValue(value, func(f field) error {
		switch f.num {
		case markAt:
			m.at = f.time()
		case markMeasured:
			m.measured = f.bool()
		}
		return nil
	})
	if err == nil && m.at.IsZero() {
		err = errMalformed
	}
	return m, err
}
