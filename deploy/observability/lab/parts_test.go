package lab_test

import (
	"slices"
	"testing"
)

func TestParts(t *testing.T) {
	f := func(expr string, want ...string) {
		t.Helper()
		if got, err := partsOf(expr); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %q, %v\nwant %q", expr, got, err, want)
		}
	}
	f(`a`, `a`)
	f(`a > 3`, `a`)
	f(`3 * 3600 < a{b="c > d or e"}`, `a{b="c > d or e"}`)
	f(`time() - max by (job) (a) > 26 * 3600`, `time() - max by (job) (a)`)
	f(`absent(up{job="licet"}) or max by (job) (up{job="licet"}) == 0`, `up{job="licet"}`,
		`max by (job) (up{job="licet"})`)
	f(`absent(a) > 0 unless on (job) (sum(b) >= bool 2)`, `a`, `sum(b)`)
	f(`a > 14.4 * b and on (job, slo) c > 14.4 * b`, `a`, `14.4 * b`, `c`, `14.4 * b`)
	f(`a > on (job, slo) group_left () b`, `a`, `b`)
	f(`sum by (job) (up == bool 1) < (count(up) + 1) / 2`, `sum by (job) (up == bool 1)`, `(count(up) + 1) / 2`)
	f("sum(rate(or_total{x=\"\\\"\"}[5m]))\n/\nsum(rate(and_total[5m]))\n> 0.01",
		"sum(rate(or_total{x=\"\\\"\"}[5m]))\n/\nsum(rate(and_total[5m]))")
	f(`(a) / (b) > 1`, `(a) / (b)`)
	f(`(a or b)`, `a`, `b`)
}

func TestAlternatives(t *testing.T) {
	f := func(expr string, want ...string) {
		t.Helper()
		if got, err := alternatives(expr); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %q, %v\nwant %q", expr, got, err, want)
		}
	}
	f(`a or b`)
	f(`sum(rate(or_total{x="(a or b)"}[5m])) / (sum(for_x) > 0)`)
	f("(\n  sum by (job) (rate(a{b=\"c\"}[5m]))\n  or\n  0 * b\n)\n/\n(b > 0)", `sum by (job) (rate(a{b="c"}[5m]))`)
	f(`max((a or b or c) + d) or (e or f)`, `a`, `b`, `e`)
}
