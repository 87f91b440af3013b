package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Events are the instruments of events and their delivery to webhook endpoints.
type Events struct {
	// EventsRecorded counts the events that this node has recorded, by type.
	EventsRecorded *prometheus.CounterVec
	// EventFeedLag is how old the epoch of events is that is not in the feed yet, if
	// anything was written into it, in seconds.
	EventFeedLag prometheus.Gauge
	// EventValuesUnreadable counts the stored values of events, and of what events tell of, that this node could not
	// read, each value once.
	EventValuesUnreadable *Distinct
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
}

func newEvents(factory promauto.Factory) Events {
	endpoints := factory.NewGaugeVec(prometheus.GaugeOpts{
		Name: "licet_webhook_endpoints",
		Help: "Webhook endpoints that this node delivers to, by state.",
	}, []string{"state"})
	for _, state := range []string{"delivering", "failing", "idle"} {
		endpoints.WithLabelValues(state)
	}
	return Events{
		EventsRecorded: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "licet_events_recorded_total",
			Help: "Events that this node has recorded, by type. Those of activations are recorded only while somebody listens.",
		}, []string{"type"}),
		EventFeedLag: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_event_feed_lag_seconds",
			Help: "Age of the events that were recorded and are not in the feed yet. All nodes find about the same.",
		}),
		EventValuesUnreadable: newDistinct(factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_event_values_unreadable_total",
			Help: "Stored values of events, and of what events tell of, that this node could not read, each value once. Readers of events get placeholders instead.",
		})),
		WebhookAttempts: vector(factory,
			"licet_webhook_attempts_total",
			"Attempts to deliver an event to a webhook endpoint, by outcome: delivered, failed, or gone where the endpoint has answered 410.",
			[]string{"outcome"}, each("delivered", "failed", "gone")...),
		WebhookAttemptDuration: factory.NewHistogram(histogram(
			"licet_webhook_attempt_duration_seconds",
			"Time of one attempt to deliver an event.",
			providerBuckets,
		)),
		WebhookEndpoints: endpoints,
		WebhookPending: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_webhook_pending",
			Help: "Messages to this node's webhook endpoints that have failed and are to be tried again.",
		}),
		WebhookDeadLetters: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_webhook_dead_letters",
			Help: "Messages to this node's webhook endpoints that were given up, and are kept.",
		}),
		WebhookLag: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_webhook_lag_seconds",
			Help: "Age of the oldest event that was read for one of this node's webhook endpoints and not sent yet, without those that are failing.",
		}),
		WebhookCheckpoints: vector(factory,
			"licet_webhook_checkpoints_total",
			"Checkpoints of deliveries that were stored, by outcome. Lost are those of endpoints that another node delivers to by now.",
			[]string{"outcome"}, each("ok", "lost", "unknown")...),
		WebhookSkips: factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_webhook_skips_total",
			Help: "Times that events were not kept any more which a webhook endpoint had not got.",
		}),
	}
}
