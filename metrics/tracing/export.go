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
	// maxHeld bounds the spans that have ended and were not sent yet. Beyond that they
	// are dropped: nobody ever waits for the collector.
	maxHeld = 2048
	// complainEvery is how often the log is told that spans are lost.
	complainEvery = time.Minute
	// maxComplaint bounds what is logged of an error, which may quote the collector.
	maxComplaint = 300
)

// exporter sends batches of spans, and counts those that are lost. OpenTelemetry's
// queue drops what it has no room for without a word, so that room is counted here,
// before the queue; and its errors would go to a logger of its own.
type exporter struct {
	inner             sdktrace.SpanExporter
	held              atomic.Int64
	full, undelivered prometheus.Counter
	log               zerolog.Logger

	mu sync.Mutex
	// Guarded by mu:
	lost       int // since the log was told last
	cause      string
	complained time.Time
}

func newExporter(inner sdktrace.SpanExporter, m *metrics.Metrics, log zerolog.Logger) *exporter {
	return &exporter{
		inner:       inner,
		full:        m.TraceSpansDropped.WithLabelValues("queue_full"),
		undelivered: m.TraceSpansDropped.WithLabelValues("export_failed"),
		log:         log,
	}
}

// queue is where spans wait to be sent, some at a time.
func (e *exporter) queue() sdktrace.SpanProcessor {
	return &bounded{SpanProcessor: sdktrace.NewBatchSpanProcessor(e, sdktrace.WithMaxQueueSize(maxHeld)), exporter: e}
}

// bounded is a queue that takes no more than there is room for.
type bounded struct {
	sdktrace.SpanProcessor
	exporter *exporter
}

// OnEnd takes a span that has ended, or drops it. It never waits.
func (b *bounded) OnEnd(span sdktrace.ReadOnlySpan) {
	if b.exporter.held.Add(1) > maxHeld {
		b.exporter.held.Add(-1)
		b.exporter.full.Inc()
		b.exporter.lose(1, "they come faster than the collector takes them")
		return
	}
	b.SpanProcessor.OnEnd(span)
}

// ExportSpans sends a batch. It never fails: what has become of it is counted.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.inner.ExportSpans(ctx, spans)
	e.held.Add(int64(-len(spans)))
	if err != nil {
		e.undelivered.Add(float64(len(spans)))
		text := err.Error()
		e.lose(len(spans), text[:min(len(text), maxComplaint)])
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (e *exporter) Shutdown(ctx context.Context) error { return e.inner.Shutdown(ctx) }

// abort gives up what is being sent, and counts what was still to be as lost.
func (e *exporter) abort() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = e.inner.Shutdown(ctx) // it interrupts a request that is under way
}

// lose notes that spans are lost, and tells the log once in a while.
func (e *exporter) lose(count int, cause string) {
	e.mu.Lock()
	e.lost += count
	e.cause = cause
	e.mu.Unlock()
	e.report(false)
}

// report tells the log of spans that are lost, unless it was told a moment ago.
func (e *exporter) report(now bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lost == 0 || !now && time.Since(e.complained) < complainEvery {
		return
	}
	e.log.Warn().Int("spans", e.lost).Str("cause", e.cause).Msg("traces are lost; the service goes on as always")
	e.lost, e.complained = 0, time.Now()
}
