package payment

import (
	"context"
	"errors"

	"licet/metrics/tracing"
)

// beginTrace begins the span of a question to the provider, if whoever asks is traced.
func beginTrace(ctx context.Context, operation string) *tracing.Span {
	span := tracing.FromContext(ctx)
	if span == nil {
		return nil
	}
	return span.Child(tracing.Start{Kind: tracing.Client, Name: "payment " + operation})
}

// endTrace ends it.
func endTrace(span *tracing.Span, err error) {
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
