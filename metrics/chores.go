package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Chores contains the instruments of sweeps, which every node repeats, of backups and of readiness.
type Chores struct {
	// Ready is 1 while the node is ready for requests, and else 0.
	Ready *FuncGauge
	// ClockState is 1 for the state of the comparison of the node's clock with the other nodes' clocks, and 0
	// for the other states: agrees, differs or undecided.
	ClockState *prometheus.GaugeVec
	// ClockDifference is by how much another node's clock is at least ahead of this node's clock, in seconds;
	// negative if it is behind, 0 if no difference is proven. Of several nodes, the farthest counts.
	ClockDifference prometheus.Gauge
	// BackupSuccess is the start of the last successful backup, in Unix time; 0 if no backup is
	// known. All nodes read the same value from the store.
	BackupSuccess prometheus.Gauge
	// LeasesInUse are the leases in use, by account, mode and product, of the slots that this node counts.
	LeasesInUse *SeriesGauge
	// Sweeps counts the passes of each sweep, by outcome: ok, failed or put_off (the node is busy, or its
	// clock is not known to agree with the other nodes' clocks).
	Sweeps *prometheus.CounterVec
	// SweepDuration is the duration of a pass, in seconds.
	SweepDuration *prometheus.HistogramVec
	// SweepSuccess is the end of the last pass that was ok, in Unix time; 0 if there was none.
	SweepSuccess *prometheus.GaugeVec
}

// sweepBuckets range from a pass that finds nothing to a pass with much work, in seconds.
var sweepBuckets = []float64{.001, .005, .025, .1, .5, 2.5, 10, 30, 60, 300}

func newChores(factory promauto.Factory, reg prometheus.Registerer) Chores {
	return Chores{
		Ready: newFuncGauge(reg, "licet_ready", "Whether requests may be sent to this node: 1 or 0. It is not "+
			"leaving, the store has answered it in the last two seconds, and its clock does not differ from the "+
			"clocks of most nodes."),
		ClockState: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "licet_clock_state",
			Help: "How this node's clock compares with the other nodes' clocks, 1 for the current state: agrees, " +
				"undecided (the node removes and records nothing by time), or differs (the node refuses all requests).",
		}, []string{"state"}),
		ClockDifference: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_clock_difference_seconds",
			Help: "By how much the clock of another node is at least ahead of this node's clock; negative where it " +
				"is behind. The farthest counts; 0 where no difference is proven.",
		}),
		BackupSuccess: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_backup_last_success_timestamp_seconds",
			Help: "When the last backup of the store was begun that ended well, in Unix time; 0 where none is " +
				"known. All nodes find the same.",
		}),
		LeasesInUse: newSeriesGauge(reg, "licet_leases_in_use", "Leases that devices of floating licenses have, as "+
			"far as this node counts them: the nodes divide the licenses. The series without labels has the products "+
			"beyond the first 1,000.", "account", "mode", "product"),
		Sweeps: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "licet_sweeps_total",
			Help: "Passes of sweeps, by outcome: ok, failed, or put_off while the node has much else to do or its " +
				"clock is not known to agree with the other nodes' clocks.",
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
