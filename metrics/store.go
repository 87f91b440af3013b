package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Store are the instruments of what is asked of etcd, and of what is remembered of it.
type Store struct {
	// StoreDuration is the time of one etcd request in seconds, by operation
	// and by outcome: ok, refused (not executed) or unknown.
	StoreDuration *prometheus.HistogramVec
	// StoreInFlight counts the etcd requests that are under way.
	StoreInFlight prometheus.Gauge
	// StoreBatch is how many callers' changes or reads travel in one etcd
	// request, by kind: write or read.
	StoreBatch *prometheus.HistogramVec
	// StoreBatchesLost counts batches that went again because of one of them.
	StoreBatchesLost prometheus.Counter
	// Swaps counts compare-and-swaps of records, by how they ended: won, lost (another
	// writer was first, and for certain) or unknown (it may have been made).
	Swaps *prometheus.CounterVec
	// SwapsReissued counts swaps that were sent again because the outcome of an
	// earlier attempt was in doubt.
	SwapsReissued prometheus.Counter
	// RecordsResident counts the licenses that are remembered.
	RecordsResident *Sampled
	// RecordLookups counts the turns of licenses' mailboxes, by whether the license
	// was remembered: hit, or miss, which costs a read before the swap.
	RecordLookups *prometheus.CounterVec
	// APIKeyLookups counts how API keys were looked up: hit and unknown were
	// answered from memory, miss and untrusted by the store, the last because no
	// scan had succeeded lately.
	APIKeyLookups *prometheus.CounterVec
	// APIKeyScan is when the last scan for changed API keys that succeeded
	// began, in Unix time.
	APIKeyScan prometheus.Gauge
	// InvariantViolations counts licenses that contradict themselves, as they
	// were read or were about to be written. It stays 0.
	InvariantViolations prometheus.Counter
}

func newStore(factory promauto.Factory, reg prometheus.Registerer) Store {
	return Store{
		StoreDuration: factory.NewHistogramVec(histogram(
			"licet_store_request_duration_seconds",
			"Time of one etcd request.",
			latencyBuckets,
		), []string{"operation", "outcome"}),
		StoreInFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_store_requests_in_flight",
			Help: "etcd requests under way.",
		}),
		StoreBatch: factory.NewHistogramVec(histogram(
			"licet_store_batch_parts",
			"Changes or reads of different callers in one etcd request.",
			prometheus.ExponentialBuckets(1, 2, 8),
		), []string{"kind"}),
		StoreBatchesLost: factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_store_batches_lost_total",
			Help: "Batches of changes sent again, each change for itself, because one was lost to another writer.",
		}),
		Swaps: vector(factory,
			"licet_swaps_total",
			"Compare-and-swaps of records: won, lost to another writer and made again on what that one wrote, or given up while their outcome was unknown.",
			[]string{"outcome"}, each("won", "lost", "unknown")...),
		SwapsReissued: factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_swaps_reissued_total",
			Help: "Compare-and-swaps sent again because an earlier attempt's outcome was in doubt.",
		}),
		RecordsResident: newSampled(reg, "licet_records_resident", "Licenses remembered by this node."),
		RecordLookups: vector(factory,
			"licet_record_lookups_total",
			"Lookups of licenses that commands were for: remembered (hit), or to be read before anything else (miss).",
			[]string{"result"}, each("hit", "miss")...),
		APIKeyLookups: vector(factory,
			"licet_api_key_lookups_total",
			"Lookups of API keys: answered from memory (hit, unknown), or by the store (miss, untrusted).",
			[]string{"result"}, each("hit", "unknown", "miss", "untrusted")...),
		APIKeyScan: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_api_key_last_scan_timestamp_seconds",
			Help: "When the last successful scan for changed API keys began, in Unix time. Keys are read from the store when it is 2 seconds old.",
		}),
		InvariantViolations: factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_invariant_violations_total",
			Help: "Licenses found that contradict themselves, read or about to be written. Always 0 unless there is a bug.",
		}),
	}
}
