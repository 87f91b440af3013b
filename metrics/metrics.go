// Package metrics holds every Prometheus instrument of the service. They are
// built on a registry that is passed in and handed to whoever counts; there
// are no global ones. No label ever carries a key, a device, an order or an
// address.
package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the instruments of one process. Make them with [New].
type Metrics struct {
	// HTTPDuration is the time from a request's last byte to its answer's
	// first, in seconds, by method, route pattern and status.
	HTTPDuration *prometheus.HistogramVec
	// HTTPInFlight counts the requests that are being worked on.
	HTTPInFlight prometheus.Gauge
	// RateLimited counts the requests that were answered 42900, by the limit
	// that was used up: address, api_key or license.
	RateLimited *prometheus.CounterVec

	// Mailboxes counts the records that have commands waiting or running.
	Mailboxes prometheus.Gauge
	// FoldCommands is how many commands a fold holds.
	FoldCommands prometheus.Histogram
	// SwapsLost counts folds that were made again because another writer was first.
	SwapsLost prometheus.Counter
	// Hops counts batches of commands that were sent to another node, by outcome:
	// answered, not_taken (refused, or the node was not reached) or unknown.
	Hops *prometheus.CounterVec
	// HopCommands counts the commands in them, HopCommandsRun those that others
	// have sent and that were run here.
	HopCommands, HopCommandsRun prometheus.Counter
	// CommandsUnderWay counts the commands and reads that are waiting or running.
	CommandsUnderWay prometheus.Gauge
	// CommandsLimit is how many may be at present.
	CommandsLimit prometheus.Gauge
	// CommandsShed counts those that were refused because too much was under
	// way, by reason: limit (of the node), share (of one record), mailbox (that is
	// full), deadline (that would have passed), background (nobody waits), lists
	// (too many pages of lists are being read), waits (for events) or pings (of webhook
	// endpoints).
	CommandsShed *prometheus.CounterVec
	// Panics counts panics that were caught; each has a stack in the log.
	Panics prometheus.Counter

	// RefundsDue is how many orders' money is to go back and has not, as the last
	// pass over them found; all nodes find the same.
	RefundsDue prometheus.Gauge
	// Refunds counts the steps of refunds that were made here, by outcome: asked (the
	// provider was about to be), made (it is recorded) or refused (for good).
	Refunds *prometheus.CounterVec

	// EventFeedLag is how old the epoch of events is that is not in the feed yet, if
	// anything was written into it, in seconds.
	EventFeedLag prometheus.Gauge
	// WebhookAttempts counts attempts to deliver an event, by outcome: delivered,
	// failed or gone (the endpoint wants nothing any more).
	WebhookAttempts *prometheus.CounterVec
	// WebhookAttemptDuration is how long they took, in seconds.
	WebhookAttemptDuration prometheus.Histogram
	// WebhookEndpoints counts the endpoints that this node delivers to, by state:
	// delivering, failing or idle.
	WebhookEndpoints *prometheus.GaugeVec
	// WebhookPending is how many messages to them are to be tried again,
	// WebhookDeadLetters how many were given up.
	WebhookPending, WebhookDeadLetters prometheus.Gauge
	// WebhookLag is how old the oldest event is that was not sent yet to one of them
	// that is not failing, in seconds.
	WebhookLag prometheus.Gauge
	// WebhookCheckpoints counts what was stored of deliveries, by outcome: ok, lost
	// (another node has the endpoint) or unknown.
	WebhookCheckpoints *prometheus.CounterVec
	// WebhookSkips counts how often events were not kept any more that an endpoint had
	// not got.
	WebhookSkips prometheus.Counter

	// APIKeyLookups counts how API keys were looked up: hit and unknown were
	// answered from memory, miss and untrusted by the store, the last because no
	// scan had succeeded lately.
	APIKeyLookups *prometheus.CounterVec
	// APIKeyScan is when the last scan for changed API keys that succeeded
	// began, in Unix time.
	APIKeyScan prometheus.Gauge

	// StoreDuration is the time of one etcd request in seconds, by operation
	// and by outcome: ok, refused (not executed) or unknown.
	StoreDuration *prometheus.HistogramVec
	// StoreBatch is how many callers' changes or reads travel in one etcd
	// request, by kind: write or read.
	StoreBatch *prometheus.HistogramVec
	// StoreBatchesLost counts batches that went again because of one of them.
	StoreBatchesLost prometheus.Counter
	// SwapsReissued counts swaps that were sent again because the outcome of an
	// earlier attempt was in doubt.
	SwapsReissued prometheus.Counter
	// InvariantViolations counts licenses that contradict themselves, as they
	// were read or were about to be written. It stays 0.
	InvariantViolations prometheus.Counter
}

// latencyBuckets span an in-memory answer to a request's deadline, in seconds.
var latencyBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}

// New makes the instruments and registers them, along with Go's and the
// process's own. version and revision go into licet_build_info.
func New(reg prometheus.Registerer, version, revision, goVersion string) *Metrics {
	m := &Metrics{
		HTTPDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "licet_http_request_duration_seconds",
			Help:    "Time to answer an HTTP request.",
			Buckets: latencyBuckets,
		}, []string{"method", "route", "code"}),
		HTTPInFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "licet_http_requests_in_flight",
			Help: "HTTP requests being worked on.",
		}),
		RateLimited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "licet_rate_limited_total",
			Help: "Requests refused because of a rate limit, by what it counts.",
		}, []string{"limit"}),
		Mailboxes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "licet_mailboxes",
			Help: "Records with commands waiting or running on this node.",
		}),
		FoldCommands: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "licet_fold_commands",
			Help:    "Commands folded into one transaction.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
		SwapsLost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "licet_swaps_lost_total",
			Help: "Compare-and-swaps lost to another writer and tried again.",
		}),
		Hops: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "licet_hops_total",
			Help: "Batches of commands sent to the node that writes their license.",
		}, []string{"outcome"}),
		HopCommands: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "licet_hop_commands_total",
			Help: "Commands sent to the node that writes their license.",
		}),
		HopCommandsRun: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "licet_hop_commands_run_total",
			Help: "Commands run for other nodes.",
		}),
		CommandsUnderWay: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "licet_commands_under_way",
			Help: "Commands and reads waiting or running on this node.",
		}),
		CommandsLimit: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "licet_commands_limit",
			Help: "Commands and reads that may be under way at present. It follows from how many a second are served.",
		}),
		CommandsShed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "licet_commands_shed_total",
			Help: "Commands and reads refused unexecuted because of too much load.",
		}, []string{"reason"}),
		Panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "licet_panics_total",
			Help: "Panics caught. Each one is a bug; its stack is in the log.",
		}),
		RefundsDue: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "licet_refunds_due",
			Help: "Orders whose money is to go back and has not yet, as the last pass found, up to 1000. All nodes find the same.",
		}),
		Refunds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "licet_refunds_total",
			Help: "Steps of refunds: the provider was asked, the refund was made, or the provider has refused it.",
		}, []string{"outcome"}),
		EventFeedLag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "licet_event_feed_lag_seconds",
			Help: "Age of the events that were recorded and are not in the feed yet. All nodes find about the same.",
		}),
		WebhookAttempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "licet_webhook_attempts_total",
			Help: "Attempts to deliver an event to a webhook endpoint, by outcome: delivered, failed, or gone where the endpoint has answered 410.",
		}, []string{"outcome"}),
		WebhookAttemptDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "licet_webhook_attempt_duration_seconds",
			Help:    "Time of one attempt to deliver an event.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15},
		}),
		WebhookEndpoints: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "licet_webhook_endpoints",
			Help: "Webhook endpoints that this node delivers to, by state.",
		}, []string{"state"}),
		WebhookPending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "licet_webhook_pending",
			Help: "Messages to this node's webhook endpoints that have failed and are to be tried again.",
		}),
		WebhookDeadLetters: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "licet_webhook_dead_letters",
			Help: "Messages to this node's webhook endpoints that were given up, and are kept.",
		}),
		WebhookLag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "licet_webhook_lag_seconds",
			Help: "Age of the oldest event that was read for one of this node's webhook endpoints and not sent yet, without those that are failing.",
		}),
		WebhookCheckpoints: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "licet_webhook_checkpoints_total",
			Help: "Checkpoints of deliveries that were stored, by outcome. Lost are those of endpoints that another node delivers to by now.",
		}, []string{"outcome"}),
		WebhookSkips: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "licet_webhook_skips_total",
			Help: "Times that events were not kept any more which a webhook endpoint had not got.",
		}),
		APIKeyLookups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "licet_api_key_lookups_total",
			Help: "Lookups of API keys: answered from memory (hit, unknown), or by the store (miss, untrusted).",
		}, []string{"result"}),
		APIKeyScan: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "licet_api_key_last_scan_timestamp_seconds",
			Help: "When the last successful scan for changed API keys began, in Unix time. Keys are read from the store when it is 2 seconds old.",
		}),
		StoreDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "licet_store_request_duration_seconds",
			Help:    "Time of one etcd request.",
			Buckets: latencyBuckets,
		}, []string{"operation", "outcome"}),
		StoreBatch: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "licet_store_batch_parts",
			Help:    "Changes or reads of different callers in one etcd request.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 8),
		}, []string{"kind"}),
		StoreBatchesLost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "licet_store_batches_lost_total",
			Help: "Batches of changes sent again, each change for itself, because one was lost to another writer.",
		}),
		SwapsReissued: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "licet_swaps_reissued_total",
			Help: "Compare-and-swaps sent again because an earlier attempt's outcome was in doubt.",
		}),
		InvariantViolations: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "licet_invariant_violations_total",
			Help: "Licenses found that contradict themselves, read or about to be written. Always 0 unless there is a bug.",
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "licet_build_info",
		Help:        "Always 1; the labels tell what is running.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "goversion": goVersion},
	})
	build.Set(1)
	reg.MustRegister(
		m.HTTPDuration, m.HTTPInFlight, m.RateLimited, m.Mailboxes, m.FoldCommands, m.SwapsLost, m.Hops, m.HopCommands, m.HopCommandsRun,
		m.CommandsUnderWay, m.CommandsLimit, m.CommandsShed, m.Panics, m.RefundsDue, m.Refunds,
		m.EventFeedLag, m.WebhookAttempts, m.WebhookAttemptDuration, m.WebhookEndpoints, m.WebhookPending, m.WebhookDeadLetters,
		m.WebhookLag, m.WebhookCheckpoints, m.WebhookSkips,
		m.APIKeyLookups, m.APIKeyScan, m.StoreDuration, m.StoreBatch, m.StoreBatchesLost, m.SwapsReissued, m.InvariantViolations, build,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler answers scrapes of what reg gathers, in OpenMetrics where asked for.
func Handler(reg prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true})
}
