package licensing

import "time"

// ExpireLicense records that a license has ended. The status does not change: it follows from the
// time. ExpireLicense is a no-op if the end is in the future, was moved, or is recorded already: the
// sweep that runs it may be late.
type ExpireLicense struct {
	Key    LicenseKey
	Margin time.Duration // how long ago the end must be, since clocks may differ
}

// DeviceID is empty: no device is touched.
func (ExpireLicense) DeviceID() string { return "" }

func (ExpireLicense) growth(*Record, time.Time) Growth { return BoundedGrowth }

func (c ExpireLicense) apply(r *Record, now time.Time) (Result, error) {
	l, err := Target{Key: c.Key}.license(r)
	if err != nil {
		return Result{}, err
	}
	if due := l.Due(); due.Kind == DueLicenseEnd && !due.At.After(now.Add(-c.Margin)) {
		l.EndRecorded = l.ExpiresAt
		r.recordLicense(l, EventLicenseExpired, System, now, nil)
	}
	return Result{License: *l}, nil
}
