package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// RequestTimes observes [HTTP.HTTPDuration] and counts [HTTP.HTTPResponses].
type RequestTimes struct {
	metrics *Metrics
	known   handles[requestLabels, requestHandles]
}

type requestLabels struct {
	method, route string
	status, code  int
}

type requestHandles struct {
	duration  prometheus.Observer
	responses prometheus.Counter
}

// NewRequestTimes makes what observes HTTP requests.
func NewRequestTimes(m *Metrics) *RequestTimes {
	t := &RequestTimes{metrics: m}
	t.known.find = func(l requestLabels) requestHandles {
		status := strconv.Itoa(l.status)
		return requestHandles{
			duration:  m.HTTPDuration.WithLabelValues(l.method, l.route, status),
			responses: m.HTTPResponses.WithLabelValues(l.method, l.route, status, errorLabel(l.code)),
		}
	}
	return t
}

// errorLabel is empty for a success, so that all successes of a route are one series
// that is told from the rest without a list of codes.
func errorLabel(code int) string {
	if code == 0 {
		return ""
	}
	return strconv.Itoa(code)
}

// Expect makes the series of an answer that a route may give, at 0.
func (t *RequestTimes) Expect(method, route string, status, code int) {
	t.metrics.HTTPResponses.WithLabelValues(method, route, strconv.Itoa(status), errorLabel(code))
}

// Observe counts a request that was answered with a status, and with a code in the
// envelope, which is 0 for a success. traceID is that of the trace that the request is
// in, if that is one that is kept, and else empty: then it is an example of its bucket.
func (t *RequestTimes) Observe(method, route string, status, code int, took time.Duration, traceID string) {
	h := t.known.of(requestLabels{method, route, status, code})
	h.responses.Inc()
	if traceID == "" {
		h.duration.Observe(took.Seconds())
		return
	}
	h.duration.(prometheus.ExemplarObserver).ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": traceID})
}
