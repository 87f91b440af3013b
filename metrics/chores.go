package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Chores are the instruments of what every node does again and again, sweeps, and of
// what is to be looked after.
type Chores struct {
	// Ready is 1 while the node says that requests may be sent to it.
	Ready *Sampled
	// BackupSuccess is when the last backup was begun that ended well, in Unix time; 0:
	// none is known. All nodes read the same from the store.
	BackupSuccess prometheus.Gauge
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

func newChores(factory promauto.Factory, reg prometheus.Registerer) Chores {
	return Chores{
		Ready: newSampled(reg, "licet_ready", "Whether requests may be sent to this node: 1 or 0. It is not leaving, and the store has answered it in the last two seconds."),
		BackupSuccess: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_backup_last_success_timestamp_seconds",
			Help: "When the last backup of the store was begun that ended well, in Unix time; 0 where none is known. All nodes find the same.",
		}),
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
