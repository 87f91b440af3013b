package licensing

import (
	"slices"
	"strconv"
	"time"
)

// DueKind is a kind of work that a record needs at some time without a request.
type DueKind byte

// The kinds of due work.
const (
	DueLicenseEnd    DueKind = iota + 1 // record the end of a license, see ExpireLicense
	DueOrderEnd                         // record the end of an order, see ExpireOrder
	DueRefund                           // ask the payment provider for a refund, see TryRefund
	DueRollout                          // continue a rollout of a product, see AdvanceRollout
	DueLeases                           // remove lapsed leases of a license, see LapseLeases
	DueTrial                            // forget the trial of a license, see ForgetTrial
	DueLicenseNotice                    // record the next notice of a license, its end, or the end of its grace
	DueCheckout                         // ask the payment provider about a checkout, subscription or disputes
	DueIssue                            // issue or change the other licenses: see IssueLicenses, ChangeOthers
	DueSandbox                          // ask the sandbox about the subscription of an order
)

// Due is the next work that a record needs, and its time. The zero Due is no work. Due follows from
// the record alone, so a sweep finds the work by time, and reads from the record whether the work was
// done.
type Due struct {
	Kind DueKind
	At   time.Time // the zero time: at once
}

// Due returns the earliest of these: the next notice or the end of the license or of its grace, the first possible end
// of its leases, and when its trial is forgotten.
func (l *License) Due() Due { return l.endDue().or(l.leasesDue()).or(l.trialDue()) }

// or returns the earlier of two works, and the first one of two at a time.
func (d Due) or(other Due) Due {
	if d.Kind == 0 || other.Kind != 0 && other.At.Before(d.At) {
		return other
	}
	return d
}

// endDue returns the end of the license until the end is recorded: as DueLicenseEnd, so that a sweep finds the licenses
// whose notices it has not planned. After that, endDue returns the next notice, the end, or the end of the grace.
func (l *License) endDue() Due {
	switch {
	case l.awaitsGraceEnd():
		return Due{Kind: DueLicenseNotice, At: l.GraceEndsAt()}
	case !l.awaitsEnd():
		return Due{}
	case l.planned():
		return Due{Kind: DueLicenseNotice, At: l.noticeAt(l.Notice.Day)}
	}
	return Due{Kind: DueLicenseEnd, At: l.ExpiresAt}
}

// Due returns when any node may continue the product's rollout, until the rollout has ended.
func (p *Product) Due() Due {
	if !p.Rollout.UnderWay() {
		return Due{}
	}
	return Due{Kind: DueRollout, At: p.Rollout.NextAt}
}

// Due returns the earliest of these: the refunds of the order that are due, the issue and the changes of its other
// licenses until none is left, the end of an unpaid order until the end is recorded, and when a sweep asks about its
// checkout or subscription.
func (o *Order) Due() (due Due) {
	if o.RefundDue {
		due = Due{Kind: DueRefund, At: o.RefundRetryAt}
	}
	switch {
	case o.Issuing(), o.Others != OthersDone:
		due = due.or(Due{Kind: DueIssue})
	case o.awaitsEnd():
		due = due.or(Due{Kind: DueOrderEnd, At: o.ExpiresAt})
	}
	return due.or(o.checkoutDue()).or(o.returnsDue())
}

// awaitsEnd reports whether the end of an unpaid order is not recorded yet.
func (o *Order) awaitsEnd() bool {
	return o.PaidAt.IsZero() && o.CanceledAt.IsZero() && o.RefundedAt.IsZero() && o.ExpiredAt.IsZero()
}

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
