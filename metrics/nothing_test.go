//go:build nometrics

package metrics_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/metrics"
)

// TestNothing: everything may be counted, and nothing is.
func TestNothing(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg, "", "", "")
	metrics.NewRequestTimes(m).Observe("GET", "/", 200, 0, time.Second, "trace")
	metrics.NewStoreTimes(m).Observe("load", "ok", time.Second)
	m.Panics.Inc()
	m.RefundsDue.Set(1)
	m.FoldCommands.Observe(1)
	m.Swaps.WithLabelValues("won").Inc()
	m.WebhookEndpoints.WithLabelValues("idle").Set(1)
	m.StoreBatch.WithLabelValues("read").Observe(1)
	for _, f := range gathered(t, reg) {
		if len(f.GetMetric()) != 1 || f.GetMetric()[0].GetGauge() == nil {
			t.Errorf("%v", f) // other than what is read when it is scraped
		}
	}
}
