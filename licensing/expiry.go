package licensing

import (
	"slices"
	"strconv"
	"time"
)

// Limits of the days of [EventLicenseExpiring].
const (
	MaxExpiringDays = 5  // of an account
	MaxExpiringDay  = 60 // before the end of a license
)

// noticeHorizon is how long before the end of a license a sweep plans its notices: a day before the first may be due.
const noticeHorizon = (MaxExpiringDay + 1) * day

const day = 24 * time.Hour

// ExpiringDays say how many days before the end of a license the service records EventLicenseExpiring: different
// numbers in descending order, a byte each.
type ExpiringDays string

// defaultExpiringDays are those of an account that has not chosen any.
const defaultExpiringDays ExpiringDays = "\x1e\x07\x01"

// NewExpiringDays returns days in any order. It reports whether they are within the limits, each once.
func NewExpiringDays(days []int64) (ExpiringDays, bool) {
	days = slices.Clone(days)
	slices.Sort(days)
	var all []byte
	for i, d := range slices.Backward(days) {
		if d < 1 || d > MaxExpiringDay || i > 0 && d == days[i-1] {
			return "", false
		}
		all = append(all, byte(d))
	}
	return ExpiringDays(all), len(all) <= MaxExpiringDays
}

// Numbers returns the days as numbers.
func (d ExpiringDays) Numbers() []int {
	numbers := make([]int, len(d))
	for i := range len(d) {
		numbers[i] = int(d[i])
	}
	return numbers
}

// Notice is the next EventLicenseExpiring of a license. The zero Notice is not planned.
type Notice struct {
	End time.Time // the ExpiresAt that the notice is for; the Notice is void once ExpiresAt differs
	Day int       // how many days before End it is due; 0: there is no further notice
}

// noticeAt returns when a notice a number of days before the license's end is due.
func (l *License) noticeAt(days int) time.Time { return l.ExpiresAt.Add(-time.Duration(days) * day) }

// planned reports whether the notices before the present end are planned.
func (l *License) planned() bool { return l.Notice.End.Equal(l.ExpiresAt) }

// awaitsEnd reports whether the license has an end that is not recorded. A revoked license has no end to record.
func (l *License) awaitsEnd() bool {
	return !l.ExpiresAt.IsZero() && l.RevokedAt.IsZero() && !l.endRecorded()
}

// NoticeDue reports whether GiveNotice has something to do.
func (l *License) NoticeDue(now time.Time) bool {
	switch {
	case !l.awaitsEnd() || !l.ExpiresAt.After(now):
		return false
	case l.planned():
		return l.Notice.Day > 0 && !l.noticeAt(l.Notice.Day).After(now)
	}
	return l.ExpiresAt.Sub(now) <= noticeHorizon
}

// planEarly plans the next notice, for accounts with any days, of a license that a sweep may not find by its end: Due
// returns the end of its leases, or the time at which its trial is forgotten, if that is earlier.
func (l *License) planEarly(now time.Time) {
	swept := l.Lease.Leased() || !l.Trial.IsZero() && !l.IsTrial()
	if !swept || l.planned() || !l.awaitsEnd() || !l.ExpiresAt.After(now) {
		return
	}
	days := int(l.ExpiresAt.Sub(now) / day)
	if !l.noticeAt(days).After(now) {
		days--
	}
	l.Notice = Notice{End: l.ExpiresAt, Day: max(0, min(days, MaxExpiringDay))}
}

// NoticesUntil returns the latest end of the licenses whose notices are to be planned now.
func NoticesUntil(now time.Time) time.Time { return now.Add(noticeHorizon) }

// GiveNotice records that a license ends soon, and plans the next such event, or it plans the first one. A plan leaves
// out the events whose time has passed: for a license of two weeks, nothing is recorded 30 days before its end. If a
// sweep is so late that the times of several planned events have passed, it records only the last of them.
//
// As for ExpireLicense, the sweep has checked its clock, and its time decides.
type GiveNotice struct {
	Now  time.Time // of the sweep
	Days ExpiringDays
}

// DeviceID is empty: no device is touched.
func (GiveNotice) DeviceID() string { return "" }

func (GiveNotice) growth(*Record, time.Time) Growth { return BoundedGrowth }

func (c GiveNotice) apply(r *Record, now time.Time) (Result, error) {
	l := r.License
	if l == nil {
		return Result{}, ErrLicenseNotFound
	}
	if !l.NoticeDue(c.Now) {
		return Result{License: *l}, nil
	}
	given, next := 0, 0
	for _, days := range c.Days.Numbers() {
		switch due := !l.noticeAt(days).After(c.Now); {
		case !due:
			next = max(next, days)
		case l.planned() && days <= l.Notice.Day:
			given = days
		}
	}
	l.Notice = Notice{End: l.ExpiresAt, Day: next}
	r.Changed = true
	if given > 0 {
		r.recordLicense(l, EventLicenseExpiring, System, now, nil)
		r.Events[len(r.Events)-1].Members = []EventMember{{Name: "days_before_end", JSON: strconv.Itoa(given)}}
	}
	return Result{License: *l}, nil
}

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
