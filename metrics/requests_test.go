package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"

	"licet/metrics"
)

// TestRequestTimes: every request counts under its own labels, also concurrent ones.
func TestRequestTimes(t *testing.T) {
	reg := prometheus.NewRegistry()
	times := metrics.NewRequestTimes(metrics.New(reg, "", "", ""))
	const callers, each = 8, 50
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				for _, status := range []int{200, 404} {
					times.Observe("GET", "/livez", status, 0, time.Millisecond, "")
					times.Observe("GET", "/readyz", status, 0, time.Millisecond, "")
				}
				times.Observe("POST", "/readyz", 200, 0, time.Millisecond, "")
			}
		})
	}
	all.Wait()
	series := 0
	for _, f := range gathered(t, reg) {
		if f.GetName() != "licet_http_request_duration_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			series++
			if got := m.GetHistogram().GetSampleCount(); got != callers*each {
				t.Errorf("%v: %d", m.GetLabel(), got)
			}
		}
	}
	if series != 5 {
		t.Errorf("%d series, want 5", series)
	}
}

// TestResponseCounts: responses of the same status have a counter for each code, and share a histogram.
func TestResponseCounts(t *testing.T) {
	reg := prometheus.NewRegistry()
	times := metrics.NewRequestTimes(metrics.New(reg, "", "", ""))
	times.Expect("GET", "/x", 503, 50300)
	for code, count := range map[int]int{0: 1, 40901: 2, 40902: 3} {
		for range count {
			times.Observe("POST", "/x", max(200, code/100), code, time.Millisecond, "")
		}
	}
	want := map[string]uint64{ // labels in the order of their names: code, error, method, route
		"licet_http_responses_total 503 50300 GET /x":     0,
		"licet_http_responses_total 200  POST /x":         1,
		"licet_http_responses_total 409 40901 POST /x":    2,
		"licet_http_responses_total 409 40902 POST /x":    3,
		"licet_http_request_duration_seconds 200 POST /x": 1,
		"licet_http_request_duration_seconds 409 POST /x": 5,
	}
	got := make(map[string]uint64)
	for _, f := range gathered(t, reg) {
		if f.GetName() != "licet_http_responses_total" && f.GetName() != "licet_http_request_duration_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := f.GetName()
			for _, l := range m.GetLabel() {
				labels += " " + l.GetValue()
			}
			got[labels] = uint64(m.GetCounter().GetValue()) + m.GetHistogram().GetSampleCount()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestExemplars: a request with a sampled trace is the exemplar of its bucket, in OpenMetrics and protobuf.
// No other request is an exemplar.
func TestExemplars(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	reg := prometheus.NewRegistry()
	times := metrics.NewRequestTimes(metrics.New(reg, "", "", ""))
	times.Observe("GET", "/plain", 200, 0, 3*time.Millisecond, "")
	times.Observe("GET", "/traced", 200, 0, 3*time.Millisecond, trace)
	page := scrape(t, metrics.Handler(reg), "application/openmetrics-text;version=1.0.0")
	examples := 0
	for line := range strings.Lines(page) {
		if strings.Contains(line, "# {") {
			examples++
			if !strings.Contains(line, `route="/traced",le="0.005"`) ||
				!strings.Contains(line, `# {trace_id="`+trace+`"} 0.003`) {
				t.Errorf("an example is %s", line)
			}
		}
	}
	if examples != 1 {
		t.Errorf("%d examples", examples)
	}
	for _, f := range gathered(t, reg) {
		for _, m := range f.GetMetric() {
			for _, e := range m.GetHistogram().GetExemplars() {
				if len(e.GetLabel()) != 1 || e.GetLabel()[0].GetValue() != trace {
					t.Errorf("%s: the native histogram's example is %v", f.GetName(), e)
				}
			}
		}
	}
}

// TestBothKindsOfHistograms: protobuf has native and classic buckets, text has only classic ones.
func TestBothKindsOfHistograms(t *testing.T) {
	reg := prometheus.NewRegistry()
	times := metrics.NewRequestTimes(metrics.New(reg, "", "", ""))
	for i := range 1000 {
		times.Observe("GET", "/x", 200, 0, time.Duration(i)*time.Microsecond, "")
	}
	if page := scrape(t, metrics.Handler(reg), ""); !strings.Contains(page,
		`licet_http_request_duration_seconds_bucket{code="200",method="GET",route="/x",le="0.0005"} 501`) {
		t.Errorf("no classic bucket: %s", page)
	}
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	recorder := httptest.NewRecorder()
	metrics.Handler(reg).ServeHTTP(recorder, request)
	for {
		var f dto.MetricFamily
		if err := protodelim.UnmarshalFrom(recorder.Body, &f); err != nil {
			t.Fatalf("the histogram is missing: %v", err)
		}
		if f.GetName() != "licet_http_request_duration_seconds" {
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		if h.GetSchema() != 3 || len(h.GetPositiveDelta()) < 20 || len(h.GetBucket()) != 13 ||
			h.GetSampleCount() != 1000 {
			t.Errorf("schema %d, %d native buckets, %d classic ones, count %d", h.GetSchema(),
				len(h.GetPositiveDelta()), len(h.GetBucket()), h.GetSampleCount())
		}
		return
	}
}

func scrape(t *testing.T, handler http.Handler, accept string) string {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", accept)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Body.String()
}

// BenchmarkRequestTimes measures the cost of counting a request; see docs/decisions/0023-metrics.md.
func BenchmarkRequestTimes(b *testing.B) {
	for name, trace := range map[string]string{"plain": "", "traced": "4bf92f3577b34da6a3ce929d0e0e4736"} {
		b.Run(name, func(b *testing.B) {
			times := metrics.NewRequestTimes(metrics.New(prometheus.NewRegistry(), "", "", ""))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				times.Observe("POST", "/v1/licenses/activate", 200, 0, time.Duration(i%4096)*time.Microsecond, trace)
			}
		})
	}
}

// BenchmarkHistogram compares the two kinds of histograms, with the values of requests.
func BenchmarkHistogram(b *testing.B) {
	buckets := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	for _, c := range []struct {
		name    string
		options prometheus.HistogramOpts
	}{
		{"classic", prometheus.HistogramOpts{Name: "x", Buckets: buckets}},
		{"both", prometheus.HistogramOpts{
			Name: "x", Buckets: buckets,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
			NativeHistogramMinResetDuration: time.Hour,
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := prometheus.NewHistogram(c.options)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				h.Observe(float64(i%4096) / 1e6)
			}
		})
	}
}
