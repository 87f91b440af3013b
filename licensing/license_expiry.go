package licensing

import "time"

// ExpireLicense records that a license's end has come. That changes nothing but
// that it is recorded: the status follows from the time, and was expired before.
// An end that has not come, was moved, or is recorded already is left as it is:
// the sweep that sends this may come late.
type ExpireLicense struct {
	Key    LicenseKey
	Margin time.Duration // how long ago it must have come by now, since a clock may run ahead
}

// DeviceID is empty: no device is touched.
func (ExpireLicense) DeviceID() string { return "" }

func (c ExpireLicense) apply(r *Record, now time.Time) (Result, error) {
	l, err := Target{Key: c.Key}.license(r)
	if err != nil {
		return Result{}, err
	}
	if due := l.Due(); due.Kind == DueLicenseEnd && !due.At.After(now.Add(-c.Margin)) {
		l.EndRecorded = l.ExpiresAt
		r.tellLicense(l, EventLicenseExpired, System, now, nil)
	}
	return Result{License: *l}, nil
}
