package layout

import "licet/licensing"

// Cell is the name of an etcd cluster with its nodes.
type Cell string

// Here is the cell of the store that contains the map.
const Here Cell = ""

// SlotMap says in which cell each slot is: the first element with the slot counts. A slot that no element has is here.
type SlotMap []MovedSlots

// MovedSlots are slots that are in another cell: from First to Last, both included.
type MovedSlots struct {
	First, Last licensing.Slot
	Cell        Cell
}

// CellOf returns the cell of a slot.
func (m SlotMap) CellOf(slot licensing.Slot) Cell {
	for _, s := range m {
		if s.First <= slot && slot <= s.Last {
			return s.Cell
		}
	}
	return Here
}

// AllHere reports whether every slot is in the cell of the map.
func (m SlotMap) AllHere() bool { return len(m) == 0 }

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
	for _, s := range m {
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
		var s MovedSlots
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
		m = append(m, s)
		return err
	})
	return m, err
}
