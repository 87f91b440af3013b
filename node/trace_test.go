package node

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"licet/internal/otlptest"
	"licet/licensing"
	"licet/metrics/tracing"
)

// traceParent is that of a caller whose trace is sampled.
const traceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// TestGivingUpWhileACallGoesBack: a caller may give up as soon as its call is in a queue
// again, and tells how long it has waited there. The race detector looks on.
func TestGivingUpWhileACallGoesBack(t *testing.T) {
	tracer, collector := otlptest.Tracer(t, 0)
	n := stateNode(&sends{})
	n.cfg.Tracer = tracer
	c := stateCall(time.Minute, callTaken, false)
	span := tracer.Begin(tracing.Parent{Traceparent: traceParent}, tracing.Start{Kind: tracing.Server, Name: "request"})
	c.traced = &traced{span: span, since: time.Now()}
	shard := n.shardOf(contestedRef)
	shard.mu.Lock() // so that nothing takes the call from the queue
	var moving sync.WaitGroup
	moving.Go(func() { n.bringBack(contestedRef, []*call{c}) })
	for c.state.Load() != callWaiting {
		time.Sleep(time.Microsecond)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if _, err := n.await(over, c); !errors.Is(err, licensing.ErrUnavailable) {
		t.Errorf("a call that was not begun: %v", err)
	}
	shard.mu.Unlock()
	moving.Wait()
	n.work.Wait()
	span.End()
	tracer.Close(t.Context())
	waits := otlptest.Named(collector.Spans(), "mailbox wait")
	if len(waits) != 1 || waits[0].Attrs["licet.outcome"] != waitAbandoned {
		t.Errorf("the trace has %+v", collector.Spans())
	}
}

// TestTraceOfWhatIsDue: what nobody asks for is a trace for each record, if it is sampled,
// and says what kind of record it is, and how it ended.
func TestTraceOfWhatIsDue(t *testing.T) {
	for ratio, want := range map[float64]int{0: 0, 1: 2} {
		tracer, collector := otlptest.Tracer(t, ratio)
		n := stateNode(&sends{})
		n.cfg.Tracer = tracer
		under := 0
		do := n.traceDue(func(ctx context.Context, ref licensing.Ref) error {
			if tracer.Of(ctx) != nil {
				under++
			}
			if ref.Kind == licensing.KindOrder {
				return licensing.ErrUnavailable
			}
			return nil
		})
		for _, ref := range []licensing.Ref{contestedRef, licensing.OrderRef(licensing.Owner{}, "ord_1")} {
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
			if s.Failed != failed || failed && s.Attrs["error.type"] != string(licensing.ReasonUnavailable) || record != "order" && record != "license" {
				t.Errorf("%+v", s)
			}
		}
	}
}
