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

// traceParent is the traceparent of a caller whose trace is sampled.
const traceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// TestGivingUpWhileACallGoesBack: a caller may give up as soon as its call is in a queue again, and traces how long the
// call waited there. The race detector checks the accesses.
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
