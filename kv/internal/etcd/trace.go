package etcd

import (
	"context"
	"time"

	"licet/metrics/tracing"
)

// StartSpan begins the span of a share of a request; nil where ctx is not traced.
func (c *Client) StartSpan(ctx context.Context, operation string) *tracing.Span {
	span := c.tracer.SpanFrom(ctx)
	if span == nil {
		return nil
	}
	return span.Child(etcdCall(operation, time.Time{}))
}

func etcdCall(operation string, at time.Time) tracing.Start {
	return tracing.Start{Kind: tracing.Client, Name: "etcd " + operation, At: at, Attrs: []tracing.Attr{
		tracing.String("db.system.name", "etcd"), tracing.String("db.operation.name", operation),
	}}
}

// EndSpan ends the span of a request, or of a share of one.
func EndSpan(span *tracing.Span, err error) {
	if span == nil {
		return
	}
	outcome := Classify(err).String()
	span.Set(tracing.String("licet.outcome", outcome))
	if err != nil {
		span.Fail(outcome)
	}
	span.End()
}
