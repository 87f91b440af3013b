package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// FuncGauge is a gauge whose value is the sum of its sources at the time of a scrape. It is for values that
// the process already keeps: nothing counts them twice, and a value that changes 100,000 times a second costs
// only its reads. It is safe for concurrent use.
type FuncGauge struct {
	desc *prometheus.Desc

	mu      sync.Mutex
	sources []func() float64 // guarded by mu; append only
}

var (
	_ prometheus.Collector = (*FuncGauge)(nil)
	_ prometheus.Metric    = (*FuncGauge)(nil)
)

func newFuncGauge(reg prometheus.Registerer, name, help string) *FuncGauge {
	g := &FuncGauge{desc: prometheus.NewDesc(name, help, nil, nil)}
	reg.MustRegister(g)
	return g
}

// AddSource adds a source. Every scrape calls source, which must be safe for concurrent use.
func (g *FuncGauge) AddSource(source func() float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sources = append(g.sources, source)
}

// Value returns the sum of the sources.
func (g *FuncGauge) Value() (sum float64) {
	g.mu.Lock()
	sources := g.sources
	g.mu.Unlock()
	for _, source := range sources {
		sum += source()
	}
	return sum
}

// Desc implements prometheus.Metric.
func (g *FuncGauge) Desc() *prometheus.Desc { return g.desc }

// Write implements prometheus.Metric.
func (g *FuncGauge) Write(m *dto.Metric) error {
	value := g.Value()
	m.Gauge = &dto.Gauge{Value: &value}
	return nil
}

// Describe implements prometheus.Collector.
func (g *FuncGauge) Describe(descs chan<- *prometheus.Desc) { descs <- g.desc }

// Collect implements prometheus.Collector.
func (g *FuncGauge) Collect(metrics chan<- prometheus.Metric) { metrics <- g }
