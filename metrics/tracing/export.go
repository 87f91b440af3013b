package tracing

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"licet/metrics"
)

const (
	// maxQueued bounds the spans that have ended and are not sent yet. Further spans are dropped, so that
	// no request waits for the collector.
	maxQueued = 2048
	// logInterval is the shortest time between two log lines about lost spans.
	logInterval = time.Minute
	// maxLoggedError bounds the logged text of an error in bytes: the error may quote the collector.
	maxLoggedError = 300
)

// exporter sends batches of spans, and counts the lost spans. OpenTelemetry's queue drops spans silently when it
// is full, so exporter counts the spans in the queue itself. It also handles the errors of an export:
// OpenTelemetry would write them to a logger of its own.
type exporter struct {
	inner                   sdktrace.SpanExporter
	queued                  atomic.Int64
	queueFull, exportFailed prometheus.Counter
	log                     zerolog.Logger

	mu sync.Mutex
	// Guarded by mu:
	lost   int // since the last log line
	cause  string
	logged time.Time
}

func newExporter(inner sdktrace.SpanExporter, m *metrics.Metrics, log zerolog.Logger) *exporter {
	return &exporter{
		inner:        inner,
		queueFull:    m.TraceSpansDropped.WithLabelValues("queue_full"),
		exportFailed: m.TraceSpansDropped.WithLabelValues("export_failed"),
		log:          log,
	}
}

// queue returns the queue of spans that wait for the next batch.
func (e *exporter) queue() sdktrace.SpanProcessor {
	batches := sdktrace.NewBatchSpanProcessor(e, sdktrace.WithMaxQueueSize(maxQueued))
	return &boundedQueue{SpanProcessor: batches, exporter: e}
}

// boundedQueue is a queue that drops spans beyond maxQueued, and counts them.
type boundedQueue struct {
	sdktrace.SpanProcessor
	exporter *exporter
}

// OnEnd implements sdktrace.SpanProcessor. It queues or drops a span, and never waits.
func (q *boundedQueue) OnEnd(span sdktrace.ReadOnlySpan) {
	if q.exporter.queued.Add(1) > maxQueued {
		q.exporter.queued.Add(-1)
		q.exporter.queueFull.Inc()
		q.exporter.recordLoss(1, "they come faster than the collector takes them")
		return
	}
	q.SpanProcessor.OnEnd(span)
}

// ExportSpans implements sdktrace.SpanExporter. It returns no error: it counts the spans of a failed batch.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.inner.ExportSpans(ctx, spans)
	e.queued.Add(int64(-len(spans)))
	if err != nil {
		e.exportFailed.Add(float64(len(spans)))
		text := err.Error()
		e.recordLoss(len(spans), text[:min(len(text), maxLoggedError)])
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (e *exporter) Shutdown(ctx context.Context) error { return e.inner.Shutdown(ctx) }

// abort interrupts the current export. The spans that are not sent count as lost.
func (e *exporter) abort() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = e.inner.Shutdown(ctx) // interrupts a request in flight
}

// recordLoss adds to the lost spans, and logs them if a log line is due.
func (e *exporter) recordLoss(count int, cause string) {
	e.mu.Lock()
	e.lost += count
	e.cause = cause
	e.mu.Unlock()
	e.report(false)
}

// report logs the lost spans, if there are any. Unless now is set, it waits for logInterval.
func (e *exporter) report(now bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lost == 0 || !now && time.Since(e.logged) < logInterval {
		return
	}
	e.log.Warn().Int("spans", e.lost).Str("cause", e.cause).Msg("traces are lost; requests are not affected")
	e.lost, e.logged = 0, time.Now()
}
