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
type epoch uint64

// block tells apart the keys that hold events of several records, of those that requests
// write in one epoch; 0 where a key holds those of one record. Its highest bit is set.
type block uint32

// valid tells whether it can be a block's number.
func (b block) valid() bool { return b>>31 == 1 }

// site is where events of a record stand: with the record and the number of the last of
// them it names their key.
//
// It is not written before a transaction is sent, and anew where it was sent in
// vain: see [telling]. Nobody reads the places meanwhile: a request is turned
// into bytes before the call that sends it returns, also one whose time is over.
type site struct {
	epoch epoch
	block block
}

const (
	epochSize = 8
	blockSize = 4
	siteSize  = epochSize + blockSize
	// stampAt is where the site of the latest event stands in the value of a
	// license or an order that has had any: behind the format version, and tag and
	// length of the field.
	stampAt = 1 + 2 + 1
)

func appendEpoch(b []byte, e epoch) []byte { return binary.BigEndian.AppendUint64(b, uint64(e)) }

func (e epoch) stamp(place []byte) { binary.BigEndian.PutUint64(place, uint64(e)) }

func appendSite(b []byte, at site) []byte {
	return binary.BigEndian.AppendUint32(appendEpoch(b, at.epoch), uint32(at.block))
}

// readSite reads what appendSite has written, at the beginning of b.
func readSite(b []byte) site {
	return site{epoch(binary.BigEndian.Uint64(b)), block(binary.BigEndian.Uint32(b[epochSize:]))}
}

func (at site) stamp(place []byte) {
	at.epoch.stamp(place)
	binary.BigEndian.PutUint32(place[epochSize:], uint32(at.block))
}

// stampOf is the place for the site in a record's value.
func stampOf(value []byte) []byte { return value[stampAt:][:siteSize] }

// appendTold writes the site of a record's latest event and its number, and
// nothing where it had none. It must be the first field.
func appendTold(b []byte, num protowire.Number, told site, sequence uint64) []byte {
	if sequence == 0 {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(siteSize+protowire.SizeVarint(sequence)))
	return protowire.AppendVarint(appendSite(b, told), sequence)
}

func (f field) told() (told site, sequence uint64, err error) {
	if len(f.bytes) <= siteSize {
		return told, 0, errMalformed
	}
	sequence, n := protowire.ConsumeVarint(f.bytes[siteSize:])
	if n != len(f.bytes)-siteSize {
		return told, 0, errMalformed
	}
	return readSite(f.bytes), sequence, nil
}

// revisionBump is added to a restored store's revision. It must be more
// than what the lost store wrote after the backup, so that no revision
// comes twice with different content: nodes that are still up remember
// some, and their swaps would land on records they never saw.
const revisionBump = 1_000_000_000
