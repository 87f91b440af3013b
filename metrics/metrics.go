package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics contains the instruments of a process. Make it with [New].
type Metrics struct {
	HTTP
	Engine
	Store
	Commerce
	Events
	Chores
	Tracing
}

// New registers the instruments, and the collectors of Go's runtime and of the process. version, revision
// and goVersion are labels of licet_build_info.
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
		HTTP:     newHTTP(factory, reg),
		Engine:   newEngine(factory, reg),
		Store:    newStore(factory, reg),
		Commerce: newCommerce(factory),
		Events:   newEvents(factory),
		Chores:   newChores(factory, reg),
		Tracing:  newTracing(factory),
	}
}

// Handler returns the handler of scrapes. It responds with what reg gathers, on request in OpenMetrics or
// protobuf. Both have exemplars; only protobuf has native histograms.
func Handler(reg prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// vector returns a counter with labels. The given series exist from the start: a rate misses the first
// event of a series that begins with it.
func vector(factory promauto.Factory, name, help string, labels []string, series ...[]string) *prometheus.CounterVec {
	v := factory.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	for _, values := range series {
		v.WithLabelValues(values...)
	}
	return v
}

// each returns the series of a metric with one label.
func each(values ...string) (series [][]string) {
	for _, value := range values {
		series = append(series, []string{value})
	}
	return series
}

// latencyBuckets range from a response out of memory to the deadline of a request, in seconds.
var latencyBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}

// providerBuckets range from a response of a near server to the deadline of a slow provider or endpoint,
// in seconds.
var providerBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15}

// histogram returns the options of a histogram that has both the given buckets and native ones. Each
// native bucket is a tenth wider than the one before. If a histogram needs more than 160 native buckets, it
// is reset, at most once an hour, or its buckets get wider.
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
