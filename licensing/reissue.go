package licensing

import (
	"encoding/binary"
	"time"
)

// MaxReissues is how many times a license can get a new key.
const MaxReissues = 8

// reissueSize is the length of one entry of Reissues: a block, and two times in milliseconds.
const reissueSize = LicenseBlockSize + 8 + 8

// Reissues lists the keys that a license got after its first one, the oldest first. Each entry has the block of the new
// key, when the license got that key, and until when bound devices may still use the keys before it. The block is what
// would be the id of a license with that key, so it reveals the key as little as an id does.
type Reissues string

// Valid reports whether a text can be a list of reissues.
func (r Reissues) Valid() bool { return len(r)%reissueSize == 0 && r.Count() <= MaxReissues }

// Count returns the number of reissues.
func (r Reissues) Count() int { return len(r) / reissueSize }

// Block returns the block of the key that the license got by reissue i, counted from 0.
func (r Reissues) Block(i int) string { return string(r[i*reissueSize:][:LicenseBlockSize]) }

// At returns when reissue i was made.
func (r Reissues) At(i int) time.Time { return r.time(i, 0) }

// until returns until when bound devices may use the keys before reissue i: 1970 for a reissue without overlap, so that
// it takes effect at once for nodes whose clocks are behind, too.
func (r Reissues) until(i int) time.Time { return r.time(i, 1) }

func (r Reissues) time(i, n int) time.Time {
	ms := binary.BigEndian.Uint64([]byte(r[i*reissueSize+LicenseBlockSize+8*n:][:8]))
	return time.UnixMilli(int64(ms)).UTC()
}

// with returns the list with another reissue. The times of the list never decrease, even if the clock of this node is
// behind the clock of the node that made the reissue before.
func (r Reissues) with(block string, at time.Time, overlap time.Duration) Reissues {
	until := uint64(0)
	if overlap > 0 {
		until = uint64(at.Add(overlap).UnixMilli())
	}
	if n := r.Count(); n > 0 && at.Before(r.At(n-1)) {
		at = r.At(n - 1)
	}
	entry := binary.BigEndian.AppendUint64([]byte(block), uint64(at.UnixMilli()))
	return r + Reissues(binary.BigEndian.AppendUint64(entry, until))
}

// Number returns the number of the reissue that has made the key with a block, counted from 1; 0 if none has.
func (r Reissues) Number(block string) int {
	for i := range r.Count() {
		if r.Block(i) == block {
			return i + 1
		}
	}
	return 0
}

// CurrentKey returns the key that the license has now.
func (l *License) CurrentKey() LicenseKey {
	key := l.Key
	if n := l.Reissues.Count(); n > 0 {
		key = key.WithBy(l.Reissues.Block(n - 1))
	}
	return key
}

// letsReturnLease reports whether a device may give its lease back with the keys before reissue i, although the reissue
// has replaced them: the device could still use them when the lease was last renewed. So a replaced key can remove no
// lease that was taken or renewed with a newer key. lease is nil unless the device gives a lease back.
func (r Reissues) letsReturnLease(i int, lease *Device) bool {
	return lease != nil && (!lease.LastSeenAt.After(r.At(i)) || !lease.LastSeenAt.After(r.until(i)))
}

// seenAt returns when a lease counts as given or renewed that a node gives or renews now: after the last reissue, also
// if the clock of the node that made the reissue was ahead. So no replaced key removes the lease.
func (r Reissues) seenAt(now time.Time) time.Time {
	if n := r.Count(); n > 0 && !now.After(r.At(n-1)) {
		return r.At(n - 1).Add(time.Millisecond)
	}
	return now
}

// checkKey returns why a presented key may not be used: nil for the current key and for an id, and also for an earlier
// key on a bound device while all later reissues let such devices use the earlier key. For lease see letsReturnLease.
func (l *License) checkKey(presented LicenseKey, bound bool, lease *Device, now time.Time) error {
	if presented == l.Key && l.Reissues == "" { // as mostly
		return nil
	}
	number := l.Reissues.reissueOf(presented)
	if number < 0 {
		return ErrLicenseNotFound
	}
	for i := number; i < l.Reissues.Count(); i++ {
		if (!bound || !now.Before(l.Reissues.until(i))) && !l.Reissues.letsReturnLease(i, lease) {
			return ErrLicenseKeyReplaced
		}
	}
	return nil
}

// reissueOf returns the number of the reissue that made a presented key, and so of the reissues that have not replaced
// the key: 0 for the first key of the license and the external key, all for an id; negative if the license has no such
// key.
func (r Reissues) reissueOf(presented LicenseKey) int {
	switch by := presented.By(); {
	case by == byExternalKey:
	case by != "":
		if number := r.Number(by); number > 0 {
			return number
		}
		return -1
	case presented.Prefix() == "":
		return r.Count()
	}
	return 0
}

// overlapEnd returns until when bound devices may use a presented key that has been replaced, and may be used still;
// zero for other keys.
func (r Reissues) overlapEnd(presented LicenseKey) (end time.Time) {
	for i := max(r.reissueOf(presented), 0); i < r.Count(); i++ {
		if until := r.until(i); end.IsZero() || until.Before(end) {
			end = until
		}
	}
	return end
}

// checkReceipt returns why a receipt, issued at a time in whole seconds, proves no right to the license: its device may
// have got it with a key that may not be used any more. The receipt does not say which key that was. So once an overlap
// has passed, receipts from before its end prove nothing. For lease see letsReturnLease.
func (r Reissues) checkReceipt(issued time.Time, lease *Device, now time.Time) error {
	for i := range r.Count() {
		at, until := r.At(i), r.until(i)
		if !now.Before(until) && !(issued.After(at) && issued.After(until)) && !r.letsReturnLease(i, lease) {
			return ErrLicenseKeyReplaced
		}
	}
	return nil
}

// ReissueLicense gives a license a new key in place of the current one. Devices, counts and the id stay.
type ReissueLicense struct {
	Target
	New     LicenseKey    // as keyring.LicenseKeys.MintReissued returned it
	Overlap time.Duration // how long bound devices may still use the earlier keys
	Reason  string        // in the shop's words, or empty
}

// DeviceID is empty: no device is touched.
func (ReissueLicense) DeviceID() string { return "" }

func (c ReissueLicense) growth(r *Record, _ time.Time) Growth {
	if l, err := c.license(r); err != nil || !l.RevokedAt.IsZero() || l.Reissues.Count() >= MaxReissues {
		return NoGrowth
	}
	return UrgentGrowth
}

func (c ReissueLicense) apply(r *Record, now time.Time) (Result, error) {
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	switch {
	case !l.RevokedAt.IsZero():
		return Result{}, invalidLicenseState(Revoked, "reissued")
	case l.Reissues.Count() >= MaxReissues:
		return Result{}, ErrReissueLimit
	}
	l.Reissues = l.Reissues.with(c.New.By(), now, c.Overlap)
	if r.Metadata.ReissueReason != c.Reason {
		r.Metadata.ReissueReason, r.Metadata.Changed = c.Reason, true
	}
	r.NewAliases = append(r.NewAliases, c.New.Alias())
	r.recordLicense(l, EventLicenseReissued, c.By, now, nil)
	return Result{License: *l}, nil
}
