package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Chores are the instruments of what every node does again and again: sweeps.
type Chores struct {
	// Sweeps counts the passes of each sweep, by outcome: ok, failed or put_off (the
	// node has much else to do).
	Sweeps *prometheus.CounterVec
	// SweepDuration is how long they took, in seconds.
	SweepDuration *prometheus.HistogramVec
	// SweepSuccess is when the last pass ended that was ok, in Unix time; 0: none has.
	SweepSuccess *prometheus.GaugeVec
}

// sweepBuckets span a look that finds nothing to a pass with much to do, in seconds.
var sweepBuckets = []float64{.001, .005, .025, .1, .5, 2.5, 10, 30, 60, 300}

func newChores(factory builder) Chores {
	return Chores{
		Sweeps: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "licet_sweeps_total",
			Help: "Passes of sweeps, by outcome: ok, failed, or put_off while the node has much else to do.",
		}, []string{"sweep", "outcome"}),
		SweepDuration: factory.NewHistogramVec(histogram(
			"licet_sweep_duration_seconds",
			"Time of one pass of a sweep.",
			sweepBuckets,
		), []string{"sweep"}),
		SweepSuccess: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "licet_sweep_last_success_timestamp_seconds",
			Help: "When the last pass of a sweep ended that was ok, in Unix time; 0 where none has since the start.",
		}, []string{"sweep"}),
	}
}
