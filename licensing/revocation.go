package licensing

import (
	"crypto/sha256"
	"time"
)

const (
	// maxRevocationsTogether is how many devices of a license one transaction voids the receipts of. Beyond that, it
	// voids all receipts of the license.
	maxRevocationsTogether = 16
	// MaxRevocationsADay is how many devices of a license may get entries of their own in a day, at most: see
	// License.revocationsADay.
	MaxRevocationsADay = 1000
)

// Revocation is an entry in the list of revocations: it voids receipts of a license, or of one device of the license.
type Revocation struct {
	Name     RevocationName
	Revision uint64     // the highest that is void
	Until    ReceiptDay // the first day on which no device accepts a receipt that it voids any more
}

// RevocationName names a license in lists of revocations, or a device of a license; see package receipt.
type RevocationName [16]byte

// RevocationOf returns the name of a license in lists of revocations, or of one of its devices; an empty device stands
// for all.
func RevocationOf(id LicenseID, device string) RevocationName {
	text := "licet revocation\x00" + id.String()
	if device != "" {
		text += "\x00" + device
	}
	sum := sha256.Sum256([]byte(text))
	return RevocationName(sum[:])
}

// RevocationCount counts the entries of a license's devices on a day. A node whose clock is behind, or is not known to
// agree with most clocks, counts on for the same day: the days of nodes that differ must not take turns.
type RevocationCount struct {
	Day   ReceiptDay
	Count uint16
}

// ReceiptDayOf returns the day of a time.
func ReceiptDayOf(t time.Time) ReceiptDay { return ReceiptDay(t.Unix() / int64(day/time.Second)) }

// receiptsOut reports whether devices may accept receipts of the license now. By a clock that the node must not act by,
// they always may: the clock may be ahead. The sweep removes needless entries.
func (r *Record) receiptsOut(now time.Time) bool {
	until := r.License.ReceiptsUntil
	return until != 0 && (!r.ActsByTime || until.Begins().After(now))
}

// voidDevice voids the receipts of a device that loses its slot, after the revision is raised. A lapsed lease has ended
// its receipts already, unless the node does not act by its clock.
func (r *Record) voidDevice(d *Device, now time.Time) {
	l := r.License
	if l.Revision == 0 || !r.receiptsOut(now) || r.ActsByTime && d.Lapsed(now) {
		return
	}
	if today := ReceiptDayOf(now); r.ActsByTime && l.Revocations.Day < today {
		l.Revocations = RevocationCount{Day: today}
	}
	if int(l.Revocations.Count) >= l.revocationsADay() {
		r.voidAll()
		return
	}
	l.Revocations.Count++ // the same whether commands are folded or not
	// Not the end of the lease: the entry may replace one of an earlier and longer lease.
	entry := Revocation{RevocationOf(l.Key.ID(), d.ID), l.voided(), l.ReceiptsUntil}
	for i := range r.Revocations {
		if r.Revocations[i].Name == entry.Name {
			r.Revocations[i] = entry
			return
		}
	}
	if len(r.Revocations) >= maxRevocationsTogether {
		r.voidAll()
		return
	}
	r.Revocations = append(r.Revocations, entry)
}

// revocationsADay returns how many devices of the license may get entries of their own in a day: as many as the license
// has device slots, within bounds. Beyond that, a removal voids all receipts of the license. So no owner fills the
// store, or the list of all customers of an account, by binding and removing devices. A trial gets one entry for all
// its devices, since any client may start trials.
func (l *License) revocationsADay() int {
	switch {
	case l.IsTrial():
		return 0
	case l.MaxDevices == 0:
		return MaxRevocationsADay
	}
	return min(max(l.MaxDevices, maxRevocationsTogether), MaxRevocationsADay)
}

// voidAll voids all receipts of the license, after the revision is raised. It replaces what the record voids already.
func (r *Record) voidAll() {
	l := r.License
	r.Revocations = append(r.Revocations[:0:0], Revocation{RevocationOf(l.Key.ID(), ""), l.voided(), l.ReceiptsUntil})
}

// voided returns the highest revision that a change voids, once the change has raised the license's revision. Receipts
// may have later revisions than the one before the change: a store lost them, which was restored from a backup.
func (l *License) voided() uint64 { return l.Revision - 1 }

// voidsAll reports whether a change of a license voids the receipts from before: it is suspended or revoked, has fewer
// devices, an earlier end, with or without its grace, a new key, or another product.
func (before *shown) voidsAll(after *shown) bool {
	lower := func(from, to int) bool { return to != 0 && (from == 0 || to < from) }
	begins := func(from, to time.Time) bool { return from.IsZero() && !to.IsZero() }
	earlier := func(from, to time.Time) bool { return !to.IsZero() && (from.IsZero() || to.Before(from)) }
	return begins(before.suspended, after.suspended) || begins(before.revoked, after.revoked) ||
		lower(before.max, after.max) || before.keys != after.keys || before.product != after.product ||
		earlier(before.expires, after.expires) || earlier(before.ends, after.ends)
}
