package metrics_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"licet/metrics"
)

// TestDistinctCounter: a name counts once.
func TestDistinctCounter(t *testing.T) {
	d := metrics.New(prometheus.NewRegistry(), "", "", "").EventValuesUnreadable
	counted := func() float64 { return testutil.ToFloat64(d) }
	for range 3 {
		for i := range 10 {
			d.CountOnce(fmt.Sprint(i))
		}
	}
	if d.CountOnce("7") || !d.CountOnce("another") {
		t.Error("a name counts twice, or another one does not count")
	}
	if n := counted(); n != 11 {
		t.Errorf("%v are counted, not 11", n)
	}
	// More names than a DistinctCounter remembers: memory stays bounded, and every new name counts.
	for i := range 100_000 {
		d.CountOnce(fmt.Sprint("many ", i))
	}
	if n := counted(); n != 100_011 {
		t.Errorf("%v are counted, not 100,011", n)
	}
}
