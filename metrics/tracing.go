package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Tracing are the instruments of what is sent to a collector of traces.
type Tracing struct {
	// TraceSpansDropped counts spans that the collector did not get, by reason:
	// queue_full (it takes them too slowly) or export_failed.
	TraceSpansDropped *prometheus.CounterVec
}

func newTracing(factory promauto.Factory) Tracing {
	return Tracing{
		TraceSpansDropped: vector(factory, "licet_trace_spans_dropped_total",
			"Spans that were not sent to the collector of traces, because it takes them too slowly or not at all.",
			[]string{"reason"}, each("queue_full", "export_failed")...),
	}
}
