package layout

import (
	"slices"

	"licet/licensing"
)

// SlotMapKey holds the map from slots to cells. A store without the key holds all slots.
const SlotMapKey = CellPrefix + "map"

// Cell is the name of an etcd cluster with its nodes.
type Cell string

// Here is the cell of the store that holds the map.
const Here Cell = ""

// SlotMap says in which cell each slot is. The zero map says that all slots are here.
type SlotMap struct{ moved []movedSlots }

// movedSlots are slots that are in another cell: from First to Last, both included.
type movedSlots struct {
	First, Last licensing.Slot
	Cell        Cell
}

// CellOf returns the cell of a slot.
func (m SlotMap) CellOf(slot licensing.Slot) Cell {
	for _, s := range m.moved {
		if s.First <= slot && slot <= s.Last {
			return s.Cell
		}
	}
	return Here
}

// AllHere reports whether every slot is in the cell of the map.
func (m SlotMap) AllHere() bool { return len(m.moved) == 0 }

// Move returns a map by which slots, from first to last, are in another cell. It does not change m.
func (m SlotMap) Move(first, last licensing.Slot, to Cell) SlotMap {
	return SlotMap{append([]movedSlots{{first, last, to}}, slices.Clone(m.moved)...)}
}

// The fields of the map's value.
const (
	mapMoved = 1 // a message for each range of slots that are in another cell
	mapFirst = 1
	mapLast  = 2
	mapCell  = 3
)

// Encode returns the value of [SlotMapKey].
func (m SlotMap) Encode() []byte {
	b := []byte{formatVersion}
	for _, s := range m.moved {
		moved := appendUint(nil, mapFirst, uint64(s.First))
		moved = appendUint(moved, mapLast, uint64(s.Last))
		b = appendBytes(b, mapMoved, appendString(moved, mapCell, string(s.Cell)))
	}
	return b
}

// DecodeSlotMap decodes the value of [SlotMapKey].
func DecodeSlotMap(value []byte) (m SlotMap, err error) {
	err = DecodeValue(value, func(f Field) error {
		if f.Num != mapMoved {
			return nil
		}
		var s movedSlots
		err := decodeMessage(f.Bytes, func(f Field) error {
			switch f.Num {
			case mapFirst:
				s.First = licensing.Slot(min(f.varint, licensing.Slots))
			case mapLast:
				s.Last = licensing.Slot(min(f.varint, licensing.Slots))
			case mapCell:
				s.Cell = Cell(f.Bytes)
			}
			return nil
		})
		if err == nil && (s.Cell == Here || s.First > s.Last || s.Last >= licensing.Slots) {
			err = ErrMalformed
		}
		m.moved = append(m.moved, s)
		return err
	})
	return m, err
}
