package kv

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"

	"licet/node/store"
)

// An event is known by where it stands: the epoch, a hash of its record (since a
// license's own id opens the license), and its number. Where it is in a block, that takes
// the place of the first bytes of the hash. A position in the feed that is
// no event's is known by the epoch and a revision: all before is told.
const (
	eventIDPrefix  = "evt_"
	positionPrefix = "pos_"
	recordHashSize = 10
)

// feedText is Crockford's base32, as order numbers and license keys have it.
var feedText = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// recordHash stands for a record, and a block that has its events, in the ids of these.
type recordHash [recordHashSize]byte

func hashRecord(in block, record string) recordHash {
	sum := sha256.Sum256([]byte(record))
	hash := recordHash(sum[:])
	hash[0] &^= 1 << 7 // as no block's number begins
	if in != 0 {
		copy(hash[blockSize:], sum[:])
		binary.BigEndian.PutUint32(hash[:], uint32(in))
	}
	return hash
}

// hashBlock stands for the runs of a block that can't be read. The number of such a run takes the place of a sequence.
// No run of a record has this hash, but for one in 2^48.
func hashBlock(in block) (hash recordHash) {
	binary.BigEndian.PutUint32(hash[:], uint32(in))
	return hash
}

// block is the one that has the events, or 0.
func (h *recordHash) block() block {
	if b := block(binary.BigEndian.Uint32(h[:])); b.valid() {
		return b
	}
	return 0
}

// place is a position in a feed: behind an event, or behind all that was recorded in
// an epoch up to a revision.
type place struct {
	epoch    epoch
	record   recordHash // zero where it is behind no event
	sequence uint64
	revision int64
}

func (p place) behindEvent() bool { return p.sequence > 0 }

// text writes a place as callers see it.
func (p place) text(cell byte) string {
	b := appendEpoch(nil, p.epoch)
	prefix := positionPrefix
	if p.behindEvent() {
		prefix = eventIDPrefix
		b = binary.AppendUvarint(append(b, p.record[:]...), p.sequence)
	} else {
		b = binary.AppendUvarint(b, uint64(p.revision))
	}
	return prefix + string(cell) + feedText.EncodeToString(b)
}

// readPlace reads a place that text has written, and nothing else.
func readPlace(cell byte, text string) (p place, ok bool) {
	rest, isEvent := strings.CutPrefix(text, eventIDPrefix)
	if !isEvent {
		if rest, ok = strings.CutPrefix(text, positionPrefix); !ok {
			return place{}, false
		}
	}
	if len(rest) < 2 || rest[0] != cell {
		return place{}, false
	}
	b, err := feedText.DecodeString(rest[1:])
	if err != nil || len(b) <= epochSize {
		return place{}, false
	}
	p.epoch = epoch(binary.BigEndian.Uint64(b))
	b = b[epochSize:]
	if isEvent {
		if len(b) <= recordHashSize {
			return place{}, false
		}
		p.record = recordHash(b)
		b = b[recordHashSize:]
	}
	number, n := binary.Uvarint(b)
	if n != len(b) {
		return place{}, false
	}
	if isEvent {
		p.sequence = number
	} else {
		p.revision = int64(number)
	}
	return p, p.text(cell) == text
}

// eventID is the id of an event of a record.
func eventID(at site, record string, sequence uint64) string {
	return place{epoch: at.epoch, record: hashRecord(at.block, record), sequence: sequence}.text(store.Cell)
}
