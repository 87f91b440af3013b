package kv

import (
	"encoding/binary"
	"time"

	"licet/licensing"
)

// due is what is due of a record as its place in the index has it: the kind, in
// the last two bits, and before them the moment in milliseconds. 0: nothing is.
type due uint64

const dueKindBits = 2

func dueOf(d licensing.Due) due {
	if d.Kind == 0 {
		return 0
	}
	var at int64
	if !d.At.IsZero() {
		at = max(d.At.UnixMilli(), 0)
	}
	return due(at)<<dueKindBits | due(d.Kind)
}

func (d due) kind() licensing.DueKind { return licensing.DueKind(d & (1<<dueKindBits - 1)) }

func (d due) at() time.Time { return time.UnixMilli(int64(d >> dueKindBits)).UTC() }

// duePrefix is where the records stand for which something of a kind is due, in
// the order of time.
func duePrefix(kind licensing.DueKind) string {
	switch kind {
	case licensing.DueLicenseEnd:
		return layout + "x/l/"
	case licensing.DueOrderEnd:
		return layout + "x/o/"
	default:
		return layout + "x/r/"
	}
}

// key is a record's place there. What follows the time is the record's own key
// without the layout and family.
func (d due) key(record string) string {
	return duePrefix(d.kind()) + string(binary.BigEndian.AppendUint64(nil, uint64(d>>dueKindBits))) + record[len(layout+"l/"):]
}

// dueRecord reads from a place in the index, given below its prefix, what is due
// and for which record. A license is told by its id; its key's prefix is in the
// value.
func dueRecord(kind licensing.DueKind, rest string, value []byte) (due, licensing.Ref, bool) {
	if len(rest) < 8 {
		return 0, licensing.Ref{}, false
	}
	d := due(binary.BigEndian.Uint64([]byte(rest)))<<dueKindBits | due(kind)
	rest = rest[8:]
	if kind == licensing.DueLicenseEnd {
		id, ok := licenseIDOf(rest)
		if !ok || !licensing.ValidKeyPrefix(string(value)) {
			return d, licensing.Ref{}, false
		}
		return d, licensing.LicenseRef(id.Key(string(value))), true
	}
	owner, number, ok := ownerOf(rest)
	return d, licensing.OrderRef(owner, number), ok && licensing.ValidOrderNo(number) && len(value) == 0
}
