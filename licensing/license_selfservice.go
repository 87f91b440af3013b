package licensing

import (
	"cmp"
	"errors"
	"math"
	"time"
)

// NotBound is the reason why a license is not valid on a device that is not bound to it. No Error has
// this reason.
const NotBound Reason = "device_not_bound"

// ValidateLicense asks whether a device may use a license. For a bound device it updates when the
// device was last seen, as Activate does, and records until when a receipt is valid. It changes nothing else.
type ValidateLicense struct {
	Target
	ProductID string // the product that the license must be of, or empty
	Device    string
	SeenStep  time.Duration // see Activate
	Lease     time.Duration // see Activate; only a lease that has not lapsed is renewed
	Receipt   ReceiptAsk
}

// DeviceID returns the device to validate.
func (c ValidateLicense) DeviceID() string { return c.Device }

func (ValidateLicense) growth(*Record, time.Time) Growth { return NoGrowth }

func (c ValidateLicense) apply(r *Record, now time.Time) (result Result, err error) {
	l, err := c.license(r)
	if err != nil {
		return result, err
	}
	entry := r.Devices[c.Device]
	mayUse, doubt := r.mayUse(c.Device, now), cmp.Or(r.clockInDoubt(), r.receiptInDoubt(c.Receipt))
	replaced := l.checkKey(c.Key, mayUse, nil, now)
	if errors.Is(replaced, ErrLicenseNotFound) {
		return Result{}, replaced
	}
	invalid := l.unusable(c.ProductID, mayUse, now)
	var why Reason
	switch {
	case replaced != nil:
		why = ReasonLicenseKeyReplaced
	case invalid != nil:
		why = invalid.Reason
	case !mayUse:
		why = NotBound
	case doubt != nil:
		return Result{}, doubt
	case l.Lease.Leased():
		new(Activate).renewLease(r, entry, l.Lease.lengthFor(c.Lease), now)
	default:
		(&Activate{SeenStep: c.SeenStep}).refresh(r, entry, now)
	}
	r.leased(&result, &entry.Device, now)
	if result.Invalid = why; why == "" {
		r.receipt(&result, c.Receipt, c.Key, now)
	}
	return result, nil
}

// WithoutRefresh returns a command that does the same, except that it does not note that a bound device was seen. A
// receipt that the license's terms add, and the request does not ask for, is left out if it would change the license.
func WithoutRefresh(c Command) Command {
	switch c := c.(type) {
	case Activate:
		c.SeenStep, c.Receipt = math.MaxInt64, c.Receipt|askRecorded
		return c
	case ValidateLicense:
		c.SeenStep, c.Receipt = math.MaxInt64, c.Receipt|askRecorded
		return c
	}
	return c
}

// unusable returns why a device can't use a license for a product now, or nil. An empty product matches all. In the
// grace after the end, bound devices go on, and so does any device of a license with leases.
func (l *License) unusable(productID string, mayUse bool, now time.Time) *Error {
	if productID != "" && productID != l.ProductID {
		return ErrProductMismatch
	}
	switch l.Status(now) {
	case Revoked:
		return ErrLicenseRevoked
	case Suspended:
		return ErrLicenseSuspended
	case Expired:
		if !mayUse && !l.Lease.Leased() || !l.InGrace(l.LeaseTime(now)) {
			return ErrLicenseExpired
		}
	}
	return nil
}

// DeactivateDevice unbinds a device at its user's request. The license's terms must allow that. If
// they limit the number of removals, only bound devices count.
type DeactivateDevice struct {
	Target
	Device string
	// ReceiptAt is when the receipt was issued that proves the right to remove the device, in whole seconds. A device
	// that was bound later stays bound, and a key that was replaced later may not be used. Zero: the key is the proof.
	ReceiptAt time.Time
	// ReceiptRevision is the revision that the receipt shows. A removal raises the revision of the license: a receipt
	// with the license's own revision is of the present binding, also if the clocks of two nodes differ.
	ReceiptRevision uint64
}

// DeviceID returns the device to remove.
func (c DeactivateDevice) DeviceID() string { return c.Device }

func (DeactivateDevice) growth(*Record, time.Time) Growth { return NoGrowth }

func (c DeactivateDevice) apply(r *Record, now time.Time) (Result, error) {
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	mayUse := r.mayUse(c.Device, now)
	var lease *Device // which the device gives back
	if mayUse && l.Lease.Leased() {
		lease = &r.Devices[c.Device].Device
	}
	if err := l.checkKey(c.Key, mayUse, lease, now); err != nil {
		return Result{}, err
	}
	if !c.ReceiptAt.IsZero() {
		if err := l.Reissues.checkReceipt(c.ReceiptAt, lease, now); err != nil {
			return Result{}, err
		}
		if entry := r.Devices[c.Device]; entry != nil && entry.Bound && c.ReceiptRevision < l.Revision &&
			entry.Device.BoundAt.Truncate(time.Second).After(c.ReceiptAt) {
			return Result{License: *l}, nil
		}
	}
	remove := RemoveDevice{Target: c.Target, Device: c.Device}
	if l.Lease.Leased() { // a lease may be given back although the terms allow no removals
		return remove.apply(r, now)
	}
	if !l.SelfService.Allowed {
		return Result{}, ErrSelfService
	}
	if most := l.SelfService.RemovalsPerMonth; most > 0 && r.Devices[c.Device].Bound {
		removals := l.Removals.in(now)
		if removals.Count >= most {
			return Result{}, removalsUsedUp(l)
		}
		removals.Count++
		l.Removals = removals
	}
	return remove.apply(r, now)
}

// Removals counts the devices that end users have removed in a calendar month of UTC.
type Removals struct {
	Month int // since the beginning of year 0; 0 if no device was ever removed
	Count int
}

// in returns the count for the month of a moment. A clock that is behind never returns to an earlier
// month.
func (m Removals) in(now time.Time) Removals {
	now = now.UTC()
	if month := 12*now.Year() + int(now.Month()) - 1; month > m.Month {
		return Removals{Month: month}
	}
	return m
}
