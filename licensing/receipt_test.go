package licensing_test

import (
	"errors"
	"testing"
	"time"

	"licet/internal/depth"
	"licet/licensing"
)

// TestReceiptTimes: a receipt has the time of the last full minute, or of the last tenth of a short validity or of a
// short revocation_max_age, and ends no later than the license and the lease.
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
		"a short age of lists": {func(l *licensing.License) { l.Receipts.RevocationAgeSeconds = 60 }, plain,
			minute.Add(54 * time.Second), minute.Add(54*time.Second + week), "2030-01-10"},
		"asks for more": {func(l *licensing.License) { l.Receipts.ValiditySeconds = 3600 },
			licensing.AskReceipt(true, false, 2*time.Hour), minute, minute.Add(time.Hour), "2030-01-03"},
		"the license ends": {func(l *licensing.License) { l.ExpiresAt = now.Add(90 * time.Minute) }, plain, minute,
			now.Add(90 * time.Minute).Truncate(time.Second), "2030-01-03"},
		"grace": {func(l *licensing.License) {
			l.ExpiresAt, l.Grace = now.Add(90*time.Minute), licensing.Period{Days: 1}
		}, plain, minute, now.Add(90*time.Minute + 24*time.Hour).Truncate(time.Second), "2030-01-04"},
		"less than the leeway before midnight": {func(l *licensing.License) {
			l.ExpiresAt = time.Date(2030, 1, 2, 23, 55, 0, 1_000_000, time.UTC)
		}, plain, minute, time.Date(2030, 1, 2, 23, 55, 0, 0, time.UTC), "2030-01-04"},
		"the leeway before midnight": {func(l *licensing.License) {
			l.ExpiresAt = time.Date(2030, 1, 2, 23, 55, 0, 0, time.UTC)
		}, plain, minute, time.Date(2030, 1, 2, 23, 55, 0, 0, time.UTC), "2030-01-03"},
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

// TestReceiptsCostOneWriteADay: whatever a request asks for, receipts change an unchanged license once a day, as
// RecordsReceipt says; and those that a request does not ask for, not at all while the store is almost full.
func TestReceiptsCostOneWriteADay(t *testing.T) {
	depth.NotRaced(t)
	r := licensed(func(l *licensing.License) { l.Receipts.Always = true }, "laptop")
	changes := 0
	for at := noon; at.Before(noon.Add(10 * 24 * time.Hour)); at = at.Add(time.Hour) {
		for _, longest := range []time.Duration{0, time.Minute, time.Hour, licensing.MaxReceiptValidity} {
			ask := licensing.AskReceipt(true, longest == time.Hour, longest)
			c := licensing.ValidateLicense{Target: ours, Device: "laptop", SeenStep: 1000 * time.Hour, Receipt: ask}
			plain := c
			plain.Receipt = 0
			kept := must(t, &r, licensing.WithoutRefresh(plain), at)
			records := licensing.RecordsReceipt(&r, c, at)
			if r.Changed || licensing.RecordsReceipt(&r, plain, at) {
				t.Fatalf("at %v, the license has changed", at)
			}
			result := must(t, &r, licensing.WithoutRefresh(c), at)
			if none := (licensing.ReceiptTimes{}); result.Receipt == none || r.Changed != (kept.Receipt == none) ||
				r.Changed != records {
				t.Fatalf("at %v: %+v, and without a change %+v; records: %v", at, result.Receipt, kept.Receipt, records)
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

// TestReceiptsByTheEarliestClock: a node dates receipts by the earliest of the nodes' clocks. It gives a receipt only
// if the receipt counts for half of its time at least, whichever clock is right, and else binds nothing.
func TestReceiptsByTheEarliestClock(t *testing.T) {
	const s = time.Second
	aged, brief := licensing.ReceiptTerms{RevocationAgeSeconds: 600}, licensing.ReceiptTerms{ValiditySeconds: 7200}
	for name, c := range map[string]struct {
		terms        licensing.ReceiptTerms
		longest      time.Duration
		ahead, apart time.Duration
		refused      bool
	}{
		"agree":                        {},
		"minutes ahead":                {ahead: 240 * s, apart: 240 * s},
		"a day behind":                 {apart: 24 * time.Hour},
		"behind by half of a week":     {apart: 84 * time.Hour, refused: true},
		"a short receipt":              {longest: time.Minute, ahead: 29 * s, apart: 29 * s},
		"too short":                    {longest: time.Minute, ahead: 30 * s, apart: 30 * s, refused: true},
		"less than half of the age":    {terms: aged, apart: 299 * s},
		"half of the age, ahead":       {terms: aged, ahead: 300 * s, apart: 300 * s, refused: true},
		"half of the age, behind":      {terms: aged, apart: 300 * s, refused: true},
		"half of the product's length": {terms: brief, apart: time.Hour, refused: true},
	} {
		r := licensed(func(l *licensing.License) { l.Receipts = c.terms })
		r.Devices["pc"] = &licensing.DeviceEntry{Device: licensing.Device{ID: "pc"}}
		r.Documents = &licensing.DocumentClock{Ahead: c.ahead, Apart: c.apart}
		for _, fresh := range []bool{true, false} {
			ask := licensing.AskReceipt(true, fresh, c.longest)
			result, err := licensing.Apply(&r, licensing.Activate{Target: ours, Device: "pc", Receipt: ask}, noon)
			if c.refused {
				if !errors.Is(err, licensing.ErrClockInDoubt) || r.Changed || r.Devices["pc"].Bound {
					t.Errorf("%s: %+v, %v, and bound %v", name, result.Receipt, err, r.Devices["pc"].Bound)
				}
				continue
			}
			early := noon.Add(-c.ahead).Sub(result.Receipt.IssuedAt)
			if err != nil || early < 0 || early >= time.Minute || fresh && early >= time.Second {
				t.Errorf("%s: issued %v before the time of the earliest clock, %v", name, early, err)
			}
		}
	}
}

// TestReceiptInDoubt: a node that can't date a receipt refuses what asks for a receipt, and changes nothing. It answers
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
		r.Documents = licensing.ClocksUnknown()
		if _, err := licensing.Apply(&r, c.asking, noon); !errors.Is(err, licensing.ErrClockInDoubt) || r.Changed {
			t.Errorf("%s, asking: %v, changed %v", name, err, r.Changed)
		}
		result := must(t, &r, c.plain, noon)
		if result.Receipt != (licensing.ReceiptTimes{}) || r.License.ReceiptsUntil != 0 {
			t.Errorf("%s: a receipt %+v", name, result.Receipt)
		}
	}
	r := licensed(func(*licensing.License) {}, "laptop")
	for _, c := range []licensing.Command{licensing.Activate{Target: ours, Device: "laptop"},
		licensing.ValidateLicense{Target: ours, Device: "laptop"}} {
		if r.DatesDocument(c) != 0 {
			t.Errorf("%T without a receipt looks at the clock", c)
		}
	}
}
