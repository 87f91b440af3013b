package keyspace

import (
	"encoding/binary"
)

// Epoch names a span of time in which events are recorded, by the revision of EpochKey at its beginning; 0 before the
// first epoch. Every transaction that writes events into an epoch compares that the epoch is still the current epoch.
// So an earlier epoch can't grow any more: it is closed, and a reader that sorts its events by revision has all of
// them.
//
// The first 16 bits are the era of the slot. The era is 0: a slot that moves to another cell will get a higher one. The
// revisions of two cells can't be compared, so the era keeps events from after the move behind the events from before.
type Epoch uint64

// eraShift leaves 48 bits for revisions, which are enough for 89 years of 100,000 revisions a second.
const eraShift = 48

// Block is the random number of a key with events of several records, unique in an epoch. Its highest bit is set. 0
// means that the key contains events of one record.
type Block uint32

// valid reports whether b can be the number of a block.
func (b Block) valid() bool { return b>>31 == 1 }

// Location says where events of a record are stored: together with the record and the number of the last event, it
// names their key.
//
// A location is known only when a transaction is sent: kv patches the location into the encoded values at each send.
// That is safe: gRPC has serialized the earlier request by then, even one whose deadline has passed.
type Location struct {
	Epoch Epoch
	Block Block
}

const (
	// EpochSize and LocationSize are the lengths of an encoded epoch and of an encoded location.
	EpochSize    = 8
	blockSize    = 4
	LocationSize = EpochSize + blockSize
)

// AppendEpoch appends the encoded epoch to b.
func AppendEpoch(b []byte, e Epoch) []byte { return binary.BigEndian.AppendUint64(b, uint64(e)) }

// Patch writes the epoch over the bytes of an encoded one.
func (e Epoch) Patch(place []byte) { binary.BigEndian.PutUint64(place, uint64(e)) }

// AppendLocation appends the encoded location to b.
func AppendLocation(b []byte, at Location) []byte {
	return binary.BigEndian.AppendUint32(AppendEpoch(b, at.Epoch), uint32(at.Block))
}

// ReadLocation reads what AppendLocation has written, at the beginning of b.
func ReadLocation(b []byte) Location {
	return Location{Epoch(binary.BigEndian.Uint64(b)), Block(binary.BigEndian.Uint32(b[EpochSize:]))}
}

// Patch writes the location over the bytes of an encoded one.
func (at Location) Patch(place []byte) {
	at.Epoch.Patch(place)
	binary.BigEndian.PutUint32(place[EpochSize:], uint32(at.Block))
}
