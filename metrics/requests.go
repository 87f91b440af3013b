package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// RequestTimes observes [HTTP.HTTPDuration] and counts [HTTP.HTTPResponses].
type RequestTimes struct {
	metrics *Metrics
	known   handleCache[requestLabels, requestHandles]
}

type requestLabels struct {
	method, route string
	status, code  int
}

type requestHandles struct {
	duration  prometheus.Observer
	responses prometheus.Counter
}

// NewRequestTimes returns an observer of HTTP requests.
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

// errorLabel returns the label of a code. It is empty for a success, so that a query can select successes
// without a list of codes.
func errorLabel(code int) string {
	if code == 0 {
		return ""
	}
	return strconv.Itoa(code)
}

// Expect creates the series of a response that a route may send, with the value 0.
func (t *RequestTimes) Expect(method, route string, status, code int) {
	t.metrics.HTTPResponses.WithLabelValues(method, route, strconv.Itoa(status), errorLabel(code))
}

// Observe counts the response to a request, with its status, and the code in the envelope, which is 0 for
// a success. If the request's trace is sampled, traceID is the id of the trace, which becomes the exemplar
// of the bucket. Otherwise traceID is empty.
func (t *RequestTimes) Observe(method, route string, status, code int, took time.Duration, traceID string) {
	h := t.known.get(requestLabels{method, route, status, code})
	h.responses.Inc()
	if traceID == "" {
		h.duration.Observe(took.Seconds())
		return
	}
	h.duration.(prometheus.ExemplarObserver).ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": traceID})
}
