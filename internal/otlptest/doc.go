// Package otlptest receives traces in tests, as an OpenTelemetry collector does: over HTTP, as OTLP in protobuf. Tests
// then look up spans by name and by trace.
//
// The map of the package:
//
//	collector.go  the collector and its spans
//	tracer.go     a tracer that sends to the collector
package otlptest
