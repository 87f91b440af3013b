package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// StoreTimes observes [Store.StoreDuration].
type StoreTimes struct {
	known handleCache[storeLabels, prometheus.Observer]
}

type storeLabels struct{ operation, outcome string }

// NewStoreTimes returns an observer of etcd requests.
func NewStoreTimes(m *Metrics) *StoreTimes {
	t := &StoreTimes{}
	t.known.find = func(l storeLabels) prometheus.Observer {
		return m.StoreDuration.WithLabelValues(l.operation, l.outcome)
	}
	return t
}

// Observe counts a completed request.
func (t *StoreTimes) Observe(operation, outcome string, took time.Duration) {
	t.known.get(storeLabels{operation, outcome}).Observe(took.Seconds())
}
