package keyspace

import (
	"encoding/binary"
	"iter"
	"slices"
	"time"

	"licet/licensing"
)

// Due is what is due for a record, as the index has it: the moment in milliseconds, and in the last four bits the
// kind. 0: nothing is due.
type Due uint64

const dueKindBits = 4

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

// DueIndex is the index of records for which work of a kind is due, in the order of time.
type DueIndex struct {
	Kind   licensing.DueKind
	Name   string // of the family in a verification
	Family string // begins the keys
	Record licensing.Kind
}

// dueIndexes has all indexes of due work. A new kind of due work needs a row here.
var dueIndexes = []DueIndex{
	{licensing.DueCheckout, "checkout", "x/c/", licensing.KindOrder},
	{licensing.DueIssue, "issue", "x/i/", licensing.KindOrder},
	{licensing.DueLeases, "leases", "x/e/", licensing.KindLicense},
	{licensing.DueRollout, "rollout", "x/g/", licensing.KindProduct},
	{licensing.DueLicenseEnd, "license_end", "x/l/", licensing.KindLicense},
	{licensing.DueLicenseNotice, "license_notice", "x/n/", licensing.KindLicense},
	{licensing.DueOrderEnd, "order_end", "x/o/", licensing.KindOrder},
	{licensing.DueRefund, "refund", "x/r/", licensing.KindOrder},
	{licensing.DueSandbox, "sandbox_renewal", "x/s/", licensing.KindOrder},
	{licensing.DueTrial, "trial_end", "x/t/", licensing.KindLicense},
}

// DueIndexes returns all indexes of due work.
func DueIndexes() iter.Seq[DueIndex] { return slices.Values(dueIndexes) }

// DueIndexOf returns the index of a kind of due work.
func DueIndexOf(kind licensing.DueKind) DueIndex {
	return dueIndexes[slices.IndexFunc(dueIndexes, func(x DueIndex) bool { return x.Kind == kind })]
}

// Key returns the key of a record in the index. What follows the time is the record's own key without the layout, slot
// and family.
func (d Due) Key(record string) string {
	return record[:slotPrefixSize] + DueIndexOf(d.kind()).Family + string(binary.BigEndian.AppendUint64(nil,
		uint64(d>>dueKindBits))) + record[slotPrefixSize+len("l/"):]
}

// Decode decodes an entry of the index in a slot: what is due, and for which record. rest is the key behind the family.
func (x DueIndex) Decode(slot licensing.Slot, rest string, value []byte) (d Due, ref licensing.Ref, ok bool) {
	if len(rest) < TimeSize || len(value) > 0 {
		return 0, ref, false
	}
	d = Due(binary.BigEndian.Uint64([]byte(rest)))<<dueKindBits | Due(x.Kind)
	rest = rest[TimeSize:]
	if x.Record == licensing.KindLicense {
		id, ok := LicenseIDOf(slot, rest)
		return d, id.Ref(), ok
	}
	ref.Kind = x.Record
	ref.Owner, ref.ID, ok = CutOwner(rest)
	return d, ref, ok && ref.ID != "" && (x.Record != licensing.KindOrder || licensing.ValidOrderNo(ref.ID))
}
