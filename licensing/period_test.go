package licensing_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"licet/licensing"
)

func TestParsePeriod(t *testing.T) {
	good := func(text string, want licensing.Period, canonical string) {
		t.Helper()
		got, ok := licensing.ParsePeriod(text)
		if !ok || got != want {
			t.Errorf("%s is %+v, %v; want %+v", text, got, ok, want)
		}
		if got.String() != canonical {
			t.Errorf("%s is written as %q, want %q", text, got.String(), canonical)
		}
	}
	good("P1Y", licensing.Period{Years: 1}, "P1Y")
	good("P1M", licensing.Period{Months: 1}, "P1M")
	good("P2W", licensing.Period{Days: 14}, "P14D")
	good("P1W1D", licensing.Period{Days: 8}, "P8D")
	good("P30D", licensing.Period{Days: 30}, "P30D")
	good("PT24H", licensing.Period{Clock: 24 * time.Hour}, "PT24H")
	good("PT1M", licensing.Period{Clock: time.Minute}, "PT1M")
	good("PT90M", licensing.Period{Clock: 90 * time.Minute}, "PT1H30M")
	good("PT1S", licensing.Period{Clock: time.Second}, "PT1S")
	good("P1Y2M3DT4H5M6S", licensing.Period{Years: 1, Months: 2, Days: 3,
		Clock: 4*time.Hour + 5*time.Minute + 6*time.Second}, "P1Y2M3DT4H5M6S")
	good("P01Y", licensing.Period{Years: 1}, "P1Y")
	good("P1000Y12000M366000D", licensing.Period{Years: 1000, Months: 12000, Days: 366000}, "P1000Y12000M366000D")
	good("P0D", licensing.Period{}, "")
	good("PT0S", licensing.Period{}, "")

	for _, text := range []string{
		"", "P", "PT", "T1H", "1Y", "p1y", "P1y", "P1", "PY", "P1YT", "P-1Y", "-P1Y", "+P1Y", "P+1Y", "P1.5Y", "P1,5D",
		"PT0.5S",
		"P1D1Y", "P1M1Y", "P1Y1Y", "PT1S1H", "P1H", "PT1D", "P1S", "PT1Y", "P1Y ", " P1Y", "P 1Y", "P1YT1H1M1S1S",
		"P1YP1Y", "P1Y/P2Y", "P1T1H",
		"P1001Y", "P12001M", "P366001D", "P52286W", "PT878401H", "P9999999999Y", "P99999999999999999999Y",
		"PT999999999M", "P\u0661Y", "P\xff1Y",
	} {
		if got, ok := licensing.ParsePeriod(text); ok {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
}

// TestPeriodRoundTrip writes any period and reads the same again.
func TestPeriodRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := licensing.Period{
			Years:  rapid.IntRange(0, 1000).Draw(t, "years"),
			Months: rapid.IntRange(0, 12000).Draw(t, "months"),
			Days:   rapid.IntRange(0, 366000).Draw(t, "days"),
			Clock:  time.Duration(rapid.IntRange(0, 100*366*24*3600).Draw(t, "seconds")) * time.Second,
		}
		if p.IsZero() {
			return
		}
		if again, ok := licensing.ParsePeriod(p.String()); !ok || again != p {
			t.Fatalf("%+v is written as %s, which is %+v, %v", p, p, again, ok)
		}
	})
}

func FuzzParsePeriod(f *testing.F) {
	f.Add("P1Y2M3W4DT5H6M7S")
	f.Add("PT878400H")
	f.Add("P")
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := licensing.ParsePeriod(text)
		if !ok || p.IsZero() {
			return
		}
		if again, ok := licensing.ParsePeriod(p.String()); !ok || again != p {
			t.Errorf("%q is %+v, written as %s, which is %+v, %v", text, p, p, again, ok)
		}
		if end := p.AddTo(noon); !end.After(noon) || end.Year() > 9999 {
			t.Errorf("%q leads to %v", text, end)
		}
	})
}
