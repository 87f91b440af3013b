package rig

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// TestScrape reads counters with and without labels, and a histogram.
func TestScrape(t *testing.T) {
	registry := prometheus.NewRegistry()
	factory := promauto.With(registry)
	factory.NewGauge(prometheus.GaugeOpts{Name: "go_goroutines"}).Set(75)
	swaps := factory.NewCounterVec(prometheus.CounterOpts{Name: "swaps_total"}, []string{"outcome", "kind"})
	swaps.WithLabelValues("lost", "a").Add(2)
	swaps.WithLabelValues("lost", "b").Add(3)
	swaps.WithLabelValues("won", "a").Add(4)
	factory.NewHistogram(prometheus.HistogramOpts{Name: "seconds"}).Observe(7)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	m, err := (&Node{Metrics: server.URL}).Scrape(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.Value("go_goroutines"); err != nil || got != 75 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := m.Value("go_gorout"); err == nil {
		t.Error("a part of a name is found")
	}
	if m.Sum("swaps_total") != 9 || m.Sum("swaps_total", "outcome", "lost") != 5 ||
		m.Sum("swaps_total", "outcome", "lost", "kind", "b") != 3 {
		t.Errorf("got %v", m["swaps_total"])
	}
	if m.Sum("seconds") != 1 || m.Sum("nothing") != 0 {
		t.Errorf("got %v", m["seconds"])
	}
	broken := httptest.NewServer(http.NotFoundHandler())
	defer broken.Close()
	if _, err := (&Node{Metrics: broken.URL}).Scrape(t.Context()); err == nil {
		t.Error("HTTP 404 is read")
	}
}

// TestThisProcess reads the memory and the processor time of the test itself.
func TestThisProcess(t *testing.T) {
	m, err := MemoryOf(os.Getpid())
	if err != nil || m.Resident < 1<<20 || m.Peak < m.Resident || m.Anonymous > m.Resident {
		t.Errorf("got %+v, %v", m, err)
	}
	if spent, err := CPUTime(os.Getpid(), os.Getpid()); err != nil || spent < 0 {
		t.Errorf("got %v, %v", spent, err)
	}
}
