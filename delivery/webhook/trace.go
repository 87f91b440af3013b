package webhook

import (
	"context"

	"licet/metrics/tracing"
)

// beginTrace begins the span of an attempt, if whoever makes it is traced. It does not
// tell where it goes: a URL may hold a secret of the receiver's. Nor is the receiver
// told of the trace: it is somebody else's, and our traces are none of theirs.
func beginTrace(ctx context.Context) *tracing.Span {
	span := tracing.FromContext(ctx)
	if span == nil {
		return nil
	}
	return span.Child(tracing.Start{Kind: tracing.Client, Name: "webhook attempt", Attrs: []tracing.Attr{
		tracing.String("http.request.method", "POST"),
	}})
}

// endTrace ends it with what came of the attempt; an attempt without an outcome was
// not made, or was given up.
func endTrace(span *tracing.Span, attempt *Attempt) {
	if span == nil {
		return
	}
	if attempt.Status != 0 {
		span.Set(tracing.Int("http.response.status_code", attempt.Status))
	}
	if attempt.Outcome != "" {
		span.Set(tracing.String("licet.outcome", string(attempt.Outcome)))
	}
	if attempt.Failure != "" {
		span.Fail(string(attempt.Failure))
	}
	span.End()
}
