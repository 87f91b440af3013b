package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// HTTP contains the instruments of HTTP requests and responses.
type HTTP struct {
	// HTTPDuration is the time from the last byte of a request to the first byte of its response, in
	// seconds, by method, route pattern and status.
	HTTPDuration *prometheus.HistogramVec
	// HTTPResponses counts responses by method, route pattern, status, and the code in the envelope,
	// which is empty for a success.
	HTTPResponses *prometheus.CounterVec
	// HTTPInFlight is the number of requests in flight.
	HTTPInFlight prometheus.Gauge
	// IdleConnectionsClosed counts idle connections that the node has closed to accept others.
	IdleConnectionsClosed prometheus.Counter
	// ResponseBytes is the number of bytes of responses that have not left yet.
	ResponseBytes *FuncGauge
	// BodyBytes is the number of bytes of request bodies that the node waits for or works on.
	BodyBytes *FuncGauge
	// RateLimited counts requests refused with 42900, by limit: address, authentication, document_bytes, account,
	// license, trials, new_devices, reserve, claims, license_bytes or account_bytes.
	RateLimited *prometheus.CounterVec
	// Activations counts responses to activations, by outcome: bound, again (the device was already
	// bound), or the reason of an error.
	Activations *prometheus.CounterVec
}

func newHTTP(factory promauto.Factory, reg prometheus.Registerer) HTTP {
	return HTTP{
		HTTPDuration: factory.NewHistogramVec(histogram(
			"licet_http_request_duration_seconds",
			"Time to answer an HTTP request.",
			latencyBuckets,
		), []string{"method", "route", "code"}),
		HTTPResponses: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "licet_http_responses_total",
			Help: "Answers to HTTP requests, by status and by the code of the error in them, which is empty for a " +
				"success.",
		}, []string{"method", "route", "code", "error"}),
		HTTPInFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_http_requests_in_flight",
			Help: "HTTP requests being worked on.",
		}),
		IdleConnectionsClosed: factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_idle_connections_closed_total",
			Help: "Idle connections closed to accept others, because as many were open as the node accepts.",
		}),
		ResponseBytes: newFuncGauge(reg, "licet_response_bytes_in_flight", "Bytes of responses that clients have not "+
			"read yet. Small responses do not count."),
		BodyBytes: newFuncGauge(reg, "licet_request_body_bytes", "Bytes of request bodies that the node waits for or "+
			"works on. Small bodies do not count."),
		RateLimited: vector(factory,
			"licet_rate_limited_total",
			"Requests refused because of a rate limit, by what it counts.",
			[]string{"limit"}, each("address", "authentication", "document_bytes", "account", "license", "pay_page",
				"trials", "new_devices", "reserve", "claims", "license_bytes", "account_bytes")...),
		Activations: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "licet_activations_total",
			Help: "Answers to activations: bound, again where the device was bound already, or the reason why not.",
		}, []string{"outcome"}),
	}
}
