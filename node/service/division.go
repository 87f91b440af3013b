package service

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// A node sweeps only some of the slots in which work is due: the nodes that are up divide the slots by rendezvous
// hashing. For each slot a node has a rank, a hash of the node, the slot and the period, and the node with the highest
// rank sweeps the slot. So if a node comes or goes, only slots of this node change hands. Nodes that know of different
// nodes for a moment sweep some slots twice, which is harmless, or not at all until the next pass.
//
// A period is a span of time in which each node makes at least two passes. The nodes divide the slots again for each
// period, so a node that is up and can't sweep, such as a node with a wrong clock, keeps no slot waiting for longer.

// passesPerPeriod is how many times a period is longer than the average time between two passes.
const passesPerPeriod = 4

// ownSlots returns the slots that this node sweeps at a time. A node sweeps all slots if it is not registered among the
// nodes that are up, or knows of none.
func (s *core) ownSlots(slots []licensing.Slot, now time.Time) []licensing.Slot {
	nodes := s.cfg.Clocks.Nodes()
	if !slices.Contains(nodes, s.cfg.Self) {
		return slots
	}
	period := now.UnixNano() / int64(passesPerPeriod*s.cfg.SweepEvery)
	return slices.DeleteFunc(slots, func(slot licensing.Slot) bool {
		return nodeOf(slot, period, nodes) != s.cfg.Self
	})
}

// nodeOf returns the node that sweeps a slot in a period.
func nodeOf(slot licensing.Slot, period int64, nodes []store.Incarnation) store.Incarnation {
	return slices.MaxFunc(nodes, func(a, b store.Incarnation) int {
		x, y := rankOf(a, slot, period), rankOf(b, slot, period)
		return bytes.Compare(x[:], y[:])
	})
}

func rankOf(node store.Incarnation, slot licensing.Slot, period int64) [sha256.Size]byte {
	input := append(make([]byte, 0, 32), node[:]...)
	input = binary.BigEndian.AppendUint16(input, uint16(slot))
	return sha256.Sum256(binary.BigEndian.AppendUint64(input, uint64(period)))
}
