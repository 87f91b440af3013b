package metrics_test

import (
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/metrics"
)

// TestRequestTimes: every request counts, under its own labels, also those that
// come at once.
func TestRequestTimes(t *testing.T) {
	reg := prometheus.NewRegistry()
	times := metrics.NewRequestTimes(metrics.New(reg, "", "", ""))
	const callers, each = 8, 50
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				for _, status := range []int{200, 404} {
					times.Observe("GET", "/livez", status, 0, time.Millisecond, "")
					times.Observe("GET", "/readyz", status, 0, time.Millisecond, "")
				}
				times.Observe("POST", "/readyz", 200, 0, time.Millisecond, "")
			}
		})
	}
	all.Wait()
	series := 0
	for _, f := range gathered(t, reg) {
		if f.GetName() != "licet_http_request_duration_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			series++
			if got := m.GetHistogram().GetSampleCount(); got != callers*each {
				t.Errorf("%v: %d", m.GetLabel(), got)
			}
		}
	}
	if series != 5 {
		t.Errorf("%d series, want 5", series)
	}
}

func BenchmarkRequestTimes(b *testing.B) {
	times := metrics.NewRequestTimes(metrics.New(prometheus.NewRegistry(), "", "", ""))
	b.ReportAllocs()
	for b.Loop() {
		times.Observe("POST", "/v1/licenses/activate", 200, 0, time.Millisecond, "")
	}
}
