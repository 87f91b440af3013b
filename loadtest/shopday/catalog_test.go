package main

import (
	"testing"
	"time"
)

func TestAddMonths(t *testing.T) {
	for _, c := range []struct {
		from   string
		months int
		want   string
	}{
		{"2026-11-22T10:00:00.123Z", 1, "2026-12-22T10:00:00.123Z"},
		{"2026-11-22T10:00:00Z", 12, "2027-11-22T10:00:00Z"},
		{"2027-01-31T23:59:59Z", 1, "2027-02-28T23:59:59Z"},
		{"2028-01-31T23:59:59Z", 1, "2028-02-29T23:59:59Z"},
		{"2028-02-29T00:00:00Z", 12, "2029-02-28T00:00:00Z"},
		{"2026-12-31T00:00:00Z", 24, "2028-12-31T00:00:00Z"},
		{"2026-11-30T00:00:00Z", 3, "2027-02-28T00:00:00Z"},
		{"2026-12-01T00:30:00+02:00", 1, "2026-12-30T22:30:00Z"},
	} {
		from, err := time.Parse(time.RFC3339, c.from)
		if err != nil {
			t.Fatal(err)
		}
		if got := addMonths(from, c.months).Format(time.RFC3339Nano); got != c.want {
			t.Errorf("%s and %d months: %s, want %s", c.from, c.months, got, c.want)
		}
	}
}

func TestTerms(t *testing.T) {
	for months, want := range map[int]string{0: "", 1: "P1M", 3: "P3M", 12: "P1Y", 24: "P2Y"} {
		if got := (terms{months: months}).validity(); got != want {
			t.Errorf("%d months: %q, want %q", months, got, want)
		}
	}
}
