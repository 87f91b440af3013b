package payment

import (
	"context"
	"errors"

	"licet/metrics/tracing"
)

// startSpan begins the span of a request to the provider, or returns nil if ctx has no span.
func startSpan(ctx context.Context, operation string) *tracing.Span {
	span := tracing.FromContext(ctx)
	if span == nil {
		return nil
	}
	return span.Child(tracing.Start{Kind: tracing.Client, Name: "payment " + operation})
}

// endSpan ends a span with the result of the request. span may be nil.
func endSpan(span *tracing.Span, err error) {
	if span == nil {
		return
	}
	switch {
	case errors.Is(err, ErrRefused):
		span.Fail("refused")
	case err != nil:
		span.Fail("failed")
	}
	span.End()
}
