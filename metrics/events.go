package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Events contains the instruments of events and of their delivery to webhook endpoints.
type Events struct {
	// EventsRecorded counts the events recorded by this node, by type.
	EventsRecorded *prometheus.CounterVec
	// EventFeedLag is the age of the open epoch of events, which the feed does not show yet, in seconds;
	// 0 if the epoch has no events.
	EventFeedLag prometheus.Gauge
	// EventValuesUnreadable counts the stored values that this node could not read: events and other values whose
	// readers continue without them. Each value counts once.
	EventValuesUnreadable *DistinctCounter
	// WebhookAttempts counts attempts to deliver an event, by outcome: delivered, failed or gone (the
	// endpoint has responded with 410).
	WebhookAttempts *prometheus.CounterVec
	// WebhookAttemptDuration is the duration of an attempt, in seconds.
	WebhookAttemptDuration prometheus.Histogram
	// WebhookEndpoints is the number of endpoints that this node delivers to, by state: delivering,
	// failing or idle.
	WebhookEndpoints *prometheus.GaugeVec
	// WebhookPending is the number of failed messages that the node will send again,
	// WebhookDeadLetters the number of messages that the node has given up.
	WebhookPending, WebhookDeadLetters prometheus.Gauge
	// WebhookLag is the age of the oldest unsent event of an endpoint that is not failing, in seconds.
	WebhookLag prometheus.Gauge
	// WebhookCheckpoints counts writes of delivery checkpoints, by outcome: ok, lost (another node has
	// taken over the endpoint) or unknown.
	WebhookCheckpoints *prometheus.CounterVec
	// WebhookSkips counts the times that retention removed events before an endpoint received them.
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
			Help: "Events that this node has recorded, by type. Events of activations are recorded only while " +
				"their owner listens.",
		}, []string{"type"}),
		EventFeedLag: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_event_feed_lag_seconds",
			Help: "Age of the events that were recorded and are not in the feed yet. All nodes report about " +
				"the same age.",
		}),
		EventValuesUnreadable: newDistinctCounter(factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_event_values_unreadable_total",
			Help: "Stored values that this node could not read, each value once. Readers of events get placeholders; " +
				"lists leave the record out; other values are skipped or made anew.",
		})),
		WebhookAttempts: vector(factory,
			"licet_webhook_attempts_total",
			"Attempts to deliver an event to a webhook endpoint, by outcome: delivered, failed, or gone where the "+
				"endpoint has answered 410.",
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
			Help: "Age of the oldest event that was read for one of this node's webhook endpoints and not sent yet, " +
				"without failing endpoints.",
		}),
		WebhookCheckpoints: vector(factory,
			"licet_webhook_checkpoints_total",
			"Checkpoints of deliveries that were stored, by outcome. lost: another node delivers to the "+
				"endpoint by now.",
			[]string{"outcome"}, each("ok", "lost", "unknown")...),
		WebhookSkips: factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_webhook_skips_total",
			Help: "Times that retention removed events before a webhook endpoint had received them.",
		}),
	}
}
