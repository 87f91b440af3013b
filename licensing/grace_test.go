package licensing_test

import (
	"testing"
	"time"

	"licet/licensing"
)

// graced returns the record of a license that ends at noon and has a grace of three days.
func graced(devices ...string) licensing.Record {
	return licensed(func(l *licensing.License) {
		l.ExpiresAt, l.Grace = noon, licensing.Period{Days: 3}
	}, devices...)
}

// TestGrace: after the end of a license, bound devices go on until the end of the grace, and no others begin.
func TestGrace(t *testing.T) {
	over := noon.Add(3 * day)
	for _, c := range []struct {
		what           string
		edit           licensing.Command
		at             time.Time
		status         licensing.Status
		bound, unbound licensing.Reason
	}{
		{"before the end", nil, noon.Add(-1), licensing.Activated, "", ""},
		{"at the end", nil, noon, licensing.Expired, "", "license_expired"},
		{"in the grace", nil, over.Add(-1), licensing.Expired, "", "license_expired"},
		{"the end is recorded", licensing.ExpireLicense{Before: noon}, over.Add(-1), licensing.Expired, "",
			"license_expired"},
		{"the end is recorded, and the clock is behind", licensing.ExpireLicense{Before: noon}, noon.Add(-day),
			licensing.Expired, "", "license_expired"},
		{"after the grace", nil, over, licensing.Expired, "license_expired", "license_expired"},
		{"the end of the grace is recorded, and the clock is behind", licensing.ExpireLicense{Before: over},
			noon.Add(-day), licensing.Expired, "license_expired", "license_expired"},
		{"suspended", licensing.SuspendLicense{Target: ours}, noon, licensing.Suspended, "license_suspended",
			"license_suspended"},
		{"revoked", licensing.RevokeLicense{Target: ours}, noon, licensing.Revoked, "license_revoked",
			"license_revoked"},
		{"renewed", licensing.RenewLicense{Target: ours, ExpiresAt: noon.Add(day)}, noon, licensing.Activated, "", ""},
		{"another grace", rolls(licensing.Terms{Grace: licensing.Period{Days: 9}}, licensing.RolloutGrace), over,
			licensing.Expired, "", "license_expired"},
		{"no grace any more", rolls(licensing.Terms{}, licensing.RolloutGrace), noon, licensing.Expired,
			"license_expired", "license_expired"},
	} {
		r := graced("laptop")
		if c.edit != nil {
			must(t, &r, c.edit, noon.Add(-2*day))
		}
		if got := r.License.Status(c.at); got != c.status {
			t.Errorf("%s: it is %s, want %s", c.what, got, c.status)
		}
		if got, want := r.License.InGrace(c.at), c.status == licensing.Expired && c.bound == ""; got != want {
			t.Errorf("%s: in its grace: %v", c.what, got)
		}
		for device, want := range map[string]licensing.Reason{"laptop": c.bound, "phone": c.unbound} {
			invalid := want
			if device == "phone" && want == "" {
				invalid = licensing.NotBound
			}
			got := must(t, &r, licensing.ValidateLicense{Target: ours, Device: device}, c.at)
			if got.Invalid != invalid {
				t.Errorf("%s: the validation on the %s says %q, want %q", c.what, device, got.Invalid, invalid)
			}
			record := r.Clone()
			_, err := run(t, &record, licensing.Activate{Target: ours, Device: device}, c.at)
			if got := licensing.ReasonOf(err); err != nil && got != want || err == nil && want != "" {
				t.Errorf("%s: the activation on the %s answers %v, want %q", c.what, device, err, want)
			}
		}
	}
}

// TestRecordedGrace: the end of a grace is recorded once, without an event, after the end of the license. A renewal
// begins both anew, and a shorter grace does not bring the license back for a clock that is behind.
func TestRecordedGrace(t *testing.T) {
	r := graced("laptop")
	expire := func(after time.Duration, events int, due time.Time) {
		t.Helper()
		must(t, &r, licensing.ExpireLicense{Before: noon.Add(after)}, noon.Add(after))
		if got := r.License.Due().At; len(r.Events) != events || !got.Equal(due) {
			t.Errorf("after %v: %d events, due at %v", after, len(r.Events), got)
		}
	}
	over := noon.Add(3 * day)
	expire(-1, 0, noon)
	expire(0, 1, over)
	expire(3*day-1, 0, over)
	expire(3*day, 0, time.Time{})
	if expire(4*day, 0, time.Time{}); r.Changed {
		t.Error("the end of the grace was recorded twice")
	}
	must(t, &r, rolls(licensing.Terms{Grace: licensing.Period{Days: 2}}, licensing.RolloutGrace), over)
	if r.License.InGrace(noon.Add(day)) {
		t.Error("a shorter grace brought the license back")
	}
	must(t, &r, licensing.RenewLicense{Target: ours, ExpiresAt: noon.Add(9 * day)}, over)
	if end := noon.Add(11 * day); !r.License.GraceEndsAt().Equal(end) || !r.License.GraceRecorded.IsZero() {
		t.Errorf("renewed: %+v", r.License)
	}
	expire(20*day, 1, time.Time{}) // both at once
}

// TestGraceOfLeases: in the grace, a license with leases gives leases as before, and no lease outlasts the grace.
func TestGraceOfLeases(t *testing.T) {
	r := floating(map[string]time.Duration{"laptop": 60 * time.Second})
	r.License.ExpiresAt, r.License.Grace = noon, licensing.Period{Clock: time.Hour}
	must(t, &r, leaseOf("phone"), noon.Add(time.Minute))
	if got := leases(&r); got != "laptop 60, phone 660" {
		t.Error(got)
	}
	borrow := licensing.Activate{Target: ours, Device: "laptop", Lease: day}
	must(t, &r, borrow, noon.Add(40*time.Minute))
	must(t, &r, leaseOf("tv"), noon.Add(49*time.Minute))
	if got := leases(&r); got != "laptop 3600, tv 3540" {
		t.Error(got)
	}
	renew := licensing.ValidateLicense{Target: ours, Device: "tv"}
	must(t, &r, renew, noon.Add(51*time.Minute)) // to the end of the grace
	must(t, &r, leaseOf("tablet"), noon.Add(59*time.Minute))
	if got := leases(&r); got != "laptop 3600, tablet 3600, tv 3600" {
		t.Error(got)
	}
	if must(t, &r, renew, noon.Add(59*time.Minute)); r.Changed {
		t.Error("a lease to the end of the grace was renewed")
	}
	if _, err := run(t, &r, borrow, noon.Add(time.Hour)); licensing.ReasonOf(err) != licensing.ReasonLicenseExpired {
		t.Errorf("after the grace: %v", err)
	}
}

// TestGraceFromActivation: the first lease does not outlast the grace either, if the activation sets the license's end.
func TestGraceFromActivation(t *testing.T) {
	r := floating(nil)
	r.License.Validity, r.License.Grace = licensing.Period{Clock: time.Hour}, licensing.Period{Clock: time.Hour}
	borrow := licensing.Activate{Target: ours, Device: "laptop", Lease: day}
	got := must(t, &r, borrow, noon)
	if end := noon.Add(2 * time.Hour); !got.Device.LeaseEnd.Equal(end) || !r.License.GraceEndsAt().Equal(end) ||
		!r.License.LeasesUntil.Equal(end) || got.LeaseLeft != 2*time.Hour {
		t.Errorf("the lease ends at %v, the grace at %v: %+v", got.Device.LeaseEnd, r.License.GraceEndsAt(), r.License)
	}
}

func TestGraceProblem(t *testing.T) {
	for text, ok := range map[string]bool{"P7D": true, "P1Y": true, "P12M": true, "PT1H": true, "P366D": true,
		"P367D": false, "P13M": false, "P2Y": false} {
		grace, _ := licensing.ParsePeriod(text)
		if problem := licensing.GraceProblem(grace); (problem == "") != ok {
			t.Errorf("%s: %q", text, problem)
		}
	}
	last := licensing.License{Grace: licensing.Period{Years: 1}, ExpiresAt: time.Date(9999, 6, 1, 0, 0, 0, 0, time.UTC)}
	if end := last.GraceEndsAt(); end.Year() != 9999 {
		t.Errorf("the grace ends at %v", end)
	}
}

// TestDevicesThatChangeInGrace: in the grace, a bound device goes on under a new id, and no other device begins.
func TestDevicesThatChangeInGrace(t *testing.T) {
	r := matching()
	r.License.ExpiresAt, r.License.Grace = noon, licensing.Period{Days: 3}
	for _, c := range []struct {
		sends licensing.Components
		at    time.Time
		goes  bool
	}{
		{composed("3", "c"), noon, false},
		{composed("1", "b"), noon, false}, // of two devices
		{composed("1", "c"), noon.Add(3 * day), false},
		{composed("1", "c"), noon.Add(3*day - 1), true},
	} {
		activate := licensing.Activate{Target: ours, Device: "tv", Components: c.sends}
		growth := licensing.GrowthOf(activate, &r, c.at)
		_, err := run(t, &r, activate, c.at)
		if reason := licensing.ReasonOf(err); (err == nil) != c.goes || !c.goes && (reason != "license_expired" ||
			growth != licensing.NoGrowth) {
			t.Errorf("%v at %v: %v, growth %v", c.sends, c.at, err, growth)
		}
	}
	if r.Devices["laptop"].Bound || !r.Devices["tv"].Bound || r.License.CurrentDevices != 2 {
		t.Errorf("bound are %v", boundTo(&r))
	}
}
