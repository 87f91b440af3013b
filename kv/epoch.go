package kv

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// epoch names a span of time in which events are recorded: the revision of
// epochKey at which it began; 0 before the first one. Every transaction that
// writes events demands that the epoch is still the one that it writes them into.
// So one that has been followed by another can't grow any more: it is sealed, and
// whoever reads it may sort it by revision and has seen all of it.
//
// It is not written before a transaction is sent, and anew where it was sent in
// vain: [part].stamps are the places. Nobody reads those meanwhile: a request is turned
// into bytes before the call that sends it returns, also one whose time is over.
type epoch uint64

const (
	epochSize = 8
	// stampAt is where the epoch of the latest event stands in the value of a
	// license or an order that has had any: behind the format version, and tag and
	// length of the field.
	stampAt = 1 + 2 + 1
)

func appendEpoch(b []byte, e epoch) []byte { return binary.BigEndian.AppendUint64(b, uint64(e)) }

func (e epoch) stamp(place []byte) { binary.BigEndian.PutUint64(place, uint64(e)) }

// stampOf is the place for the epoch in a record's value.
func stampOf(value []byte) []byte { return value[stampAt:][:epochSize] }

// appendTold writes the epoch of a record's latest event and its number, and
// nothing where it had none. It must be the first field.
func appendTold(b []byte, num protowire.Number, told epoch, sequence uint64) []byte {
	if sequence == 0 {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(epochSize+protowire.SizeVarint(sequence)))
	return protowire.AppendVarint(appendEpoch(b, told), sequence)
}

func (f field) told() (told epoch, sequence uint64, err error) {
	if len(f.bytes) <= epochSize {
		return 0, 0, errMalformed
	}
	sequence, n := protowire.ConsumeVarint(f.bytes[epochSize:])
	if n != len(f.bytes)-epochSize {
		return 0, 0, errMalformed
	}
	return epoch(binary.BigEndian.Uint64(f.bytes)), sequence, nil
}
