package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Sampled is a gauge whose value is asked for when it is scraped. It is for what
// somebody knows anyway: then nothing need be counted twice, and what changes a
// hundred thousand times a second costs nothing but to read it.
type Sampled struct {
	desc *prometheus.Desc

	mu      sync.Mutex
	sources []func() float64 // guarded by mu; only ever appended to
}

var (
	_ prometheus.Collector = (*Sampled)(nil)
	_ prometheus.Metric    = (*Sampled)(nil)
)

func newSampled(reg prometheus.Registerer, name, help string) *Sampled {
	s := &Sampled{desc: prometheus.NewDesc(name, help, nil, nil)}
	reg.MustRegister(s)
	return s
}

// From adds a source: the value is the sum of what all of them say. It is called
// whenever there is a scrape.
func (s *Sampled) From(source func() float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources = append(s.sources, source)
}

// Value is the sum of what the sources say now.
func (s *Sampled) Value() (sum float64) {
	s.mu.Lock()
	sources := s.sources
	s.mu.Unlock()
	for _, source := range sources {
		sum += source()
	}
	return sum
}

// Desc implements prometheus.Metric.
func (s *Sampled) Desc() *prometheus.Desc { return s.desc }

// Write implements prometheus.Metric.
func (s *Sampled) Write(m *dto.Metric) error {
	value := s.Value()
	m.Gauge = &dto.Gauge{Value: &value}
	return nil
}

// Describe implements prometheus.Collector.
func (s *Sampled) Describe(descs chan<- *prometheus.Desc) { descs <- s.desc }

// Collect implements prometheus.Collector.
func (s *Sampled) Collect(metrics chan<- prometheus.Metric) { metrics <- s }
