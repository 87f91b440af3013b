package node

import (
	"context"
	"time"

	"licet/licensing"
	"licet/metrics/tracing"
)

// What becomes of a request between its handler and the store is shared: a turn of
// a mailbox runs the calls of many. So of those that are traced, the first one has
// the turn's own span in its trace, with the requests to the store below it, and each
// other has a span of the same time that links to that one. A trace so says how long
// its request waited and was run, and one step away what that was made of, and the
// number of spans does not grow with the product of the two. See
// docs/decisions/0024-traces.md.

// traced is what a call has that is traced. It is used by whoever has the call in
// hand.
type traced struct {
	span  *tracing.Span // of whoever asks
	since time.Time     // when it began to wait
}

// What a call's waiting ended with.
const (
	waitTaken     = "taken"
	waitAbandoned = "abandoned" // its time was over before its turn came
)

// traceWait tells how long calls have waited for their turn.
func (n *Node) traceWait(outcome string, calls ...*call) {
	if n.cfg.Tracer == nil {
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

// waitsAgain tells that a call goes back to a queue. It comes before the call is
// waiting: from then on its caller may give up, and tell how long it has waited.
func (c *call) waitsAgain() {
	if c.traced != nil {
		c.traced.since = time.Now()
	}
}

// eachTraced calls do for each call that is traced, and once for those that came by
// one hop and share a span.
func eachTraced(calls []*call, do func(*call)) {
	var last *tracing.Span
	for _, c := range calls {
		if c.traced != nil && c.traced.span != last {
			do(c)
			last = c.traced.span
		}
	}
}

// traceTurn tells of a turn of a mailbox, until ended is called. What is done with the
// context belongs to it.
func (n *Node) traceTurn(ctx context.Context, ref licensing.Ref, calls []*call) (of context.Context, ended func()) {
	name := "fold"
	if calls[0].kind == kindTask {
		name = "hold"
	}
	spans := traceShared(calls, tracing.Internal, name, func() []tracing.Attr {
		return []tracing.Attr{tracing.Int("licet.fold.commands", len(calls)), tracing.String("licet.record", ref.Kind.String())}
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

// traceShared begins a span of what is done for calls together in the trace of each
// that is traced. All but the first link to the first.
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

// hopSpans are those of a hop: the first one goes along.
type hopSpans []*tracing.Span

// traceHop tells of commands on their way to another node.
func (n *Node) traceHop(calls []*call) hopSpans {
	if n.cfg.Tracer == nil {
		return nil
	}
	return traceShared(calls, tracing.Client, "hop", func() []tracing.Attr {
		return []tracing.Attr{tracing.Int("licet.hop.commands", len(calls))}
	})
}

// parent is what the other node is told.
func (s hopSpans) parent() tracing.Parent {
	if len(s) == 0 {
		return tracing.Parent{}
	}
	return s[0].Parent()
}

// end tells what became of a hop.
func (s hopSpans) end(outcome string) {
	for _, span := range s {
		span.Set(tracing.String("licet.outcome", outcome))
		if outcome != hopAnswered {
			span.Fail(outcome)
		}
		span.End()
	}
}
