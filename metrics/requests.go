package metrics

import (
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// RequestTimes observes [Metrics.HTTPDuration]. It remembers the histogram of
// each set of labels, since to find one anew costs more than to observe. Labels
// are few; see [Metrics].
type RequestTimes struct {
	metrics *Metrics
	known   atomic.Pointer[map[requestLabels]prometheus.Observer] // replaced, never changed
}

type requestLabels struct {
	method, route string
	status        int
}

// NewRequestTimes makes what observes the duration of HTTP requests.
func NewRequestTimes(m *Metrics) *RequestTimes {
	return &RequestTimes{metrics: m}
}

// Observe counts a request that was answered.
func (t *RequestTimes) Observe(method, route string, status int, took time.Duration) {
	labels := requestLabels{method, route, status}
	known := t.known.Load()
	if known != nil {
		if observer, ok := (*known)[labels]; ok {
			observer.Observe(took.Seconds())
			return
		}
	}
	observer := t.metrics.HTTPDuration.WithLabelValues(method, route, strconv.Itoa(status))
	observer.Observe(took.Seconds())
	grown := map[requestLabels]prometheus.Observer{labels: observer}
	if known != nil {
		maps.Copy(grown, *known)
	}
	// Where another one was first, the next such request remembers.
	t.known.CompareAndSwap(known, &grown)
}
