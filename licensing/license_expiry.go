package licensing

import "time"

// ExpireLicense records that a license has ended, and that its grace has. From then on the license is expired, or its
// grace is over, for every clock, until a renewal. ExpireLicense is a no-op if the end is after Before, was moved, or
// is recorded already: the sweep that runs it may be late. The end of a grace has no event.
//
// The sweep, not the moment of the swap, decides what has ended: the sweep has checked its clock, and
// the clock may be set forward before the swap.
type ExpireLicense struct {
	Before time.Time // the latest end to record: the time of the sweep less a margin
}

// DeviceID is empty: no device is touched.
func (ExpireLicense) DeviceID() string { return "" }

func (ExpireLicense) growth(*Record, time.Time) Growth { return BoundedGrowth }

func (c ExpireLicense) apply(r *Record, now time.Time) (Result, error) {
	l := r.License
	if l == nil {
		return Result{}, ErrLicenseNotFound
	}
	ended := l.awaitsEnd() && !l.ExpiresAt.After(c.Before)
	if ended {
		l.EndRecorded = l.ExpiresAt
	}
	if over := l.GraceEndsAt(); l.awaitsGraceEnd() && !over.After(c.Before) {
		l.GraceRecorded, r.Changed = over, true
	}
	if ended {
		r.recordLicense(l, EventLicenseExpired, System, now, nil)
	}
	return Result{License: *l}, nil
}
