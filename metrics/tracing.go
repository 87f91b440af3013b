package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Tracing contains the instruments of the export of traces.
type Tracing struct {
	// TraceSpansDropped counts spans that the collector did not receive, by reason: queue_full (the
	// collector is too slow) or export_failed.
	TraceSpansDropped *prometheus.CounterVec
}

func newTracing(factory promauto.Factory) Tracing {
	return Tracing{
		TraceSpansDropped: vector(factory, "licet_trace_spans_dropped_total",
			"Spans that were not sent to the collector of traces, because it takes them too slowly or not at all.",
			[]string{"reason"}, each("queue_full", "export_failed")...),
	}
}
