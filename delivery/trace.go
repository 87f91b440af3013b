package delivery

import "licet/metrics/tracing"

// endTrace ends the span of a message's attempt, which includes the reads for the attempt. No request causes
// the attempt, so its span is the root of a trace.
func endTrace(span *tracing.Span, done *attemptResult) {
	if span == nil {
		return
	}
	span.Set(
		tracing.String("licet.event.id", done.message.id),
		tracing.String("licet.event.type", string(done.before.Type)),
	)
	switch {
	case done.eventGone:
		span.Fail("not_kept")
	case done.err != nil:
		span.Fail("not_sent")
	default:
		span.Set(tracing.String("licet.outcome", string(done.attempt.Outcome)))
		if done.attempt.Failure != "" {
			span.Fail(string(done.attempt.Failure))
		}
	}
	span.End()
}
