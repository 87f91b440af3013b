// Package metrics holds every Prometheus instrument of the service. They are
// built on a registry that is passed in and handed to whoever counts; there
// are no global ones. Each file holds those of one part of the service;
// docs/reference/metrics.md tells what they mean to whoever runs it.
//
// Labels have few values, which are known beforehand as far as can be: then
// their series are there from the start, so that a rate sees also the first thing
// that is counted. No label ever carries a key, a device, an order, an account or an
// address. See docs/decisions/0023-metrics.md.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the instruments of one process. Make them with [New].
type Metrics struct {
	HTTP
	Engine
	Store
	Commerce
	Events
	Chores
	Tracing
}

// New makes the instruments and registers them, along with Go's and the
// process's own. version and revision go into licet_build_info.
func New(reg prometheus.Registerer, version, revision, goVersion string) *Metrics {
	factory := promauto.With(reg)
	factory.NewGauge(prometheus.GaugeOpts{
		Name:        "licet_build_info",
		Help:        "Always 1; the labels tell what is running.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "goversion": goVersion},
	}).Set(1)
	reg.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return &Metrics{
		HTTP:     newHTTP(factory),
		Engine:   newEngine(factory, reg),
		Store:    newStore(factory, reg),
		Commerce: newCommerce(factory),
		Events:   newEvents(factory),
		Chores:   newChores(factory, reg),
		Tracing:  newTracing(factory),
	}
}

// Handler answers scrapes of what reg gathers, in OpenMetrics or as protobuf where
// asked for. Exemplars are in both, native histograms only in the latter.
func Handler(reg prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// vector makes a counter of few labels, whose series are there from the start: a rate
// does not see the first thing that a series counts if it comes with it.
func vector(factory promauto.Factory, name, help string, labels []string, series ...[]string) *prometheus.CounterVec {
	v := factory.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	for _, values := range series {
		v.WithLabelValues(values...)
	}
	return v
}

// each makes series of a metric with one label.
func each(values ...string) (series [][]string) {
	for _, value := range values {
		series = append(series, []string{value})
	}
	return series
}

// latencyBuckets span an in-memory answer to a request's deadline, in seconds.
var latencyBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}

// providerBuckets span an answer from nearby to the deadline of a slow provider or
// endpoint, in seconds.
var providerBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15}

// histogram describes one that is exposed both ways: with the given buckets, and as a
// native one, whose buckets grow by a tenth, for those who scrape it so. Where its
// values are spread so far that there would be more than 160 of them, they get wider,
// or it begins anew, though not within an hour.
func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name:                            name,
		Help:                            help,
		Buckets:                         buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: time.Hour,
	}
}
