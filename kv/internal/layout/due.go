package layout

import (
	"encoding/binary"
	"time"

	"licet/licensing"
)

// Due is what is due for a record, as the index has it: the moment in milliseconds, and in the last three bits the
// kind. 0: nothing is due.
type Due uint64

const dueKindBits = 3

// DueOf encodes what is due for a record, and when.
func DueOf(d licensing.Due) Due {
	if d.Kind == 0 {
		return 0
	}
	var at int64
	if !d.At.IsZero() {
		at = max(d.At.UnixMilli(), 0)
	}
	return Due(at)<<dueKindBits | Due(d.Kind)
}

func (d Due) kind() licensing.DueKind { return licensing.DueKind(d & (1<<dueKindBits - 1)) }

// At returns the moment at which the action is due.
func (d Due) At() time.Time { return time.UnixMilli(int64(d >> dueKindBits)).UTC() }

// DueFamily begins the keys of the index of records for which work of a kind is due, in the order of time.
func DueFamily(kind licensing.DueKind) string {
	switch kind {
	case licensing.DueLicenseEnd:
		return "x/l/"
	case licensing.DueOrderEnd:
		return "x/o/"
	case licensing.DueLeases:
		return "x/e/"
	case licensing.DueRollout:
		return "x/g/"
	default:
		return "x/r/"
	}
}

// Key returns the key of a record in the index. What follows the time is the record's own key without the layout, slot
// and family.
func (d Due) Key(record string) string {
	return record[:slotPrefixSize] + DueFamily(d.kind()) + string(binary.BigEndian.AppendUint64(nil,
		uint64(d>>dueKindBits))) + record[slotPrefixSize+len("l/"):]
}

// DueRecord decodes an entry of a slot's index of due work: what is due, and for which record. rest is the key behind
// the family of the index.
func DueRecord(slot licensing.Slot, kind licensing.DueKind, rest string, value []byte) (Due, licensing.Ref, bool) {
	if len(rest) < 8 {
		return 0, licensing.Ref{}, false
	}
	d := Due(binary.BigEndian.Uint64([]byte(rest)))<<dueKindBits | Due(kind)
	rest = rest[8:]
	if kind == licensing.DueLicenseEnd || kind == licensing.DueLeases {
		id, ok := LicenseIDOf(slot, rest)
		if !ok || len(value) > 0 {
			return d, licensing.Ref{}, false
		}
		return d, id.Ref(), true
	}
	owner, number, ok := CutOwner(rest)
	if kind == licensing.DueRollout {
		return d, licensing.ProductRef(owner, number), ok && number != "" && len(value) == 0
	}
	return d, licensing.OrderRef(owner, number), ok && licensing.ValidOrderNo(number) && len(value) == 0
}
