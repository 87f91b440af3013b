//go:build nometrics

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// builder makes instruments that do nothing, and registers none.
type builder struct{}

func newBuilder(prometheus.Registerer) builder { return builder{} }

// silent: nothing is counted.
const silent = true

func (builder) NewCounter(prometheus.CounterOpts) prometheus.Counter       { return nothing{} }
func (builder) NewGauge(prometheus.GaugeOpts) prometheus.Gauge             { return nothing{} }
func (builder) NewHistogram(prometheus.HistogramOpts) prometheus.Histogram { return nothing{} }

func (builder) NewCounterVec(o prometheus.CounterOpts, labels []string) *prometheus.CounterVec {
	return &prometheus.CounterVec{MetricVec: noVector(o.Name, labels)}
}

func (builder) NewGaugeVec(o prometheus.GaugeOpts, labels []string) *prometheus.GaugeVec {
	return &prometheus.GaugeVec{MetricVec: noVector(o.Name, labels)}
}

func (builder) NewHistogramVec(o prometheus.HistogramOpts, labels []string) *prometheus.HistogramVec {
	return &prometheus.HistogramVec{MetricVec: noVector(o.Name, labels)}
}

func noVector(name string, labels []string) *prometheus.MetricVec {
	desc := prometheus.NewDesc(name, "Nothing.", labels, nil)
	return prometheus.NewMetricVec(desc, func(...string) prometheus.Metric { return nothing{} })
}

// nothing is every kind of instrument.
type nothing struct{}

func (nothing) Inc()                                           {}
func (nothing) Dec()                                           {}
func (nothing) Add(float64)                                    {}
func (nothing) Sub(float64)                                    {}
func (nothing) Set(float64)                                    {}
func (nothing) SetToCurrentTime()                              {}
func (nothing) Observe(float64)                                {}
func (nothing) ObserveWithExemplar(float64, prometheus.Labels) {}
func (nothing) Desc() *prometheus.Desc                         { return nil }
func (nothing) Write(*dto.Metric) error                        { return nil }
func (nothing) Describe(chan<- *prometheus.Desc)               {}
func (nothing) Collect(chan<- prometheus.Metric)               {}
