package licensing_test

import (
	"errors"
	"testing"
	"time"

	"licet/internal/depth"
	"licet/licensing"
)

// TestReceiptTimes: a receipt has the time of the last full minute, or of the last tenth of a short validity, and ends
// no later than the license and the lease.
func TestReceiptTimes(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 55, 700_000_000, time.UTC)
	minute := now.Truncate(time.Minute)
	plain, fresh := licensing.AskReceipt(true, false, 0), licensing.AskReceipt(true, true, 0)
	week := 7 * 24 * time.Hour
	for name, test := range map[string]struct {
		change func(*licensing.License)
		ask    licensing.ReceiptAsk
		issued time.Time
		end    time.Time
		until  string
	}{
		"none":  {nil, 0, time.Time{}, time.Time{}, "1970-01-01"},
		"plain": {nil, plain, minute, minute.Add(week), "2030-01-10"},
		"fresh": {nil, fresh, now.Truncate(time.Second), now.Truncate(time.Second).Add(week), "2030-01-10"},
		"short": {nil, licensing.AskReceipt(true, false, time.Minute), minute.Add(54 * time.Second),
			minute.Add(114 * time.Second), "2030-01-10"},
		"always": {func(l *licensing.License) {
			l.Receipts = licensing.ReceiptTerms{Always: true, ValiditySeconds: 3600}
		}, 0, minute, minute.Add(time.Hour), "2030-01-03"},
		"asks for more": {func(l *licensing.License) { l.Receipts.ValiditySeconds = 3600 },
			licensing.AskReceipt(true, false, 2*time.Hour), minute, minute.Add(time.Hour), "2030-01-03"},
		"the license ends": {func(l *licensing.License) { l.ExpiresAt = now.Add(90 * time.Minute) }, plain, minute,
			now.Add(90 * time.Minute).Truncate(time.Second), "2030-01-03"},
		"grace": {func(l *licensing.License) {
			l.ExpiresAt, l.Grace = now.Add(90*time.Minute), licensing.Period{Days: 1}
		}, plain, minute, now.Add(90*time.Minute + 24*time.Hour).Truncate(time.Second), "2030-01-04"},
		"a lease": {func(l *licensing.License) {
			l.Lease = licensing.LeaseTerms{Length: 10 * time.Minute, Longest: 10 * time.Minute}
		}, plain, minute, now.Add(10 * time.Minute).Truncate(time.Second), "2030-01-03"},
	} {
		r := licensed(func(l *licensing.License) {
			if test.change != nil {
				test.change(l)
			}
		})
		r.ActsByTime = true
		r.Devices["pc"] = &licensing.DeviceEntry{Device: licensing.Device{ID: "pc"}}
		result := must(t, &r, licensing.Activate{Target: ours, Device: "pc", Receipt: test.ask}, now)
		if got := result.Receipt; !got.IssuedAt.Equal(test.issued) || !got.ExpiresAt.Equal(test.end) ||
			r.License.ReceiptsUntil.Begins().Format(time.DateOnly) != test.until {
			t.Errorf("%s: from %v to %v, recorded until %v", name, got.IssuedAt, got.ExpiresAt,
				r.License.ReceiptsUntil.Begins())
		}
	}
}

// TestReceiptsCostOneWriteADay: whatever a request asks for, receipts change an unchanged license once a day; and not
// at all while the store is almost full.
func TestReceiptsCostOneWriteADay(t *testing.T) {
	depth.NotRaced(t)
	r := licensed(func(*licensing.License) {}, "laptop")
	changes := 0
	for at := noon; at.Before(noon.Add(10 * 24 * time.Hour)); at = at.Add(time.Hour) {
		for _, longest := range []time.Duration{0, time.Minute, time.Hour, licensing.MaxReceiptValidity} {
			ask := licensing.AskReceipt(true, longest == time.Hour, longest)
			c := licensing.ValidateLicense{Target: ours, Device: "laptop", SeenStep: 1000 * time.Hour, Receipt: ask}
			kept := must(t, &r, licensing.WithoutRefresh(c), at)
			if r.Changed {
				t.Fatalf("at %v, the license has changed", at)
			}
			result := must(t, &r, c, at)
			if none := (licensing.ReceiptTimes{}); result.Receipt == none || r.Changed != (kept.Receipt == none) {
				t.Fatalf("at %v: %+v, and without a change %+v", at, result.Receipt, kept.Receipt)
			}
			if r.Changed {
				changes++
			}
		}
	}
	if changes > 11 || r.License.Revision != uint64(noon.Unix()) {
		t.Errorf("%d changes in ten days, and revision %d", changes, r.License.Revision)
	}
}

// TestReceiptInDoubt: a node whose clock may be ahead refuses what asks for a receipt, and changes nothing. It answers
// what does not ask, without the receipt that the license's terms add.
func TestReceiptInDoubt(t *testing.T) {
	asks := licensing.AskReceipt(true, true, 0)
	for name, c := range map[string]struct{ asking, plain licensing.Command }{
		"activate": {licensing.Activate{Target: ours, Device: "pc", Receipt: asks},
			licensing.Activate{Target: ours, Device: "pc"}},
		"activate a bound device": {licensing.Activate{Target: ours, Device: "laptop", Receipt: asks},
			licensing.Activate{Target: ours, Device: "laptop"}},
		"validate": {licensing.ValidateLicense{Target: ours, Device: "laptop", Receipt: asks},
			licensing.ValidateLicense{Target: ours, Device: "laptop"}},
	} {
		r := licensed(func(l *licensing.License) { l.Receipts.Always = true }, "laptop")
		r.Devices["pc"] = &licensing.DeviceEntry{Device: licensing.Device{ID: "pc"}}
		r.ClockAhead = r.DatesDocument(c.asking)
		if _, err := licensing.Apply(&r, c.asking, noon); !errors.Is(err, licensing.ErrClockInDoubt) || r.Changed {
			t.Errorf("%s, asking: %v, changed %v", name, err, r.Changed)
		}
		r.ClockAhead = r.DatesDocument(c.plain)
		result := must(t, &r, c.plain, noon)
		if result.Receipt != (licensing.ReceiptTimes{}) || r.License.ReceiptsUntil != 0 {
			t.Errorf("%s: a receipt %+v", name, result.Receipt)
		}
	}
	r := licensed(func(*licensing.License) {}, "laptop")
	for _, c := range []licensing.Command{licensing.Activate{Target: ours, Device: "laptop"},
		licensing.ValidateLicense{Target: ours, Device: "laptop"}} {
		if r.DatesDocument(c) {
			t.Errorf("%T without a receipt looks at the clock", c)
		}
	}
}
