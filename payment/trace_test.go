package payment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"licet/internal/otlptest"
	"licet/licensing"
	"licet/metrics/tracing"
	"licet/payment"
)

// TestTraceOfTheProvider: a request to the provider within a sampled trace has a span with its outcome. The span
// shows neither the order nor the text of the error.
func TestTraceOfTheProvider(t *testing.T) {
	collector := otlptest.Start(t)
	tracer, err := tracing.New(t.Context(), tracing.Config{
		Endpoint: collector.URL + "/v1/traces", Metrics: instruments(), Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer tracer.Close(context.Background())
	w := newFixture(t)
	unpaid, refused, back := w.create(), w.paid(), w.paid()
	request := tracer.Begin(tracing.Parent{Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		tracing.Start{Kind: tracing.Server, Name: "request"})
	traced := tracing.NewContext(w.ctx, request)

	if _, _, err := w.desk.Pay(traced, unpaid); err != nil {
		t.Fatal(err)
	}
	w.bank.next = []answer{{says: fmt.Errorf("canary: %w", payment.ErrRefused)}, {says: errDown}}
	for _, c := range []struct {
		order licensing.Order
		want  error
	}{{refused, payment.ErrRefused}, {back, errDown}, {back, nil}} {
		if _, _, err := w.desk.Refund(traced, owner, c.order.OrderNo, licensing.RequestRefund{Reason: "canary"},
			nil); !errors.Is(err, c.want) {
			t.Fatalf("%v, want %v", err, c.want)
		}
	}
	if _, _, err := w.desk.Pay(w.ctx, w.create()); err != nil { // which is not traced
		t.Fatal(err)
	}
	request.End()
	tracer.Close(t.Context())

	var spans []string
	for _, s := range collector.Spans() {
		if !strings.HasPrefix(s.Name, "payment ") {
			continue
		}
		spans = append(spans, strings.TrimSpace(s.Name+" "+s.Attrs["error.type"]))
		if s.Kind != "SPAN_KIND_CLIENT" || s.Failed != (s.Attrs["error.type"] != "") ||
			!otlptest.Below(collector.Spans(), s, otlptest.Named(collector.Spans(), "request")[0]) {
			t.Errorf("%+v", s)
		}
	}
	if want := []string{"payment begin", "payment refund refused", "payment refund failed",
		"payment refund"}; !slices.Equal(spans, want) {
		t.Errorf("the trace has the spans %q, want %q", spans, want)
	}
	for _, hidden := range []string{"canary", back.OrderNo, back.LicenseKey.String(), owner.AccountID} {
		if strings.Contains(collector.Text(), hidden) {
			t.Errorf("%q is in the traces", hidden)
		}
	}
}
