// Package tracing tells an OpenTelemetry collector where the time of a request
// has gone. It is the only package that knows OpenTelemetry; the others take a
// [Tracer] and make spans of it:
//
//	POST /v1/licenses/activate      the request, made by package handlers
//	├ mailbox wait                  it waited for its license's mailbox
//	└ fold                          it was run, with others that waited
//	  ├ etcd swap                   what came of it was stored
//	  └ hop                         or it went to another node, which
//	    └ hop run                   has its own waiting, fold and swap below this
//
// Tracing is off as a rule, and then there is no Tracer: all methods of a nil
// Tracer and of a nil [Span] do nothing. With it, few requests are sampled: those
// whose caller says so by W3C traceparent, and of those without one a share. Of
// all others there is no Span, so what is not sampled costs as much as what is
// off, but for that decision.
//
// Spans never hold what a caller sent, but for the id of its request and its tracestate:
// no license key, no device, no e-mail address, no path. Whoever adds an attribute sees to that.
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

// Config is what a tracer is made of.
type Config struct {
	// Endpoint is the whole URL that spans are posted to, as OTLP over HTTP in
	// protobuf. What else there is to say of the way to it, such as headers with
	// credentials, the exporter reads from OpenTelemetry's own environment variables.
	Endpoint string
	// Ratio is the share of requests that are sampled if their caller does not say.
	Ratio float64

	Version  string // of the service
	Instance string // tells this process from others
	Metrics  *metrics.Metrics
	Log      zerolog.Logger
}

// Tracer makes spans and sends them. Make it with [New], and close it; nil stands
// for tracing that is off. It is safe for concurrent use.
type Tracer struct {
	tracer   trace.Tracer
	sampler  sdktrace.Sampler
	provider *sdktrace.TracerProvider
	outgoing *exporter
	log      zerolog.Logger
}

// New makes a tracer. It does not wait for the collector.
func New(ctx context.Context, cfg Config) (*Tracer, error) {
	otlp, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(cfg.Endpoint))
	if err != nil {
		return nil, fmt.Errorf("set up the exporter of traces: %w", err)
	}
	// The environment comes last: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are the
	// operator's word.
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
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // what is not sampled does not come so far
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

// flushTime bounds how long a stop waits for the collector.
const flushTime = 3 * time.Second

// Close sends the spans that have ended, as far as that can be done soon. That it
// could not be is logged, and no failure of the service.
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

// Root begins what nobody has asked for from outside, if it is sampled.
func (t *Tracer) Root(ctx context.Context, start Start) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	span := t.root(start)
	return NewContext(ctx, span), span
}

// root begins a trace, if it is sampled.
func (t *Tracer) root(start Start) *Span {
	id := newTraceID()
	decision := t.sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: id})
	if decision.Decision != sdktrace.RecordAndSample {
		return nil
	}
	return t.start(context.WithValue(context.Background(), idKey{}, id), start)
}

// Of gives the span that a context carries, or nil. With a nil Tracer it does not
// even look.
func (t *Tracer) Of(ctx context.Context) *Span {
	if t == nil {
		return nil
	}
	return FromContext(ctx)
}

// ids makes the ids of spans, and of traces if they were not made when it was
// decided whether to sample them: the decision depends on them. They are names and
// no secrets, so they do not come from crypto/rand, which takes longer.
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
