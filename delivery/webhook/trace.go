package webhook

import (
	"context"

	"licet/metrics/tracing"
)

// beginTrace starts the span of an attempt if ctx has a span. The span does not have the URL, which may contain a
// secret of the receiver. The request has no trace header, since receivers belong to others.
func beginTrace(ctx context.Context) *tracing.Span {
	span := tracing.FromContext(ctx)
	if span == nil {
		return nil
	}
	return span.Child(tracing.Start{Kind: tracing.Client, Name: "webhook attempt", Attrs: []tracing.Attr{
		tracing.String("http.request.method", "POST"),
	}})
}

// endTrace ends the span of an attempt. An attempt without an outcome was not made, or its context ended.
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
