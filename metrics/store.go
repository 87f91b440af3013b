package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Store contains the instruments of etcd requests, swaps and caches.
type Store struct {
	// StoreDuration is the duration of an etcd request in seconds, by operation and outcome: ok, refused
	// (not executed) or unknown.
	StoreDuration *prometheus.HistogramVec
	// StoreInFlight is the number of etcd requests in flight.
	StoreInFlight prometheus.Gauge
	// StoreBatch is the number of changes or reads in an etcd request, by kind: write or read.
	StoreBatch *prometheus.HistogramVec
	// StoreBatchesLost counts batches sent again because one of their changes lost its swap.
	StoreBatchesLost prometheus.Counter
	// Swaps counts compare-and-swaps of records, by outcome: won, lost (another writer was certainly
	// first) or unknown (the swap may have been executed).
	Swaps *prometheus.CounterVec
	// SwapsReissued counts swaps sent again because the outcome of an earlier attempt was in doubt.
	SwapsReissued prometheus.Counter
	// RecordsResident is the number of cached licenses.
	RecordsResident *FuncGauge
	// RecordLookups counts the turns of licenses' mailboxes, by whether the license was cached: hit, or
	// miss, which costs a read before the swap.
	RecordLookups *prometheus.CounterVec
	// APIKeyLookups counts lookups of API keys, by result. hit and unknown come from the node. miss and
	// untrusted come from the store, untrusted because no recent scan has succeeded.
	APIKeyLookups *prometheus.CounterVec
	// APIKeyScan is the start of the last successful scan for changed API keys, in Unix time.
	APIKeyScan prometheus.Gauge
	// StoreSpace is 1 for the state that the store's space is in: reserve (almost full: growth is refused) or
	// full (every change is refused). Without either, the store has room.
	StoreSpace *prometheus.GaugeVec
	// StoreQuotaUsed is the share of its quota that the fullest member of etcd uses, by kind: in_use (the
	// data with its history) or file (the database file, with its free pages).
	StoreQuotaUsed *prometheus.GaugeVec
	// GrowthRefused counts changes that a node refused for want of space in the store, by reason: reserve (the store
	// is almost full) or full.
	GrowthRefused *prometheus.CounterVec
	// InvariantViolations counts licenses that violate an invariant, when the node reads or is about to
	// write them. It stays 0 unless there is a bug.
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
			"Compare-and-swaps of records: won, lost to another writer and made again on the other writer's value, or "+
				"given up while their outcome was unknown.",
			[]string{"outcome"}, each("won", "lost", "unknown")...),
		SwapsReissued: factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_swaps_reissued_total",
			Help: "Compare-and-swaps sent again because an earlier attempt's outcome was in doubt.",
		}),
		RecordsResident: newFuncGauge(reg, "licet_records_resident", "Licenses remembered by this node."),
		RecordLookups: vector(factory,
			"licet_record_lookups_total",
			"Lookups of licenses that commands were for: remembered (hit), or to be read before anything else (miss).",
			[]string{"result"}, each("hit", "miss")...),
		APIKeyLookups: vector(factory,
			"licet_api_key_lookups_total",
			"Lookups of API keys: answered by the node (hit, unknown), or by the store (miss, untrusted).",
			[]string{"result"}, each("hit", "unknown", "miss", "untrusted")...),
		APIKeyScan: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_api_key_last_scan_timestamp_seconds",
			Help: "When the last successful scan for changed API keys began, in Unix time. Keys are read from the " +
				"store when it is 2 seconds old.",
		}),
		StoreSpace: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "licet_store_space",
			Help: "1 for the state of the store's space: reserve while growth is refused, full while every change is.",
		}, []string{"state"}),
		StoreQuotaUsed: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "licet_store_quota_used_ratio",
			Help: "Share of its quota that the fullest etcd member uses: by its data (in_use) and by its file (file).",
		}, []string{"kind"}),
		GrowthRefused: vector(factory,
			"licet_growth_refused_total",
			"Changes refused because the store is almost full (reserve) or full.",
			[]string{"reason"}, each("reserve", "full")...),
		InvariantViolations: factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_invariant_violations_total",
			Help: "Licenses found that contradict themselves, read or about to be written. Always 0 unless there is " +
				"a bug.",
		}),
	}
}
