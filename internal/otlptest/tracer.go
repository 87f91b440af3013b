package otlptest

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/metrics"
	"licet/metrics/tracing"
)

// Tracer makes a tracer that samples that share of the traces that begin with it, and
// the collector that it sends to. Both end with the test; a test that reads the spans
// closes the tracer first, which sends what it still has.
func Tracer(t testing.TB, ratio float64) (*tracing.Tracer, *Collector) {
	t.Helper()
	c := Start(t)
	tracer, err := tracing.New(t.Context(), tracing.Config{
		Endpoint: c.URL + "/v1/traces", Ratio: ratio,
		Metrics: metrics.New(prometheus.NewRegistry(), "", "", ""), Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tracer.Close(context.Background()) })
	return tracer, c
}
