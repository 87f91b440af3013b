package node

import (
	"context"
	"time"

	"licet/licensing"
	"licet/metrics/tracing"
)

// One turn of a mailbox runs the calls of many requests. So the first traced call of a turn has the turn's span in
// its trace, with the requests to the store below that span, and each other traced call has a span of the same time
// that links to that span. So a trace says how long its request waited and ran, and the link leads to the parts of
// that time. The number of spans does not grow with calls times store requests. See docs/decisions/0024-traces.md.

// traced is the trace of a call. Only the goroutine that has the call at the time uses it.
type traced struct {
	span  *tracing.Span // of the caller
	since time.Time     // when the call began to wait
}

// How a call's waiting ended.
const (
	waitTaken     = "taken"
	waitAbandoned = "abandoned" // the call's time was over before its turn came
)

// traceWait records how long calls have waited for their turn.
func (s *runner) traceWait(outcome string, calls ...*call) {
	if s.cfg.Tracer == nil {
		return
	}
	eachTraced(calls, func(c *call) {
		if !c.waited {
			return
		}
		c.traced.span.Child(tracing.Start{
			Name: "mailbox wait", At: c.traced.since, Attrs: []tracing.Attr{tracing.String("licet.outcome", outcome)},
		}).End()
	})
}

// waitsAgain notes that a call goes back to a queue. The caller must call waitsAgain before the call waits: from
// then on the call may be abandoned, and its wait recorded.
func (c *call) waitsAgain() {
	if c.traced != nil {
		c.traced.since = time.Now()
	}
}

// eachTraced calls do for each call that is traced, and once for calls that came by one hop and share a span.
func eachTraced(calls []*call, do func(*call)) {
	var last *tracing.Span
	for _, c := range calls {
		if c.traced != nil && c.traced.span != last {
			do(c)
			last = c.traced.span
		}
	}
}

// traceTurn begins the spans of a turn; ended ends them. Requests with the returned context belong to the turn.
func (s *runner) traceTurn(ctx context.Context, ref licensing.Ref, t turn) (of context.Context, ended func()) {
	name := "fold"
	if t.kind == kindTask {
		name = "record lock"
	}
	spans := traceShared(t.calls, tracing.Internal, name, func() []tracing.Attr {
		return []tracing.Attr{tracing.Int("licet.fold.commands", len(t.calls)),
			tracing.String("licet.record", ref.Kind.String())}
	})
	if len(spans) == 0 {
		return ctx, func() {}
	}
	return tracing.NewContext(ctx, spans[0]), func() {
		for _, span := range spans {
			span.End()
		}
	}
}

// traceShared begins a span of the work for several calls in the trace of each traced call. All spans but the first
// link to the first.
func traceShared(calls []*call, kind tracing.Kind, name string, attrs func() []tracing.Attr) (spans []*tracing.Span) {
	eachTraced(calls, func(c *call) {
		start := tracing.Start{Kind: kind, Name: name, Attrs: attrs()}
		if len(spans) > 0 {
			start.Link = spans[0]
		}
		spans = append(spans, c.traced.span.Child(start))
	})
	return spans
}

// hopSpans are the spans of a hop: the other node continues the first.
type hopSpans []*tracing.Span

// traceHop begins the spans of commands on their way to another node.
func (s *runner) traceHop(calls []*call) hopSpans {
	if s.cfg.Tracer == nil {
		return nil
	}
	return traceShared(calls, tracing.Client, "hop", func() []tracing.Attr {
		return []tracing.Attr{tracing.Int("licet.hop.commands", len(calls))}
	})
}

// parent returns what the other node continues.
func (s hopSpans) parent() tracing.Parent {
	if len(s) == 0 {
		return tracing.Parent{}
	}
	return s[0].Parent()
}

// end ends the spans with the outcome of the hop.
func (s hopSpans) end(outcome string) {
	for _, span := range s {
		span.Set(tracing.String("licet.outcome", outcome))
		if outcome != hopAnswered {
			span.Fail(outcome)
		}
		span.End()
	}
}
