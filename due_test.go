package licet_test

import (
	"testing"
	"time"

	"licet"
)

func TestOrderDue(t *testing.T) {
	end := noon.Add(time.Hour)
	for name, c := range map[string]struct {
		edit func(*licet.Order)
		want licet.Due
	}{
		"unpaid":                {nil, licet.Due{Kind: licet.DueOrderEnd, At: end}},
		"run out":               {func(o *licet.Order) { o.ExpiresAt = noon }, licet.Due{Kind: licet.DueOrderEnd, At: noon}},
		"recorded":              {func(o *licet.Order) { o.ExpiredAt = noon }, licet.Due{}},
		"paid":                  {func(o *licet.Order) { o.PaidAt = noon }, licet.Due{}},
		"paid late":             {func(o *licet.Order) { o.ExpiredAt, o.PaidAt, o.Late = noon, noon, true }, licet.Due{}},
		"canceled":              {func(o *licet.Order) { o.CanceledAt = noon }, licet.Due{}},
		"refunded":              {func(o *licet.Order) { o.PaidAt, o.RefundedAt = noon, noon }, licet.Due{}},
		"canceled, then paid":   {func(o *licet.Order) { o.CanceledAt, o.PaidAt, o.RefundDue = noon, noon, true }, licet.Due{Kind: licet.DueRefund}},
		"refund wished for":     {func(o *licet.Order) { o.PaidAt, o.RefundDue = noon, true }, licet.Due{Kind: licet.DueRefund}},
		"refund tried in vain":  {func(o *licet.Order) { o.PaidAt, o.RefundDue, o.RefundRetryAt = noon, true, end }, licet.Due{Kind: licet.DueRefund, At: end}},
		"canceled, never money": {func(o *licet.Order) { o.CanceledAt, o.ExpiresAt = noon, noon }, licet.Due{}},
	} {
		if got := ordered(c.edit).Order.Due(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestLicenseDue(t *testing.T) {
	ends := func(l *licet.License) { l.ExpiresAt = noon }
	for name, c := range map[string]struct {
		edits []func(*licet.License)
		want  licet.Due
	}{
		"perpetual":            {nil, licet.Due{}},
		"not yet begun":        {[]func(*licet.License){func(l *licet.License) { l.Validity = licet.Period{Years: 1} }}, licet.Due{}},
		"with an end":          {[]func(*licet.License){ends}, licet.Due{Kind: licet.DueLicenseEnd, At: noon}},
		"suspended":            {[]func(*licet.License){ends, func(l *licet.License) { l.SuspendedAt = noon }}, licet.Due{Kind: licet.DueLicenseEnd, At: noon}},
		"revoked":              {[]func(*licet.License){ends, func(l *licet.License) { l.RevokedAt = noon }}, licet.Due{}},
		"recorded":             {[]func(*licet.License){ends, func(l *licet.License) { l.EndRecorded = noon }}, licet.Due{}},
		"recorded and renewed": {[]func(*licet.License){ends, func(l *licet.License) { l.EndRecorded = noon.Add(-day) }}, licet.Due{Kind: licet.DueLicenseEnd, At: noon}},
	} {
		r := licensed(func(l *licet.License) {
			for _, edit := range c.edits {
				edit(l)
			}
		})
		if got := r.License.Due(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestExpireLicense records an end once, and again after a renewal, whatever else
// is true of the license. Nothing but the record of it changes.
func TestExpireLicense(t *testing.T) {
	r := licensed(func(l *licet.License) { l.ExpiresAt = noon }, "laptop")
	expire := licet.ExpireLicense{Key: shopKey}
	check := func(what string, at time.Time, c licet.Command, want bool) {
		t.Helper()
		r.Changed = false
		before := *r.License
		must(t, &r, c, at)
		if want {
			before.EndRecorded = before.ExpiresAt
			before.Sequence++
		}
		if r.Changed != want || *r.License != before {
			t.Errorf("%s: changed %v, %+v; want %v, %+v", what, r.Changed, *r.License, want, before)
		}
	}
	check("too early", noon.Add(-time.Millisecond), expire, false)
	check("within the margin", noon.Add(time.Minute-time.Millisecond), licet.ExpireLicense{Key: shopKey, Margin: time.Minute}, false)
	check("after the margin", noon.Add(time.Minute), licet.ExpireLicense{Key: shopKey, Margin: time.Minute}, true)
	check("again", noon.Add(day), expire, false)
	must(t, &r, licet.RenewLicense{Target: ours, ExpiresAt: noon.Add(2 * day)}, noon.Add(day))
	check("renewed", noon.Add(day), expire, false)
	check("at the new end", noon.Add(2*day), expire, true)
	must(t, &r, licet.RenewLicense{Target: ours, ExpiresAt: noon.Add(4 * day)}, noon.Add(3*day))
	must(t, &r, licet.SuspendLicense{Target: ours}, noon.Add(3*day))
	check("suspended", noon.Add(4*day), expire, true)
	must(t, &r, licet.RenewLicense{Target: ours, ExpiresAt: noon.Add(6 * day)}, noon.Add(5*day))
	must(t, &r, licet.RevokeLicense{Target: ours}, noon.Add(5*day))
	check("revoked", noon.Add(6*day), expire, false)

	perpetual := licensed(nil)
	must(t, &perpetual, expire, noon)
	if perpetual.Changed {
		t.Error("an end of a perpetual license was recorded")
	}
	for name, other := range map[string]licet.Record{"nothing": {}, "an order": ordered(nil), "another license": licensed(nil)} {
		if _, err := run(t, &other, licet.ExpireLicense{Key: otherKey}, noon); err != licet.ErrLicenseNotFound {
			t.Errorf("on %s it answers %v", name, err)
		}
	}
}

// TestExpireOrderHeedsTheMargin, since its clock may run ahead.
func TestExpireOrderHeedsTheMargin(t *testing.T) {
	f := func(at time.Time, want bool) {
		t.Helper()
		r := ordered(func(o *licet.Order) { o.ExpiresAt = noon })
		must(t, &r, licet.ExpireOrder{Margin: time.Minute}, at)
		if r.Changed != want || r.Order.ExpiredAt.IsZero() == want {
			t.Errorf("at %v: changed %v, %v", at, r.Changed, r.Order.ExpiredAt)
		}
	}
	f(noon, false)
	f(noon.Add(time.Minute-time.Millisecond), false)
	f(noon.Add(time.Minute), true)
	f(noon.Add(day), true)
}
