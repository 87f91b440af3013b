package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// SeriesGauge is a gauge whose series are replaced all at once, so that a scrape sees those of one count. It is safe
// for concurrent use.
type SeriesGauge struct {
	desc   *prometheus.Desc
	series atomic.Pointer[[]Series]
}

// Series is one value of a SeriesGauge.
type Series struct {
	Labels []string
	Value  float64
}

var _ prometheus.Collector = (*SeriesGauge)(nil)

func newSeriesGauge(reg prometheus.Registerer, name, help string, labels ...string) *SeriesGauge {
	g := &SeriesGauge{desc: prometheus.NewDesc(name, help, labels, nil)}
	reg.MustRegister(g)
	return g
}

// Replace replaces all series. The caller must not change them later.
func (g *SeriesGauge) Replace(series []Series) { g.series.Store(&series) }

// Describe implements prometheus.Collector.
func (g *SeriesGauge) Describe(descs chan<- *prometheus.Desc) { descs <- g.desc }

// Collect implements prometheus.Collector.
func (g *SeriesGauge) Collect(found chan<- prometheus.Metric) {
	series := g.series.Load()
	if series == nil {
		return
	}
	for _, s := range *series {
		found <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, s.Value, s.Labels...)
	}
}
