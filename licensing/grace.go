package licensing

import "time"

// maxGrace is the longest grace.
var maxGrace = Period{Years: 1}

// GraceProblem returns what is wrong with a grace; "": nothing.
func GraceProblem(grace Period) string {
	leap := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	if grace.AddTo(leap).After(maxGrace.AddTo(leap)) {
		return "must be at most a year, P1Y"
	}
	return ""
}

// GraceEndsAt returns the end of the grace, which begins at ExpiresAt; zero: there is none.
func (l *License) GraceEndsAt() time.Time {
	if l.Grace.IsZero() || l.ExpiresAt.IsZero() {
		return time.Time{}
	}
	if end := l.Grace.AddTo(l.ExpiresAt); end.Year() <= lastYear {
		return end
	}
	return time.Date(lastYear, 12, 31, 23, 59, 59, 0, time.UTC)
}

// InGrace reports whether the license has expired, and its devices may go on until GraceEndsAt.
func (l *License) InGrace(now time.Time) bool {
	return !l.Grace.IsZero() && l.Status(now) == Expired && !l.graceRecorded() && l.GraceEndsAt().After(now)
}

// graceRecorded reports whether a sweep has recorded the end of the grace as past. Then the grace is over for every
// clock. A renewal, or a longer grace, begins it again.
func (l *License) graceRecorded() bool {
	return !l.GraceRecorded.IsZero() && !l.GraceRecorded.Before(l.GraceEndsAt())
}

// awaitsGraceEnd reports whether the license has ended, and the end of its grace is not recorded.
func (l *License) awaitsGraceEnd() bool {
	return !l.Grace.IsZero() && l.RevokedAt.IsZero() && l.endRecorded() && !l.graceRecorded()
}

// lastsFor returns when a lease ends that is given or renewed at a time: no lease outlasts the grace.
func (l *License) lastsFor(length time.Duration, at time.Time) time.Time {
	end := at.Add(length)
	if l.Grace.IsZero() {
		return end
	}
	return earlierEnd(end, l.GraceEndsAt())
}

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
