// Package tracing sends spans to an OpenTelemetry collector, which show where the time of a request goes. It
// is the only package that knows OpenTelemetry. The other packages make spans with a [Tracer]:
//
//	POST /v1/licenses/activate      the request, made by package handlers
//	├ mailbox wait                  the request waited for its license's mailbox
//	└ fold                          the mailbox ran the request's command, with others that waited
//	  ├ etcd swap                   the node stored the changes
//	  └ hop                         or the node sent the command to another node, where
//	    └ hop run                   the waiting, the fold and the swap are children of this span
//
// Tracing is off by default: then there is no Tracer, and all methods of a nil Tracer and of a nil [Span] are
// no-ops. With tracing on, few requests are sampled: those whose caller says so by W3C traceparent, and a share
// of the requests without a traceparent. Any other request has no Span, and costs only the decision.
//
// Spans never contain what a caller sent, except the request's id and tracestate: no license key, no device, no
// e-mail address, no path. Code that adds an attribute must keep this rule.
//
// Files:
//
//   - tracing.go: the tracer, its sampling, and the ids of traces and spans
//   - span.go: a step of a traced request
//   - parent.go: W3C Trace Context: which remote span is the parent
//   - export.go: sends spans to the collector, and counts the lost ones
package tracing
