package licensing

import (
	"cmp"
	"time"
)

// lastYear is the last year that RFC 3339 can represent.
const lastYear = 9999

// ValidExpiry reports whether a license may get this end: it must be in the future, and RFC 3339 must
// be able to represent it.
func ValidExpiry(end, now time.Time) bool {
	return end.After(now) && end.UTC().Year() <= lastYear
}

// SuspendLicense suspends a license until it is reinstated. A suspended license keeps its time and
// reason.
type SuspendLicense struct {
	Target
	Reason string // in the shop's words, or empty
}

// DeviceID is empty: no device is touched.
func (SuspendLicense) DeviceID() string { return "" }

func (c SuspendLicense) growth(r *Record, now time.Time) Growth {
	l, err := c.license(r)
	if err != nil || l.Status(now) == Revoked || l.Status(now) == Suspended && l.StateReason != DisputeReason {
		return NoGrowth
	}
	return NoGrowth.withReason(c.Reason)
}

func (c SuspendLicense) apply(r *Record, now time.Time) (Result, error) {
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	switch status := l.Status(now); {
	case status == Revoked:
		return Result{}, invalidLicenseState(Revoked, "suspended")
	case status == Suspended && (l.StateReason != DisputeReason || c.Reason == DisputeReason):
	default: // also if a dispute has suspended the license: so the end of the dispute does not end the suspension
		l.SuspendedAt, l.StateReason = now, c.Reason
		r.recordLicense(l, EventLicenseSuspended, c.By, now, nil)
	}
	return Result{License: *l}, nil
}

// ReinstateLicense ends a suspension: the license returns to its earlier state.
type ReinstateLicense struct{ Target }

// DeviceID is empty: no device is touched.
func (ReinstateLicense) DeviceID() string { return "" }

func (ReinstateLicense) growth(*Record, time.Time) Growth { return NoGrowth }

func (c ReinstateLicense) apply(r *Record, now time.Time) (Result, error) {
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	switch l.Status(now) {
	case Revoked:
		return Result{}, invalidLicenseState(Revoked, "reinstated")
	case Suspended:
		l.SuspendedAt, l.StateReason = time.Time{}, ""
		r.recordLicense(l, EventLicenseReinstated, c.By, now, nil)
	}
	return Result{License: *l}, nil
}

// RevokeLicense disables a license permanently. Its reason replaces the reason of a suspension.
type RevokeLicense struct {
	Target
	Reason string // in the shop's words, or empty
}

// DeviceID is empty: no device is touched.
func (RevokeLicense) DeviceID() string { return "" }

func (c RevokeLicense) growth(r *Record, _ time.Time) Growth {
	if l, err := c.license(r); err != nil || !l.RevokedAt.IsZero() {
		return NoGrowth
	}
	return NoGrowth.withReason(c.Reason)
}

func (c RevokeLicense) apply(r *Record, now time.Time) (Result, error) {
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	if l.RevokedAt.IsZero() {
		l.RevokedAt, l.StateReason = now, c.Reason
		r.recordLicense(l, EventLicenseRevoked, c.By, now, nil)
	}
	return Result{License: *l}, nil
}

// RenewLicense sets a license's end, either to ExpiresAt, or by Extend after the later of now and the
// current end. Exactly one of the two is set. RenewLicense also clears a recorded end, a
// recorded end of the grace, and the notices before the earlier end.
type RenewLicense struct {
	Target
	ExpiresAt time.Time
	Extend    Period
}

// DeviceID is empty: no device is touched.
func (RenewLicense) DeviceID() string { return "" }

func (RenewLicense) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c RenewLicense) apply(r *Record, now time.Time) (Result, error) {
	if !c.ExpiresAt.IsZero() && !ValidExpiry(c.ExpiresAt, now) {
		return Result{}, InvalidField("expires_at", "must be in the future, and not beyond the year 9999")
	}
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	if !l.RevokedAt.IsZero() {
		return Result{}, invalidLicenseState(Revoked, "renewed")
	}
	end := c.ExpiresAt
	if end.IsZero() {
		if end, err = c.extended(l, now); err != nil {
			return Result{}, err
		}
	}
	// A recorded end is renewed even to the same end: a clock that was ahead may have recorded it.
	if !end.Equal(l.ExpiresAt) || !l.Validity.IsZero() || l.endRecorded() {
		l.extendTo(end, now)
		if l.OrderNo != "" {
			l.SetEnd = end
		}
		r.recordLicense(l, EventLicenseRenewed, c.By, now, nil)
	}
	return Result{License: *l}, nil
}

// extendTo sets the end of the license, and forgets what was recorded about an earlier end.
func (l *License) extendTo(end, now time.Time) {
	l.ExpiresAt, l.Validity = end, Period{}
	l.EndRecorded, l.GraceRecorded, l.Notice = time.Time{}, time.Time{}, Notice{}
	l.planEarly(now)
}

// extended returns the end that Extend leads to.
func (c RenewLicense) extended(l *License, now time.Time) (time.Time, error) {
	if l.ExpiresAt.IsZero() {
		return time.Time{}, InvalidField("extend", "must not be used on a license without expires_at")
	}
	from := l.ExpiresAt
	if from.Before(now) {
		from = now
	}
	end := c.Extend.AddTo(from)
	if !end.After(from) || end.Year() > lastYear {
		return time.Time{}, InvalidField("extend", "must move expires_at forward, and not beyond the year 9999")
	}
	return end, nil
}

// UpdateLicense changes the settings of a license in any state.
type UpdateLicense struct {
	Target
	// MaxDevices, if set, is the new device limit; 0: unlimited. A limit below the number of bound
	// devices unbinds none.
	MaxDevices *int
	// Metadata, if set, is a JSON object to merge into the license's metadata; see Metadata.merge.
	Metadata string
	// Entitlements, if set, replace those of the same codes among the license's own, or add to them. Null takes away
	// what the product has.
	Entitlements Entitlements
	// BuyerEmail and CustomerReference, if set, replace those of the license; empty: the license has none.
	BuyerEmail, CustomerReference *string
}

// DeviceID is empty: no device is touched.
func (UpdateLicense) DeviceID() string { return "" }

func (c UpdateLicense) growth(r *Record, now time.Time) Growth {
	l, err := c.license(r)
	switch {
	case err != nil:
		return NoGrowth
	case c.MaxDevices != nil && l.letsBindMore(*c.MaxDevices):
		if c.growthOfMetadata(r, l, now) > UrgentGrowth { // both are refused where either is
			return OrdinaryGrowth
		}
		return UrgentGrowth
	}
	return c.growthOfMetadata(r, l, now)
}

func (c UpdateLicense) growthOfMetadata(r *Record, l *License, now time.Time) Growth {
	switch {
	case !NeedsMetadata(c):
		return NoGrowth
	case r.Metadata == nil: // not read
		return OrdinaryGrowth
	}
	before := *r.Metadata
	next, err := c.metadata(before, l, now)
	if err != nil || next == before {
		return NoGrowth
	}
	return growthFrom(before.size(), next.size())
}

// metadata returns changed metadata of a license.
func (c UpdateLicense) metadata(m Metadata, l *License, now time.Time) (Metadata, error) {
	if c.Metadata != "" {
		if err := m.merge(c.Metadata); err != nil {
			return m, err
		}
	}
	if c.Entitlements != "" {
		own, err := m.Entitlements.merge(c.Entitlements, now)
		if err != nil {
			return m, err
		}
		m.Entitlements, m.Changed = own, m.Changed || own != m.Entitlements
	}
	customer := m.Customer
	if c.BuyerEmail != nil {
		if *c.BuyerEmail != "" && l.OrderNo != "" {
			return m, InvalidField("buyer_email",
				"must not be set for a license with an order: the order names the buyer")
		}
		customer.BuyerEmail = *c.BuyerEmail
	}
	if c.CustomerReference != nil {
		customer.Reference = *c.CustomerReference
	}
	m.Customer, m.Changed = customer, m.Changed || customer != m.Customer
	return m, nil
}

// letsBindMore reports whether another device limit would let more devices be bound as BoundedGrowth. Devices within an
// unlimited license are OrdinaryGrowth.
func (l *License) letsBindMore(limit int) bool {
	return limit > l.CurrentDevices && (l.MaxDevices == 0 || limit > l.MaxDevices)
}

func (c UpdateLicense) apply(r *Record, now time.Time) (Result, error) {
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	if c.MaxDevices != nil {
		if err := cmp.Or(l.Lease.CheckDevices(*c.MaxDevices), checkTrialDevices(l, *c.MaxDevices)); err != nil {
			return Result{}, err
		}
	}
	changed := false
	if NeedsMetadata(c) {
		next, err := c.metadata(*r.Metadata, l, now)
		if err != nil {
			return Result{}, err
		}
		changed = next != *r.Metadata
		*r.Metadata, l.OwnEntitlements = next, next.Entitlements.Version()
	}
	if c.MaxDevices != nil && *c.MaxDevices != l.MaxDevices {
		l.limitDevices(*c.MaxDevices)
		changed = true
	}
	if changed {
		r.recordLicense(l, EventLicenseUpdated, c.By, now, nil)
	}
	return Result{License: *l}, nil
}
