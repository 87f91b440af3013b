package otlptest

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/metrics"
	"licet/metrics/tracing"
)

// Tracer returns a tracer that samples a ratio of the traces that it begins, and the collector that it
// sends them to. Both end with the test. A test that reads spans must close the tracer first, which
// sends the remaining spans.
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
