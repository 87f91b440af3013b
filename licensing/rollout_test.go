package licensing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/internal/depth"
	"licet/licensing"
)

// rolls returns the command of a rollout that has begun at noon, and concerns the license of these tests.
func rolls(terms licensing.Terms, applies licensing.RolloutTerms) licensing.ApplyTerms {
	return licensing.ApplyTerms{Target: ours, ProductID: app, StartedAt: noon, Terms: terms, Applies: applies}
}

// TestApplyTerms gives licenses terms of a product, each set of terms alone and all together. Only these terms change,
// with one event, and the second time nothing does.
func TestApplyTerms(t *testing.T) {
	depth.NotRaced(t)
	terms := licensing.Terms{KeyPrefix: "NEW", MaxDevices: 2, Validity: licensing.Period{Days: 1}, Version: 7,
		Grace:         licensing.Period{Days: 3},
		SelfService:   licensing.SelfService{Allowed: true, RemovalsPerMonth: 4},
		InactiveAfter: licensing.Period{Days: 30}, Match: licensing.DeviceMatch{AtLeast: 3, ChangesPerMonth: 4},
		Lease:    licensing.LeaseTerms{Length: time.Minute, Longest: time.Hour},
		Receipts: licensing.ReceiptTerms{Always: true, ValiditySeconds: 600, RevocationAgeSeconds: 60}}
	edits := map[licensing.RolloutTerms]func(*licensing.License){
		licensing.RolloutEntitlements:    func(l *licensing.License) { l.Terms = 7 },
		licensing.RolloutMaxDevices:      func(l *licensing.License) { l.MaxDevices = 2 },
		licensing.RolloutSelfService:     func(l *licensing.License) { l.SelfService.Allowed = true },
		licensing.RolloutRemovals:        func(l *licensing.License) { l.SelfService.RemovalsPerMonth = 4 },
		licensing.RolloutInactive:        func(l *licensing.License) { l.InactiveAfter = licensing.Period{Days: 30} },
		licensing.RolloutReceipt:         func(l *licensing.License) { l.Receipts.Always = true },
		licensing.RolloutReceiptValidity: func(l *licensing.License) { l.Receipts.ValiditySeconds = 600 },
		licensing.RolloutRevocationAge:   func(l *licensing.License) { l.Receipts.RevocationAgeSeconds = 60 },
		licensing.RolloutMatch: func(l *licensing.License) {
			l.Match = licensing.DeviceMatch{AtLeast: 3, ChangesPerMonth: 4}
		},
		licensing.RolloutGrace: func(l *licensing.License) { l.Grace = licensing.Period{Days: 3} },
	}
	for all := licensing.RolloutTerms(1); all < licensing.RolloutLease; all++ {
		all := all | all&3<<10 // the lengths of leases are not for this license, which has none
		if !all.Valid() {
			t.Fatalf("%b is not valid", all)
		}
		r := licensed(func(l *licensing.License) { l.RevokedAt = noon }, "laptop", "phone")
		want := *r.License
		for term, edit := range edits {
			if all&term != 0 {
				edit(&want)
			}
		}
		want.Sequence++
		cmd := rolls(terms, all)
		must(t, &r, cmd, noon)
		if diff := cmp.Diff(want, *r.License); diff != "" || len(r.Events) != 1 ||
			r.Events[0].Type != licensing.EventLicenseUpdated {
			t.Errorf("%b: events %v; want (-), got (+):\n%s", all, typesOf(r.Events), diff)
		}
		r.Changed = false
		if must(t, &r, cmd, noon); r.Changed || *r.License != want {
			t.Errorf("%b again: %+v", all, *r.License)
		}
	}
	for _, bad := range []licensing.RolloutTerms{0, 4096, 8191} {
		if bad.Valid() {
			t.Errorf("%b is valid", bad)
		}
	}
	r := licensed(nil)
	foreign := licensing.Target{Key: shopKey, Caller: licensing.Owner{AccountID: "acc_other", Mode: licensing.Live}}
	refuses(t, &r, licensing.ApplyTerms{Target: foreign, Terms: terms, Applies: licensing.RolloutMaxDevices}, noon,
		licensing.ReasonLicenseNotFound)
}

// TestApplyTermsToOthers: a rollout changes no license that has left it since the license was listed, or that was never
// in it.
func TestApplyTermsToOthers(t *testing.T) {
	cmd := rolls(licensing.Terms{Version: 7, MaxDevices: 100},
		licensing.RolloutEntitlements|licensing.RolloutMaxDevices)
	for name, edit := range map[string]func(*licensing.License){
		"another product":    func(l *licensing.License) { l.ProductID = "basic" },
		"issued later":       func(l *licensing.License) { l.CreatedAt = noon.Add(time.Millisecond) },
		"upgraded later":     func(l *licensing.License) { l.UpgradedAt = noon.Add(time.Millisecond) },
		"a trial":            func(l *licensing.License) { l.Trial = licensing.TrialName{1} },
		"issued just then":   nil,
		"upgraded just then": func(l *licensing.License) { l.Trial, l.UpgradedAt = licensing.TrialName{1}, noon },
	} {
		r := licensed(func(l *licensing.License) { l.CreatedAt = noon })
		if edit != nil {
			edit(r.License)
		}
		was, concerned := *r.License, strings.HasSuffix(name, "just then")
		growth := licensing.GrowthOf(cmd, &r, noon)
		got := must(t, &r, cmd, noon)
		if r.Changed != concerned || (*r.License != was) != concerned || got.License != *r.License ||
			(growth != licensing.NoGrowth) != concerned {
			t.Errorf("%s: changed %v, growth %v: %+v", name, r.Changed, growth, *r.License)
		}
	}
}

// TestApplyTermsLowersRemovals: where end users have removed more devices this month than the terms allow, they may
// remove no more.
func TestApplyTermsLowersRemovals(t *testing.T) {
	r := licensed(func(l *licensing.License) {
		l.SelfService = licensing.SelfService{Allowed: true, RemovalsPerMonth: 5}
	}, "laptop", "phone", "tablet")
	for _, device := range []string{"laptop", "phone"} {
		must(t, &r, licensing.DeactivateDevice{Target: ours, Device: device}, noon)
	}
	must(t, &r, rolls(licensing.Terms{SelfService: licensing.SelfService{RemovalsPerMonth: 1}},
		licensing.RolloutRemovals), noon)
	if l := r.License; l.Removals.Count != 1 || l.SelfService.RemovalsPerMonth != 1 || !l.SelfService.Allowed {
		t.Errorf("the license is %+v", *l)
	}
	refuses(t, &r, licensing.DeactivateDevice{Target: ours, Device: "tablet"}, noon,
		licensing.ReasonSelfServiceForbidden)
}

// TestApplyTermsKeepsDevices: a limit below the number of bound devices does not apply, and all other limits do.
func TestApplyTermsKeepsDevices(t *testing.T) {
	for _, c := range []struct {
		before, over, bound, terms int
		after, overAfter           int
		keeps                      bool
	}{
		{before: 3, bound: 3, terms: 2, after: 3, keeps: true},
		{before: 3, bound: 2, terms: 2, after: 2},
		{before: 0, bound: 4, terms: 3, after: 0, keeps: true},
		{before: 0, bound: 4, terms: 4, after: 4},
		{before: 3, bound: 3, terms: 0, after: 0},
		{before: 1, over: 4, bound: 4, terms: 2, after: 1, overAfter: 4, keeps: true},
		{before: 1, over: 4, bound: 4, terms: 1, after: 1, overAfter: 4},
		{before: 1, over: 4, bound: 4, terms: 5, after: 5},
		{before: 1, over: 4, bound: 2, terms: 2, after: 2},
	} {
		r := licensed(func(l *licensing.License) {
			l.MaxDevices, l.AllowedOver, l.CurrentDevices = c.before, c.over, c.bound
		})
		cmd := rolls(licensing.Terms{MaxDevices: c.terms, Version: 7},
			licensing.RolloutMaxDevices|licensing.RolloutEntitlements)
		if keeps := cmd.KeepsLimit(r.License); keeps != c.keeps {
			t.Errorf("%+v: keeps its limit: %v", c, keeps)
		}
		must(t, &r, cmd, noon)
		if l := r.License; l.MaxDevices != c.after || l.AllowedOver != c.overAfter || l.CurrentDevices != c.bound ||
			l.Terms != 7 {
			t.Errorf("%+v: %+v", c, *l)
		}
	}
}

// TestApplyTermsToLeases: a license with leases keeps its limit where the product has none any more, or too high a one.
func TestApplyTermsToLeases(t *testing.T) {
	for terms, after := range map[int]int{0: 3, licensing.MaxLeasedDevices + 1: 3, licensing.MaxLeasedDevices: 10_000} {
		r := floating(nil)
		must(t, &r, rolls(licensing.Terms{MaxDevices: terms}, licensing.RolloutMaxDevices), noon)
		if got := r.License.MaxDevices; got != after {
			t.Errorf("with %d in the terms, its limit is %d, want %d", terms, got, after)
		}
	}
}

// TestApplyTermsToLengths: the lengths of leases change one by one, and the longest is at least the usual one. A lease
// that a device has keeps its end, and moves on with the new length.
func TestApplyTermsToLengths(t *testing.T) {
	const both = licensing.RolloutLease | licensing.RolloutLongestLease
	terms := func(length, longest time.Duration) licensing.LeaseTerms {
		return licensing.LeaseTerms{Length: length, Longest: longest}
	}
	for _, c := range []struct {
		applies              licensing.RolloutTerms
		before, terms, after licensing.LeaseTerms
	}{
		{both, terms(600, 3600), terms(60, 120), terms(60, 120)},
		{licensing.RolloutLease, terms(600, 3600), terms(60, 120), terms(60, 3600)},
		{licensing.RolloutLease, terms(600, 900), terms(1000, 2000), terms(1000, 1000)},
		{licensing.RolloutLongestLease, terms(600, 3600), terms(60, 1200), terms(600, 1200)},
		{licensing.RolloutLongestLease, terms(600, 3600), terms(60, 120), terms(600, 600)},
		{licensing.RolloutGrace, terms(600, 3600), terms(60, 120), terms(600, 3600)},
		{both, terms(600, 3600), licensing.LeaseTerms{}, terms(600, 3600)},
		{both, licensing.LeaseTerms{}, terms(60, 120), licensing.LeaseTerms{}},
	} {
		for _, t := range []*licensing.LeaseTerms{&c.before, &c.terms, &c.after} {
			*t = terms(t.Length*time.Second, t.Longest*time.Second)
		}
		r := licensed(func(l *licensing.License) { l.Lease = c.before })
		must(t, &r, rolls(licensing.Terms{Lease: c.terms}, c.applies), noon)
		if got := r.License.Lease; got != c.after || r.Changed != (c.before != c.after) {
			t.Errorf("%b of %+v on %+v: %+v, changed %v", c.applies, c.terms, c.before, got, r.Changed)
		}
	}

	r := floating(nil)
	must(t, &r, licensing.Activate{Target: ours, Device: "laptop"}, noon)
	end := r.Devices["laptop"].Device.LeaseEnd
	must(t, &r, rolls(licensing.Terms{Lease: terms(licensing.MinLease, licensing.MinLease)}, both), noon)
	must(t, &r, licensing.Activate{Target: ours, Device: "laptop"}, noon.Add(time.Second))
	if got := r.Devices["laptop"].Device.LeaseEnd; !got.Equal(end) {
		t.Errorf("shorter leases move the end of a lease from %v to %v", end, got)
	}
	at := end.Add(-time.Second)
	must(t, &r, licensing.Activate{Target: ours, Device: "laptop"}, at)
	if got := r.Devices["laptop"].Device.LeaseEnd; !got.Equal(at.Add(licensing.MinLease)) {
		t.Errorf("renewed at %v, the lease ends at %v", at, got)
	}
}

// TestRolloutCommands takes a product through two rollouts. Nothing but the rollout changes, and it is due until it
// ends.
func TestRolloutCommands(t *testing.T) {
	product := licensing.Product{ID: app, Owner: shop, Terms: licensing.Terms{MaxDevices: 5}, CreatedAt: noon}
	r := licensing.Record{Product: &product}
	if begin := (licensing.BeginRollout{}); !r.NeedsClock(begin) {
		t.Error("a rollout begins by any clock")
	}
	rollout := func() licensing.Rollout { return r.Product.Rollout }
	check := func(what string, status licensing.RolloutStatus, due time.Time) {
		t.Helper()
		var want licensing.Due
		if !due.IsZero() {
			want = licensing.Due{Kind: licensing.DueRollout, At: due}
		}
		o := rollout()
		if o.Status() != status || r.Product.Due() != want || o.UnderWay() == due.IsZero() {
			t.Errorf("%s: it is %s, and due %+v, want %s and %+v", what, o.Status(), r.Product.Due(), status, want)
		}
	}
	begin := licensing.BeginRollout{Applies: licensing.RolloutMaxDevices, By: "key_1", Lapse: time.Minute}
	refuses(t, &r, licensing.CancelRollout{}, noon, licensing.ReasonRolloutNotFound)
	refuses(t, &r, licensing.AdvanceRollout{}, noon, licensing.ReasonRolloutNotFound)
	refuses(t, &r, begin, noon, licensing.ReasonUnavailable) // the clock may be an hour behind
	r.ActsByTime = true
	must(t, &r, begin, noon)
	r.ActsByTime = false
	check("begun", licensing.RolloutRunning, noon.Add(time.Minute))
	first := *r.Product
	must(t, &r, begin, noon.Add(time.Second))
	if *r.Product != first {
		t.Errorf("begun twice: %+v", rollout())
	}
	dry, more := begin, begin
	dry.DryRun, more.Applies = true, licensing.RolloutMaxDevices|licensing.RolloutRemovals
	for _, other := range []licensing.BeginRollout{dry, more} {
		refuses(t, &r, other, noon, licensing.ReasonRolloutInProgress)
	}
	must(t, &r, licensing.PutProduct{ID: app, Owner: shop, Terms: licensing.Terms{MaxDevices: 6}}, noon)
	refuses(t, &r, begin, noon, licensing.ReasonRolloutInProgress) // the terms are others
	if o := rollout(); o != first.Rollout {
		t.Errorf("after a change of the product: %+v", o)
	}
	page := licensing.AdvanceRollout{StartedAt: noon, Next: "p1", Lapse: time.Minute,
		Counts: licensing.RolloutCounts{Licenses: 64, Updated: 60, LimitsKept: 4}}
	must(t, &r, page, noon.Add(time.Hour))
	check("a page later", licensing.RolloutRunning, noon.Add(time.Hour+time.Minute))
	refuses(t, &r, page, noon.Add(time.Hour), licensing.ReasonRolloutNotFound) // as of another node
	must(t, &r, licensing.AdvanceRollout{StartedAt: noon, Cursor: "p1", Next: "p1", OverBudget: true, Lapse: time.Hour,
		Counts: licensing.RolloutCounts{Updated: 3}}, noon.Add(time.Hour))
	check("over the budget", licensing.RolloutPaused, noon.Add(2*time.Hour))
	last := licensing.AdvanceRollout{StartedAt: noon, Cursor: "p1", Done: true,
		Counts: licensing.RolloutCounts{Licenses: 6, Updated: 2, Failed: 1}}
	stale := last
	stale.StartedAt = noon.Add(-time.Second)
	refuses(t, &r, stale, noon, licensing.ReasonRolloutNotFound)
	must(t, &r, last, noon.Add(3*time.Hour))
	check("at the end", licensing.RolloutDone, time.Time{})
	if got, want := rollout().Counts, (licensing.RolloutCounts{Licenses: 70, Updated: 65, LimitsKept: 4,
		Failed: 1}); got != want {
		t.Errorf("it counts %+v, want %+v", got, want)
	}
	must(t, &r, licensing.CancelRollout{}, noon)
	check("canceled after the end", licensing.RolloutDone, time.Time{})

	r.ActsByTime = true
	must(t, &r, begin, noon.Add(day))
	if o := rollout(); o.Terms.MaxDevices != 6 || o.Counts != (licensing.RolloutCounts{}) || o.Cursor != "" {
		t.Errorf("the second one is %+v", o)
	}
	must(t, &r, licensing.CancelRollout{}, noon.Add(day))
	check("canceled", licensing.RolloutCanceled, time.Time{})
	refuses(t, &r, licensing.AdvanceRollout{StartedAt: noon.Add(day)}, noon, licensing.ReasonRolloutNotFound)
	for created, want := range map[time.Duration]bool{-time.Hour: true, 0: true, time.Millisecond: false} {
		l := licensing.License{ProductID: app, CreatedAt: noon.Add(day + created)}
		if got := r.Product.InRollout(&l); got != want {
			t.Errorf("a license %v after the beginning is in the rollout: %v", created, got)
		}
		if l.ProductID = "other"; r.Product.InRollout(&l) {
			t.Error("a license of another product is in the rollout")
		}
	}
	none := licensing.Record{}
	for _, cmd := range []licensing.Command{begin, page, licensing.CancelRollout{}} {
		refuses(t, &none, cmd, noon, licensing.ReasonProductNotFound)
	}
}
