package keyspace

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"

	"licet/licensing"
)

// The id of an event is the slot of its owner, and its location: the epoch, a hash of its record, and its number. The
// record is hashed so that ids have one length. For an event in a block, the number of the block
// replaces the first bytes of the hash. A position in the feed between events consists of the slot, an epoch and a
// revision: the reader has all earlier events.
const (
	eventIDPrefix  = "evt_"
	positionPrefix = "pos_"
	recordHashSize = 10
)

// FeedText is Crockford's base32, as order numbers and license keys have it.
var FeedText = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// RecordHash identifies in event ids a record, and the block that has its events.
type RecordHash [recordHashSize]byte

// HashRecord returns the hash that stands for a record, and for the block with its events, in event ids.
func HashRecord(in Block, record string) RecordHash {
	sum := sha256.Sum256([]byte(record))
	hash := RecordHash(sum[:])
	hash[0] &^= 1 << 7 // no number of a block begins like this
	if in != 0 {
		copy(hash[blockSize:], sum[:])
		binary.BigEndian.PutUint32(hash[:], uint32(in))
	}
	return hash
}

// HashBlock stands for the runs of a block that can't be read. The number of such a run takes the place of a sequence.
// No run of a record has this hash, but for one in 2^48.
func HashBlock(in Block) (hash RecordHash) {
	binary.BigEndian.PutUint32(hash[:], uint32(in))
	return hash
}

// Block returns the block that contains the events, or 0.
func (h *RecordHash) Block() Block {
	if b := Block(binary.BigEndian.Uint32(h[:])); b.valid() {
		return b
	}
	return 0
}

// FeedPlace is a position in a feed: behind an event, or behind all that was recorded in
// an epoch up to a revision.
type FeedPlace struct {
	Epoch    Epoch
	Record   RecordHash // zero unless the place is behind an event
	Sequence uint64
	Revision int64
}

// BehindEvent reports whether the place is behind an event.
func (p FeedPlace) BehindEvent() bool { return p.Sequence > 0 }

// Text returns a place in the feed of an owner with the slot, as callers see the place.
func (p FeedPlace) Text(slot licensing.Slot) string {
	b := AppendEpoch(nil, p.Epoch)
	prefix := positionPrefix
	if p.BehindEvent() {
		prefix = eventIDPrefix
		b = binary.AppendUvarint(append(b, p.Record[:]...), p.Sequence)
	} else {
		b = binary.AppendUvarint(b, uint64(p.Revision))
	}
	return prefix + slot.String() + FeedText.EncodeToString(b)
}

// ReadFeedPlace parses a place that Text has returned for the slot, and nothing else.
func ReadFeedPlace(slot licensing.Slot, text string) (p FeedPlace, ok bool) {
	rest, isEvent := strings.CutPrefix(text, eventIDPrefix)
	if !isEvent {
		if rest, ok = strings.CutPrefix(text, positionPrefix); !ok {
			return FeedPlace{}, false
		}
	}
	rest, ok = strings.CutPrefix(rest, slot.String())
	if !ok {
		return FeedPlace{}, false
	}
	b, err := FeedText.DecodeString(rest)
	if err != nil || len(b) <= EpochSize {
		return FeedPlace{}, false
	}
	p.Epoch = Epoch(binary.BigEndian.Uint64(b))
	if p.Epoch>>eraShift != 0 {
		return FeedPlace{}, false // of a slot that was moved, which this build can't have done
	}
	b = b[EpochSize:]
	if isEvent {
		if len(b) <= recordHashSize {
			return FeedPlace{}, false
		}
		p.Record = RecordHash(b)
		b = b[recordHashSize:]
	}
	number, n := binary.Uvarint(b)
	if n != len(b) {
		return FeedPlace{}, false
	}
	if isEvent {
		p.Sequence = number
	} else {
		p.Revision = int64(number)
	}
	return p, p.Text(slot) == text
}

// EventID returns the id of an event of an owner's record.
func EventID(owner licensing.Owner, at Location, record string, sequence uint64) string {
	place := FeedPlace{Epoch: at.Epoch, Record: HashRecord(at.Block, record), Sequence: sequence}
	return place.Text(licensing.SlotOf(owner))
}
