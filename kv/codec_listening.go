package kv

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// Field numbers of listenKey's value, of a move in it, and of a request to listen.
const (
	fenceMoved protowire.Number = 2
	fenceMove  protowire.Number = 3 // repeated, the latest first

	moveAfter   protowire.Number = 1
	moveStarted protowire.Number = 2 // repeated
	moveStopped protowire.Number = 3 // repeated

	requestListens protowire.Number = 1
)

const (
	// fenceMoves and fenceOwners bound the latest moves that listenKey names, and the
	// owners in them, about. A store that has missed more reads every listener.
	fenceMoves  = 64
	fenceOwners = 1000
)

// listenFence is listenKey's value. listenKey itself is what changes compare; the value
// names the latest changes, so that a store need not read every owner after each.
type listenFence struct {
	moved int64        // requests to listen written up to this revision of the store are in effect
	moves []listenMove // the latest first
}

// listenMove is one change of listenKey.
type listenMove struct {
	after   int64 // listenKey's revision before the move; 0: there was no such key
	changes []assumption
}

// since returns the moves after a revision of listenKey, the oldest first; nil where not
// all of them are named.
func (f *listenFence) since(revision int64) []listenMove {
	at := slices.IndexFunc(f.moves, func(m listenMove) bool { return m.after == revision })
	if at < 0 {
		return nil
	}
	since := slices.Clone(f.moves[:at+1])
	slices.Reverse(since)
	return since
}

// next is the fence after one more move, without the oldest moves that have no room.
func (f *listenFence) next(m listenMove, moved int64) *listenFence {
	next := &listenFence{moved: moved, moves: []listenMove{m}}
	owners := len(m.changes)
	for _, old := range f.moves {
		owners += len(old.changes)
		if len(next.moves) == fenceMoves || owners > fenceOwners {
			break
		}
		next.moves = append(next.moves, old)
	}
	return next
}

func (f *listenFence) encode() []byte {
	b := appendUint([]byte{formatVersion}, fenceMoved, uint64(f.moved))
	for _, m := range f.moves {
		move := appendUint(nil, moveAfter, uint64(m.after))
		for _, c := range m.changes {
			if c.listens {
				move = appendOwner(move, moveStarted, c.owner)
			} else {
				move = appendOwner(move, moveStopped, c.owner)
			}
		}
		b = appendBytes(b, fenceMove, move)
	}
	return b
}

func decodeListenFence(value []byte) (fence listenFence, err error) {
	err = decodeValue(value, func(f field) error {
		switch f.num {
		case fenceMoved:
			fence.moved = int64(f.varint)
		case fenceMove:
			m, err := decodeListenMove(f.bytes)
			fence.moves = append(fence.moves, m)
			return err
		}
		return nil
	})
	return fence, err
}

func decodeListenMove(b []byte) (m listenMove, err error) {
	err = decodeMessage(b, func(f field) error {
		switch f.num {
		case moveAfter:
			m.after = int64(f.varint)
		case moveStarted, moveStopped:
			owner, err := f.owner()
			if err != nil {
				return err
			}
			m.changes = append(m.changes, assumption{owner, f.num == moveStarted})
		}
		return nil
	})
	return m, err
}

// encodeListenRequest writes what an owner asks for: to listen, or no longer to.
func encodeListenRequest(listens bool) []byte {
	return appendBool([]byte{formatVersion}, requestListens, listens)
}

func decodeListenRequest(value []byte) (listens bool, err error) {
	err = decodeValue(value, func(f field) error {
		if f.num == requestListens {
			listens = f.bool()
		}
		return nil
	})
	return listens, err
}

// assumption says whether an owner listened when a change was made.
type assumption struct {
	owner   licensing.Owner
	listens bool
}
