package licensing_test

import (
	"slices"
	"testing"
	"time"

	"licet/internal/depth"
	"licet/licensing"
)

// noticed is what GiveNotice does some days before the end of a license.
type noticed struct {
	before float64 // days before the end
	days   licensing.ExpiringDays
	event  string // days_before_end; empty: none
	next   float64
}

func TestNotices(t *testing.T) {
	const usual licensing.ExpiringDays = "\x1e\x07\x01"
	for name, steps := range map[string][]noticed{
		"once each": {{62, usual, "", 0}, {61, usual, "", 30}, {40, usual, "", 30}, {30, usual, "30", 7},
			{29, usual, "", 7}, {6.9, usual, "7", 1}, {6.9, usual, "", 1}, {1, usual, "1", 0}, {0.5, usual, "", 0}},
		"a short license":        {{14, usual, "", 7}, {7, usual, "7", 1}, {0.9, usual, "1", 0}},
		"exactly a week":         {{7, usual, "", 1}},
		"the last hours":         {{0.1, usual, "", 0}},
		"a late sweep":           {{60, usual, "", 30}, {3, usual, "7", 1}},
		"a sweep after the end":  {{60, usual, "", 30}, {0, usual, "", 30}, {-1, usual, "", 30}},
		"none":                   {{60, "", "", 0}, {7, usual, "", 0}},
		"others from the second": {{60, usual, "", 30}, {30, "\x3c\x0e", "", 14}, {14, "\x0e", "14", 0}},
		"five":                   {{61, "\x3c\x1e\x0e\x07\x01", "", 60}, {60, "\x3c\x1e\x0e\x07\x01", "60", 30}},
	} {
		end := noon.Add(100 * day)
		r := licensed(func(l *licensing.License) { l.ExpiresAt = end }, "laptop")
		for _, s := range steps {
			at := end.Add(-time.Duration(s.before * float64(day)))
			due, was := r.License.NoticeDue(at), *r.License
			must(t, &r, licensing.GiveNotice{Now: at, Days: s.days}, noon)
			got := ""
			for _, e := range r.Events {
				if e.Type != licensing.EventLicenseExpiring || e.Members[0].Name != "days_before_end" {
					t.Errorf("%s: the event %+v", name, e)
				}
				got += e.Members[0].JSON
			}
			if got != s.event || r.License.Notice.Day != int(s.next) || r.Changed != due ||
				!r.Changed && *r.License != was {
				t.Errorf("%s, %v days before: the event %q, next %d, changed %v, due %v; want %+v", name, s.before, got,
					r.License.Notice.Day, r.Changed, due, s)
			}
		}
	}
}

// TestNoticesOfAnotherEnd: a license whose end moves gets its notices again, for the new end.
func TestNoticesOfAnotherEnd(t *testing.T) {
	r := licensed(func(l *licensing.License) { l.ExpiresAt = noon.Add(20 * day) }, "laptop")
	notice := func(at time.Time, want licensing.Due) {
		t.Helper()
		must(t, &r, licensing.GiveNotice{Now: at, Days: "\x07"}, at)
		if got := r.License.Due(); got != want {
			t.Errorf("due %+v, want %+v", got, want)
		}
	}
	notice(noon, licensing.Due{Kind: licensing.DueLicenseNotice, At: noon.Add(13 * day)})
	notice(noon.Add(13*day), licensing.Due{Kind: licensing.DueLicenseNotice, At: noon.Add(20 * day)})
	must(t, &r, licensing.RenewLicense{Target: ours, ExpiresAt: noon.Add(30 * day)}, noon.Add(14*day))
	if want := (licensing.Due{Kind: licensing.DueLicenseEnd, At: noon.Add(30 * day)}); r.License.Due() != want {
		t.Errorf("renewed: due %+v", r.License.Due())
	}
	notice(noon.Add(14*day), licensing.Due{Kind: licensing.DueLicenseNotice, At: noon.Add(23 * day)})
	notice(noon.Add(23*day), licensing.Due{Kind: licensing.DueLicenseNotice, At: noon.Add(30 * day)})
	if len(r.Events) != 1 {
		t.Errorf("%d events of the new end", len(r.Events))
	}
	must(t, &r, licensing.RevokeLicense{Target: ours}, noon)
	notice(noon.Add(30*day-1), licensing.Due{})
	for name, other := range map[string]licensing.Record{"nothing": {}, "an order": ordered(nil)} {
		if _, err := run(t, &other, licensing.GiveNotice{Now: noon}, noon); err != licensing.ErrLicenseNotFound {
			t.Errorf("GiveNotice on %s answers %v", name, err)
		}
	}
}

// TestNoticesOfLeases: a license with leases gets its notices, also if devices hold leases all the time.
func TestNoticesOfLeases(t *testing.T) {
	depth.NotRaced(t)
	const usual licensing.ExpiringDays = "\x1e\x07\x01"
	for left, want := range map[time.Duration]int{92 * day: 60, 60*day + 1: 60, 30 * day: 29, 30*day + 1: 30,
		14*day + time.Hour: 14, time.Hour: 0} {
		for _, swept := range []bool{false, true} {
			r := floating(map[string]time.Duration{"laptop": 0})
			at := noon.Add(licensing.LeaseGuard)
			r.License.ExpiresAt = at.Add(left)
			if swept {
				must(t, &r, licensing.LapseLeases{}, at)
			} else {
				must(t, &r, leaseOf("phone"), at)
			}
			planned := r.License.Notice
			if planned.Day != want || planned.End.IsZero() {
				t.Errorf("%v before the end, swept %v: %+v, want %d", left, swept, planned, want)
			}
		}
	}
	r := floating(nil)
	r.License.Validity = licensing.Period{Days: 14, Clock: time.Hour}
	must(t, &r, leaseOf("phone"), noon)
	if due := r.License.Due(); due.Kind != licensing.DueLeases || r.License.Notice.Day != 14 {
		t.Errorf("due %+v, the notice %+v", due, r.License.Notice)
	}
	given := 0
	for hours := range 15 * 24 {
		at := noon.Add(time.Duration(hours) * time.Hour)
		must(t, &r, licensing.GiveNotice{Now: at, Days: usual}, at)
		given += len(r.Events)
	}
	if given != 2 { // none 30 days before
		t.Errorf("%d notices", given)
	}
}

// TestNoticesOfEarlyWork: a license whose leases end before it, or whose trial is forgotten before it ends, gets its
// notices, also for an end that was moved.
func TestNoticesOfEarlyWork(t *testing.T) {
	for name, edit := range map[string]func(*licensing.License){
		"leases": func(l *licensing.License) {
			l.Lease = licensing.LeaseTerms{Length: 25 * day, Longest: 25 * day}
		},
		"a trial": func(l *licensing.License) { l.Trial[0], l.OrderNo, l.UpgradedAt = 1, "ord_1", noon.Add(-65*day) },
	} {
		r := licensed(edit)
		r.ActsByTime = true
		must(t, &r, licensing.Activate{Target: ours, Device: "laptop"}, noon)
		must(t, &r, licensing.RenewLicense{Target: ours, ExpiresAt: noon.Add(29 * day)}, noon)
		want := licensing.Due{Kind: licensing.DueLicenseNotice, At: noon.Add(day)}
		if due := r.License.Due(); due != want {
			t.Errorf("%s: due %+v", name, due)
		}
		must(t, &r, licensing.GiveNotice{Now: want.At, Days: "\x07"}, want.At)
		if want.At = noon.Add(22 * day); r.License.Due() != want {
			t.Errorf("%s: next %+v", name, r.License.Due())
		}
	}
}

func TestExpiringDays(t *testing.T) {
	for _, c := range []struct {
		days []int64
		want []int
	}{
		{nil, []int{}}, {[]int64{1, 30, 7}, []int{30, 7, 1}}, {[]int64{60}, []int{60}}, {[]int64{61}, nil},
		{[]int64{0}, nil}, {[]int64{-1}, nil}, {[]int64{7, 7}, nil}, {[]int64{1, 2, 3, 4, 5}, []int{5, 4, 3, 2, 1}},
		{[]int64{1, 2, 3, 4, 5, 6}, nil}, {[]int64{1 << 40}, nil},
	} {
		days, ok := licensing.NewExpiringDays(c.days)
		if ok != (c.want != nil) || ok && !slices.Equal(days.Numbers(), c.want) {
			t.Errorf("%v: %v, %v", c.days, days.Numbers(), ok)
		}
	}
	r := licensing.Record{}
	change := func(days licensing.ExpiringDays, changed bool) {
		t.Helper()
		result := must(t, &r, licensing.ChangeSettings{Owner: shop, ExpiringDays: &days}, noon)
		if new(result.Settings()).Expiring() != days || r.Changed != changed {
			t.Errorf("%+v, changed %v", result.Settings(), r.Changed)
		}
	}
	change("\x1e\x07\x01", false) // the default
	change("", true)
	change("\x0e", true)
	change("\x1e\x07\x01", true)
}
