package service

import (
	"context"
	"testing"

	"licet/internal/otlptest"
	"licet/licensing"
	"licet/node"
)

// TestTraceOfDueWork: the background work on each due record is a trace of its own, if sampled. Its span names the kind
// of the record and the outcome.
func TestTraceOfDueWork(t *testing.T) {
	for ratio, want := range map[float64]int{0: 0, 1: 2} {
		tracer, collector := otlptest.Tracer(t, ratio)
		n := stateService(Config{Config: node.Config{Tracer: tracer}})
		under := 0
		do := n.traceDue(func(ctx context.Context, ref licensing.Ref) error {
			if tracer.SpanFrom(ctx) != nil {
				under++
			}
			if ref.Kind == licensing.KindOrder {
				return licensing.ErrUnavailable
			}
			return nil
		})
		for _, ref := range []licensing.Ref{licensing.LicenseID{1}.Ref(),
			licensing.OrderRef(licensing.Owner{}, "ord_1")} {
			if err := do(t.Context(), ref); (err != nil) != (ref.Kind == licensing.KindOrder) {
				t.Errorf("%v: %v", ref, err)
			}
		}
		tracer.Close(t.Context())
		spans := otlptest.Named(collector.Spans(), "due")
		if len(spans) != want || under != want {
			t.Fatalf("ratio %v: %d spans, %d above what was done, want %d", ratio, len(spans), under, want)
		}
		for _, s := range spans {
			failed, record := s.Attrs["licet.record"] == "order", s.Attrs["licet.record"]
			if s.Failed != failed || failed && s.Attrs["error.type"] != string(licensing.ReasonUnavailable) ||
				record != "order" && record != "license" {
				t.Errorf("%+v", s)
			}
		}
	}
}
