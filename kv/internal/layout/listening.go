package layout

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// Field numbers of ListenKey's value, and of a move in it.
const (
	fenceMoved protowire.Number = 2
	fenceMove  protowire.Number = 3 // repeated, the latest first

	moveAfter   protowire.Number = 1
	moveStarted protowire.Number = 2 // repeated
	moveStopped protowire.Number = 3 // repeated
)

const (
	// MaxListenMoves bounds the latest moves that ListenKey names, and fenceOwners roughly the owners in them. A store
	// that has missed more moves reads every listener.
	MaxListenMoves = 64
	fenceOwners    = 1000
)

// ListenFence is ListenKey's value. Transactions compare ListenKey's revision. The value names the latest changes, so
// that a store need not read every owner after each change.
type ListenFence struct {
	Moved int64        // requests to listen written up to this revision of the store are in effect
	moves []ListenMove // the latest first
}

// ListenMove is one change of ListenKey.
type ListenMove struct {
	After   int64 // ListenKey's revision before the move; 0: there was no such key
	Changes []Listening
}

// Since returns the moves after a revision of ListenKey, the oldest first. It returns nil if the value no longer names
// all of them.
func (f *ListenFence) Since(revision int64) []ListenMove {
	at := slices.IndexFunc(f.moves, func(m ListenMove) bool { return m.After == revision })
	if at < 0 {
		return nil
	}
	since := slices.Clone(f.moves[:at+1])
	slices.Reverse(since)
	return since
}

// Next returns the fence after one more move. It drops the oldest moves that exceed the bounds.
func (f *ListenFence) Next(m ListenMove, moved int64) *ListenFence {
	next := &ListenFence{Moved: moved, moves: []ListenMove{m}}
	owners := len(m.Changes)
	for _, old := range f.moves {
		owners += len(old.Changes)
		if len(next.moves) == MaxListenMoves || owners > fenceOwners {
			break
		}
		next.moves = append(next.moves, old)
	}
	return next
}

// Encode returns the value of [ListenKey].
func (f *ListenFence) Encode() []byte {
	b := appendUint([]byte{formatVersion}, fenceMoved, uint64(f.Moved))
	for _, m := range f.moves {
		move := appendUint(nil, moveAfter, uint64(m.After))
		for _, c := range m.Changes {
			if c.Listens {
				move = appendOwner(move, moveStarted, c.Owner)
			} else {
				move = appendOwner(move, moveStopped, c.Owner)
			}
		}
		b = appendBytes(b, fenceMove, move)
	}
	return b
}

// DecodeListenFence decodes the value of [ListenKey].
func DecodeListenFence(value []byte) (fence ListenFence, err error) {
	err = DecodeValue(value, func(f Field) error {
		switch f.Num {
		case fenceMoved:
			fence.Moved = int64(f.varint)
		case fenceMove:
			m, err := decodeListenMove(f.Bytes)
			fence.moves = append(fence.moves, m)
			return err
		}
		return nil
	})
	return fence, err
}

func decodeListenMove(b []byte) (m ListenMove, err error) {
	err = decodeMessage(b, func(f Field) error {
		switch f.Num {
		case moveAfter:
			m.After = int64(f.varint)
		case moveStarted, moveStopped:
			owner, err := f.owner()
			if err != nil {
				return err
			}
			m.Changes = append(m.Changes, Listening{owner, f.Num == moveStarted})
		}
		return nil
	})
	return m, err
}

// listenRequestTable lists the one field of a request to listen.
func listenRequestTable(listens *bool) fieldTable { return fieldTable{boolField(1, listens)} }

// EncodeListenRequest returns the value of an owner's request to listen, or to listen no longer.
func EncodeListenRequest(listens bool) []byte { return listenRequestTable(&listens).value() }

// DecodeListenRequest reports whether the owner asks to listen.
func DecodeListenRequest(value []byte) (listens bool, err error) {
	err = DecodeValue(value, listenRequestTable(&listens).read)
	return listens, err
}

// Listening is an owner, and whether the owner listens.
type Listening struct {
	Owner   licensing.Owner
	Listens bool
}
