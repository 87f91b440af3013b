package licensing_test

import (
	"testing"
	"time"

	"licet/licensing"
)

func TestOrderDue(t *testing.T) {
	end := noon.Add(time.Hour)
	for name, c := range map[string]struct {
		edit func(*licensing.Order)
		want licensing.Due
	}{
		"unpaid": {nil, licensing.Due{Kind: licensing.DueOrderEnd, At: end}},
		"run out": {func(o *licensing.Order) { o.ExpiresAt = noon },
			licensing.Due{Kind: licensing.DueOrderEnd, At: noon}},
		"recorded": {func(o *licensing.Order) { o.ExpiredAt = noon }, licensing.Due{}},
		"paid":     {func(o *licensing.Order) { o.PaidAt = noon }, licensing.Due{}},
		"paid late": {func(o *licensing.Order) { o.ExpiredAt, o.PaidAt, o.Late = noon, noon, true },
			licensing.Due{}},
		"canceled": {func(o *licensing.Order) { o.CanceledAt = noon }, licensing.Due{}},
		"refunded": {func(o *licensing.Order) { o.PaidAt, o.RefundedAt = noon, noon }, licensing.Due{}},
		"canceled, then paid": {func(o *licensing.Order) { o.CanceledAt, o.PaidAt, o.RefundDue = noon, noon, true },
			licensing.Due{Kind: licensing.DueRefund}},
		"refund wished for": {func(o *licensing.Order) { o.PaidAt, o.RefundDue = noon, true },
			licensing.Due{Kind: licensing.DueRefund}},
		"refund tried in vain": {func(o *licensing.Order) { o.PaidAt, o.RefundDue, o.RefundRetryAt = noon, true, end },
			licensing.Due{Kind: licensing.DueRefund, At: end}},
		"canceled, never money": {func(o *licensing.Order) { o.CanceledAt, o.ExpiresAt = noon, noon }, licensing.Due{}},
	} {
		if got := ordered(c.edit).Order.Due(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestLicenseDue(t *testing.T) {
	ends := func(l *licensing.License) { l.ExpiresAt = noon }
	for name, c := range map[string]struct {
		edits []func(*licensing.License)
		want  licensing.Due
	}{
		"perpetual": {nil, licensing.Due{}},
		"not yet begun": {[]func(*licensing.License){
			func(l *licensing.License) { l.Validity = licensing.Period{Years: 1} },
		}, licensing.Due{}},
		"with an end": {[]func(*licensing.License){ends},
			licensing.Due{Kind: licensing.DueLicenseEnd, At: noon}},
		"suspended": {[]func(*licensing.License){ends, func(l *licensing.License) { l.SuspendedAt = noon }},
			licensing.Due{Kind: licensing.DueLicenseEnd, At: noon}},
		"revoked": {[]func(*licensing.License){ends, func(l *licensing.License) { l.RevokedAt = noon }},
			licensing.Due{}},
		"recorded": {[]func(*licensing.License){ends, func(l *licensing.License) { l.EndRecorded = noon }},
			licensing.Due{}},
		"recorded and " +
			"renewed": {[]func(*licensing.License){ends, func(l *licensing.License) { l.EndRecorded = noon.Add(-day) }},
			licensing.Due{Kind: licensing.DueLicenseEnd, At: noon}},
		"leases": {[]func(*licensing.License){
			func(l *licensing.License) { l.LeasesUntil = noon },
		}, licensing.Due{Kind: licensing.DueLeases, At: noon.Add(5 * time.Second)}},
		"leases before the end": {[]func(*licensing.License){ends,
			func(l *licensing.License) { l.LeasesUntil = noon.Add(-time.Minute) },
		}, licensing.Due{Kind: licensing.DueLeases, At: noon.Add(-55 * time.Second)}},
		"leases after the end": {[]func(*licensing.License){ends, func(l *licensing.License) { l.LeasesUntil = noon }},
			licensing.Due{Kind: licensing.DueLicenseEnd, At: noon}},
		"leases of a revoked license": {[]func(*licensing.License){ends,
			func(l *licensing.License) { l.LeasesUntil, l.RevokedAt = noon, noon },
		}, licensing.Due{Kind: licensing.DueLeases, At: noon.Add(5 * time.Second)}},
	} {
		r := licensed(func(l *licensing.License) {
			for _, edit := range c.edits {
				edit(l)
			}
		})
		if got := r.License.Due(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestExpireLicense records an end once, and again after a renewal, in any state of the license. The command changes
// nothing else. Only its field Before decides, not the time of the swap.
func TestExpireLicense(t *testing.T) {
	r := licensed(func(l *licensing.License) { l.ExpiresAt = noon }, "laptop")
	check := func(what string, at time.Time, want bool) {
		t.Helper()
		r.Changed = false
		before := *r.License
		must(t, &r, licensing.ExpireLicense{Before: at}, noon.Add(20*day))
		if want {
			before.EndRecorded = before.ExpiresAt
			before.Sequence++
		}
		if r.Changed != want || *r.License != before {
			t.Errorf("%s: changed %v, %+v; want %v, %+v", what, r.Changed, *r.License, want, before)
		}
	}
	check("too early", noon.Add(-time.Millisecond), false)
	check("at the end", noon, true)
	check("again", noon.Add(day), false)
	must(t, &r, licensing.RenewLicense{Target: ours, ExpiresAt: noon.Add(2 * day)}, noon.Add(day))
	check("renewed", noon.Add(day), false)
	check("at the new end", noon.Add(2*day), true)
	must(t, &r, licensing.RenewLicense{Target: ours, ExpiresAt: noon.Add(4 * day)}, noon.Add(3*day))
	must(t, &r, licensing.SuspendLicense{Target: ours}, noon.Add(3*day))
	check("suspended", noon.Add(4*day), true)
	must(t, &r, licensing.RenewLicense{Target: ours, ExpiresAt: noon.Add(6 * day)}, noon.Add(5*day))
	must(t, &r, licensing.RevokeLicense{Target: ours}, noon.Add(5*day))
	check("revoked", noon.Add(6*day), false)

	perpetual := licensed(nil)
	must(t, &perpetual, licensing.ExpireLicense{Before: noon}, noon)
	if perpetual.Changed {
		t.Error("an end of a perpetual license was recorded")
	}
	for name, other := range map[string]licensing.Record{"nothing": {}, "an order": ordered(nil)} {
		_, err := run(t, &other, licensing.ExpireLicense{Before: noon}, noon)
		if err != licensing.ErrLicenseNotFound {
			t.Errorf("ExpireLicense on %s answers %v", name, err)
		}
	}
}

// TestRecordedEndHoldsForEveryClock: once the end of a license is recorded, a clock that is behind does
// not bring the license back, and a renewal does, even to the same end.
func TestRecordedEndHoldsForEveryClock(t *testing.T) {
	end, behind := noon.Add(day), noon.Add(-9*day)
	for name, renewal := range map[string]licensing.RenewLicense{
		"to the same end": {Target: ours, ExpiresAt: end},
		"to a later end":  {Target: ours, ExpiresAt: end.Add(day)},
		"by some days":    {Target: ours, Extend: licensing.Period{Days: 3}},
	} {
		r := licensed(func(l *licensing.License) { l.ExpiresAt = end }, "laptop")
		status := func() licensing.Status { return r.License.Status(behind) }
		if got := status(); got != licensing.Activated {
			t.Fatalf("before the record: %s", got)
		}
		must(t, &r, licensing.ExpireLicense{Before: end}, end)
		if got := status(); got != licensing.Expired {
			t.Errorf("recorded: %s", got)
		}
		_, err := run(t, &r, licensing.Activate{Target: ours, Device: "laptop"}, behind)
		if licensing.ReasonOf(err) != licensing.ReasonLicenseExpired || r.Changed || r.Touched {
			t.Errorf("activation: %v, changed %v", err, r.Changed)
		}
		valid := must(t, &r, licensing.ValidateLicense{Target: ours, Device: "laptop"}, behind)
		if valid.Invalid != licensing.ReasonLicenseExpired {
			t.Errorf("validation: %q", valid.Invalid)
		}
		must(t, &r, licensing.SuspendLicense{Target: ours}, behind)
		must(t, &r, licensing.ReinstateLicense{Target: ours}, behind)
		if got := status(); got != licensing.Expired {
			t.Errorf("suspended and reinstated: %s", got)
		}
		must(t, &r, renewal, behind)
		if got := status(); got != licensing.Activated || !r.Changed ||
			r.License.Due().Kind != licensing.DueLicenseEnd {
			t.Errorf("renewed %s: %s, changed %v, due %+v", name, got, r.Changed, r.License.Due())
		}
		must(t, &r, licensing.RenewLicense{Target: ours, ExpiresAt: r.License.ExpiresAt}, behind)
		if r.Changed {
			t.Errorf("renewed %s, and again to the same end: changed", name)
		}
	}
}

// TestExpireOrderUsesBefore, not the clock at the moment of the swap.
func TestExpireOrderUsesBefore(t *testing.T) {
	f := func(at time.Time, want bool) {
		t.Helper()
		r := ordered(func(o *licensing.Order) { o.ExpiresAt = noon })
		must(t, &r, licensing.ExpireOrder{Before: at}, noon.Add(day))
		if r.Changed != want || r.Order.ExpiredAt.IsZero() == want {
			t.Errorf("at %v: changed %v, %v", at, r.Changed, r.Order.ExpiredAt)
		}
	}
	f(noon.Add(-day), false)
	f(noon.Add(-time.Millisecond), false)
	f(noon, true)
	f(noon.Add(day), true)
}
