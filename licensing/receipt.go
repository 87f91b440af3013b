package licensing

import (
	"cmp"
	"math"
	"time"
)

// ReceiptTerms say when responses about a license carry receipts, and for how long these are valid. With the zero
// ReceiptTerms, requests must ask for receipts.
type ReceiptTerms struct {
	ValiditySeconds uint32 // 0: DefaultReceiptValidity
	Always          bool   // every activation, validation and trial carries a receipt
	// RevocationAgeSeconds is how long a receipt counts without a newer list of revocations; 0: until its end.
	RevocationAgeSeconds uint32
}

// Validity returns how long a receipt is valid unless the request asks for less.
func (t ReceiptTerms) Validity() time.Duration {
	return cmp.Or(time.Duration(t.ValiditySeconds)*time.Second, DefaultReceiptValidity)
}

// ReceiptAsk is a request's wish for a receipt; 0: none. It is one number, so that an activation without a receipt
// takes no more memory.
type ReceiptAsk uint32

const (
	askWanted ReceiptAsk = 1 << iota
	askFresh
	askRecorded // unless wanted, only a receipt that the license's record allows for already
	askSeconds  // and above
)

// AskReceipt returns the wish for a receipt that is valid for at most a time, 0: for as long as the license's terms
// say. A fresh receipt has the time of the request; all others of a minute are the same. Not wanted: only if the
// license's terms always lead to a receipt.
func AskReceipt(wanted, fresh bool, longest time.Duration) ReceiptAsk {
	ask := askSeconds * ReceiptAsk(min(longest, MaxReceiptValidity)/time.Second)
	if wanted {
		ask |= askWanted
	}
	if fresh {
		ask |= askFresh
	}
	return ask
}

// Wanted reports whether the request asks for a receipt.
func (a ReceiptAsk) Wanted() bool { return a&askWanted != 0 }

// ReceiptTimes are the times of a receipt to sign, in whole seconds. The zero ReceiptTimes are no receipt.
type ReceiptTimes struct {
	IssuedAt, ExpiresAt  time.Time
	RevocationAgeSeconds uint32 // see ReceiptTerms
}

// length returns how long a receipt is valid that a request asks for.
func (t ReceiptTerms) length(ask ReceiptAsk) time.Duration {
	if asked := time.Duration(ask/askSeconds) * time.Second; asked != 0 {
		return min(t.Validity(), asked)
	}
	return t.Validity()
}

// counts returns how long a device accepts a receipt without a newer document.
func (t ReceiptTerms) counts(ask ReceiptAsk) time.Duration {
	if age := time.Duration(t.RevocationAgeSeconds) * time.Second; age != 0 {
		return min(t.length(ask), age)
	}
	return t.length(ask)
}

// DocumentClock says how a node dates documents: receipts and sets of receipt keys. A node dates them by the earliest
// of the nodes' clocks. Any of these clocks may be right. A document from the future would keep a void receipt alive
// for longer, and devices refuse it if it is minutes ahead; a document from the past only ends sooner. nil: all clocks
// agree. A DocumentClock never changes.
type DocumentClock struct {
	Ahead time.Duration // by how much the node's clock is ahead of the earliest clock, at most
	Apart time.Duration // by how much the latest clock is ahead of the earliest clock, at most
}

// ClocksUnknown is the DocumentClock of a node that dates no documents, since its clock is not compared.
func ClocksUnknown() *DocumentClock { return &DocumentClock{Apart: math.MaxInt64} }

// Dates reports whether the node may date a document that counts for a time: whichever clock is right, the document
// counts for half of that time at least.
func (d *DocumentClock) Dates(counts time.Duration) bool { return d == nil || d.Apart < counts/2 }

// Time returns the time of the earliest clock when the node's clock shows now.
func (d *DocumentClock) Time(now time.Time) time.Time {
	if d == nil {
		return now
	}
	return now.Add(-d.Ahead)
}

// Behind returns by how much the latest of the nodes' clocks is ahead of the node's clock, at most; negative: the
// clocks are not compared.
func (d *DocumentClock) Behind() time.Duration {
	switch {
	case d == nil:
		return 0
	case d.Apart == math.MaxInt64:
		return -1
	}
	return d.Apart - d.Ahead
}

// ReceiptDay counts days since the beginning of 1970 in UTC.
type ReceiptDay uint32

// Begins returns when the day begins.
func (d ReceiptDay) Begins() time.Time { return time.Unix(int64(d)*int64(day/time.Second), 0).UTC() }

// DatesDocument returns for how long a document counts that a command may lead to: a receipt, or a set of receipt keys.
// Zero: the command leads to none.
func (r *Record) DatesDocument(c Command) time.Duration {
	switch c := c.(type) {
	case Activate:
		return r.datesReceipt(c.Receipt)
	case ValidateLicense:
		return r.datesReceipt(c.Receipt)
	case StartTrial:
		return c.Terms.Receipts.counts(c.Receipt)
	case MakeReceiptKeys, RotateReceiptKeys:
		return MaxReceiptValidity
	}
	return 0
}

func (r *Record) datesReceipt(ask ReceiptAsk) time.Duration {
	if r.License == nil || !ask.Wanted() && !r.License.Receipts.Always {
		return 0
	}
	return r.License.Receipts.counts(ask)
}

// receiptInDoubt refuses a request for a receipt on a node that can't date it. Another node, or this one later, can
// answer the request. A request that does not ask is answered without a receipt, since its program may not need any.
func (r *Record) receiptInDoubt(ask ReceiptAsk) error {
	if ask.Wanted() && !r.Documents.Dates(r.License.Receipts.counts(ask)) {
		return ErrClockInDoubt
	}
	return nil
}

// receiptStep is how long receipts that are not fresh have the same time, or a tenth of the time for which they count.
const receiptStep = time.Minute

// receipt returns the times of a receipt for a device that may use the license now by the presented key, and records
// until which day a receipt may be valid. A day is the step, so that receipts cause at most one change of the license a
// day.
func (r *Record) receipt(result *Result, ask ReceiptAsk, presented LicenseKey, now time.Time) {
	l := r.License
	counts := r.datesReceipt(ask)
	if counts == 0 || !r.Documents.Dates(counts) {
		return
	}
	last := lastReceipt(l, &result.Device, presented, now)
	if until := receiptsUntil(last); until > l.ReceiptsUntil {
		if ask&askRecorded != 0 && !ask.Wanted() {
			return
		}
		l.ReceiptsUntil, l.Revision, r.Changed = until, cmp.Or(l.Revision, nextRevision(0, now)), true
	}
	t, step := &result.Receipt, time.Second
	t.RevocationAgeSeconds = l.Receipts.RevocationAgeSeconds
	if ask&askFresh == 0 {
		step = max(min(receiptStep, counts/10).Truncate(time.Second), time.Second)
	}
	t.IssuedAt = r.documentTime(now).Truncate(step)
	if t.ExpiresAt = t.IssuedAt.Add(l.Receipts.length(ask)); t.ExpiresAt.After(last) {
		t.ExpiresAt = last.Truncate(time.Second)
	}
	result.License.Revision, result.License.ReceiptsUntil = l.Revision, l.ReceiptsUntil
}

// documentTime returns the time of a receipt: nothing that was acknowledged before has voided the receipt. The swap
// that stores a changed record proves this for now. Else only the read of the record does, and another node may have
// voided the receipt since. A receipt that is older than the binding of its device proves less, see DeactivateDevice.
func (r *Record) documentTime(now time.Time) time.Time {
	at := r.Documents.Time(now)
	if !r.Changed {
		at = at.Add(-r.ReadAgo)
	}
	return at
}

// RecordsReceipt reports whether Apply would store another day for a receipt of a bound device that a request asks for.
func RecordsReceipt(r *Record, cmd Command, now time.Time) bool {
	var ask ReceiptAsk
	var product string
	var key LicenseKey
	switch c := cmd.(type) {
	case Activate:
		ask, product, key = c.Receipt, c.ProductID, c.Key
	case ValidateLicense:
		ask, product, key = c.Receipt, c.ProductID, c.Key
	}
	l := r.License
	return ask.Wanted() && l != nil && r.Devices.bound(cmd.DeviceID()) && l.unusable(product, true, now) == nil &&
		l.checkKey(key, true, nil, now) == nil && r.Documents.Dates(l.Receipts.counts(ask)) &&
		receiptsUntil(lastReceipt(l, &r.Devices[cmd.DeviceID()].Device, key, now)) > l.ReceiptsUntil
}

// lastReceipt returns the latest end of a receipt for a device that presents a key. A receipt ends with the overlap of
// a key that has been replaced: no entry of a list would void the receipt then.
func lastReceipt(l *License, d *Device, presented LicenseKey, now time.Time) time.Time {
	last := now.Add(l.Receipts.Validity())
	for _, end := range []time.Time{l.usedUntil(), d.LeaseEnd, l.Reissues.overlapEnd(presented)} {
		if !end.IsZero() && end.Before(last) {
			last = end
		}
	}
	return last
}

// usedUntil returns when the license ends with its grace; zero: never.
func (l *License) usedUntil() time.Time {
	if grace := l.GraceEndsAt(); !grace.IsZero() {
		return grace
	}
	return l.ExpiresAt
}

// receiptsUntil returns the first day on which no device accepts a receipt any more that ends at a time, also if the
// clock of the device is behind.
func receiptsUntil(end time.Time) ReceiptDay {
	t := end.Add(ReceiptLeeway)
	return ReceiptDay((t.UnixMilli() + day.Milliseconds() - 1) / day.Milliseconds())
}

// raiseRevision notes a change that receipts of the license show.
func (l *License) raiseRevision(now time.Time) {
	if l.Revision != 0 {
		l.Revision = nextRevision(l.Revision, now)
	}
}

// nextRevision returns a higher revision, at least the Unix seconds: so a license in a store that was restored from a
// backup soon has later revisions than the lost store has given out.
func nextRevision(before uint64, now time.Time) uint64 {
	return max(before+1, uint64(max(now.Unix(), 0)))
}

// receiptFacts are what receipts of a license show, apart from the device. Removals and leases of devices raise the
// revision by themselves, and a new key voids the receipts before.
type receiptFacts struct {
	max                          int
	product                      string
	terms, own                   TermsVersion
	expires, ends                time.Time // ends: with the grace
	suspended, revoked, recorded time.Time
	grace                        Period
	graceRecorded                time.Time
	active, trial                bool
	keys                         Reissues
	revocationAge                uint32
}

func (l *License) receiptFacts() receiptFacts {
	return receiptFacts{
		max: l.MaxDevices, product: l.ProductID, active: l.CurrentDevices > 0, terms: l.Terms, own: l.OwnEntitlements,
		expires: l.ExpiresAt, ends: l.usedUntil(), suspended: l.SuspendedAt, revoked: l.RevokedAt,
		recorded: l.EndRecorded, grace: l.Grace, graceRecorded: l.GraceRecorded, trial: l.IsTrial(), keys: l.Reissues,
		revocationAge: l.Receipts.RevocationAgeSeconds,
	}
}

// applyShown runs a command on a license for which there are receipts, and raises the revision if the command has
// changed what receipts show.
func applyShown(r *Record, c Command, now time.Time) (Result, error) {
	before, revision := r.License.receiptFacts(), r.License.Revision
	result, err := c.apply(r, now)
	l, after := r.License, r.License.receiptFacts()
	if after != before {
		if l.Revision == revision {
			l.raiseRevision(now)
		}
		if r.receiptsOut(now) && before.voidsAll(&after) {
			r.voidAll()
		}
	}
	if err == nil {
		result.License.Revision = r.License.Revision
	}
	return result, err
}
