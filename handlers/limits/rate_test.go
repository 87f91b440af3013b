package limits

import (
	"testing"
	"time"
)

func TestRateText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		rate  Rate
		again string
	}{
		"0":             {Rate{}, "0"},
		"60/m":          {Rate{60, time.Minute}, "60/m"},
		"60/1m":         {Rate{60, time.Minute}, "60/m"},
		"60/60s":        {Rate{60, time.Minute}, "60/m"},
		"500/s":         {Rate{500, time.Second}, "500/s"},
		"100/10s":       {Rate{100, 10 * time.Second}, "100/10s"},
		"1000/h":        {Rate{1000, time.Hour}, "1000/h"},
		"1000000/24h":   {Rate{1_000_000, 24 * time.Hour}, "1000000/24h0m0s"},
		"5/1m30s":       {Rate{5, 90 * time.Second}, "5/1m30s"},
		"1000000/24h0s": {Rate{1_000_000, 24 * time.Hour}, "1000000/24h0m0s"},
	} {
		var got Rate
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want.rate {
			t.Errorf("%q is %v (%v)", text, got, err)
		}
		if again, err := got.MarshalText(); err != nil || string(again) != want.again {
			t.Errorf("%q is written %q (%v)", text, again, err)
		}
	}
	for _, text := range []string{
		"", "60", "/m", "60/", "0/s", "-1/s", "+1/s", "1.5/s", "60/d", "60/0s", "60/-1m", "60/500ms", "60/1500ms",
		"60/25h", "1000001/s", "99999999999999999999/s", "60/m/s", " 60/m", "60 / m", "off",
	} {
		got := Rate{Count: 7, Per: time.Second}
		if err := got.UnmarshalText([]byte(text)); err == nil || got != (Rate{7, time.Second}) {
			t.Errorf("%q is %v (%v)", text, got, err)
		}
	}
}
