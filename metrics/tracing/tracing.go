package tracing

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"licet/metrics"
)

// Config configures a [Tracer].
type Config struct {
	// Endpoint is the complete URL for OTLP over HTTP in protobuf. The exporter reads further settings,
	// such as headers with credentials, from OpenTelemetry's environment variables.
	Endpoint string
	// Ratio is the share of sampled requests among those without a traceparent, from 0 to 1.
	Ratio float64

	Version  string // of the service
	Instance string // identifies this process
	Metrics  *metrics.Metrics
	Log      zerolog.Logger
}

// Tracer makes spans and sends them to the collector. Make it with [New], and close it. A nil Tracer means
// that tracing is off. A Tracer is safe for concurrent use.
type Tracer struct {
	tracer   trace.Tracer
	sampler  sdktrace.Sampler
	provider *sdktrace.TracerProvider
	outgoing *exporter
	log      zerolog.Logger
}

// New returns a tracer. It does not wait for the collector.
func New(ctx context.Context, cfg Config) (*Tracer, error) {
	otlp, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(cfg.Endpoint))
	if err != nil {
		return nil, fmt.Errorf("set up the exporter of traces: %w", err)
	}
	// The environment comes last, so OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override the rest.
	described, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "licet"),
		attribute.String("service.version", cfg.Version),
		attribute.String("service.instance.id", cfg.Instance),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	outgoing := newExporter(otlp, cfg.Metrics, cfg.Log)
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(described),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // the tracer has already dropped what is not sampled
		sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithSpanProcessor(outgoing.queue()),
	)
	return &Tracer{
		tracer:   provider.Tracer("licet", trace.WithInstrumentationVersion(cfg.Version)),
		sampler:  sdktrace.TraceIDRatioBased(cfg.Ratio),
		provider: provider,
		outgoing: outgoing,
		log:      cfg.Log,
	}, nil
}

// flushTime bounds how long Close waits for the collector.
const flushTime = 3 * time.Second

// Close sends the ended spans, within three seconds. Close logs the spans that it could not send, and reports
// no error: the service does not depend on traces.
func (t *Tracer) Close(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	if t.provider.Shutdown(ctx) != nil {
		t.outgoing.abort()
	}
	t.outgoing.report(true)
}

// Root begins a trace of work that no request has caused, if the trace is sampled. Otherwise the span is nil.
func (t *Tracer) Root(ctx context.Context, start Start) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	span := t.root(start)
	return NewContext(ctx, span), span
}

// root begins a trace if the trace is sampled, and else returns nil.
func (t *Tracer) root(start Start) *Span {
	id := newTraceID()
	decision := t.sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: id})
	if decision.Decision != sdktrace.RecordAndSample {
		return nil
	}
	return t.start(context.WithValue(context.Background(), idKey{}, id), start)
}

// SpanFrom returns the span of a context, or nil. A nil Tracer does not search the context.
func (t *Tracer) SpanFrom(ctx context.Context) *Span {
	if t == nil {
		return nil
	}
	return FromContext(ctx)
}

// ids makes the ids of spans and traces. The sampling decision depends on the trace id, so root makes that id
// and passes it in the context. Ids are no secrets, so they need not come from crypto/rand, which takes longer.
type ids struct{}

type idKey struct{}

// NewIDs implements sdktrace.IDGenerator.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, made := ctx.Value(idKey{}).(trace.TraceID)
	if !made {
		id = newTraceID()
	}
	return id, newSpanID()
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return newSpanID() }

func newTraceID() (id trace.TraceID) {
	for !id.IsValid() {
		binary.BigEndian.PutUint64(id[:8], rand.Uint64())
		binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.BigEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}
