package metrics_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"licet/metrics"
)

var update = flag.Bool("update", false, "write the golden file anew")

const golden = "testdata/metrics.golden"

// observed returns a registry in which each instrument has a value: a metric with labels shows only once
// it has one.
func observed(t *testing.T) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	for name, field := range instruments(metrics.New(reg, "v1.2.3", "abcdef", "go1.26")) {
		switch c := field.Interface().(type) {
		case *metrics.FuncGauge:
			c.AddSource(func() float64 { return 1 })
		case *metrics.SeriesGauge:
			c.Replace([]metrics.Series{{Labels: []string{"x", "x", "x"}, Value: 1}})
		case prometheus.Gauge: // before Counter, whose methods it has too
			c.Set(1)
		case prometheus.Counter:
			c.Inc()
		case prometheus.Histogram:
			c.Observe(1)
		case *prometheus.HistogramVec:
			c.WithLabelValues(placeholders(t, c)...).Observe(1)
		case *prometheus.CounterVec:
			c.WithLabelValues(placeholders(t, c)...).Inc()
		case *prometheus.GaugeVec:
			c.WithLabelValues(placeholders(t, c)...).Set(1)
		default:
			t.Fatalf("%s is a %T, which this test can't observe", name, c)
		}
	}
	return reg
}

// instruments yields every instrument with the name of its field.
func instruments(m *metrics.Metrics) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		all := reflect.ValueOf(m).Elem()
		for i := range all.NumField() {
			part := all.Field(i)
			for j := range part.NumField() {
				if !yield(part.Type().Field(j).Name, part.Field(j)) {
					return
				}
			}
		}
	}
}

// placeholders returns a value for each variable label of c.
func placeholders(t *testing.T, c prometheus.Collector) []string {
	t.Helper()
	for n := range 10 {
		values := slices.Repeat([]string{"x"}, n)
		if vec := reflect.ValueOf(c).MethodByName("GetMetricWithLabelValues"); vec.IsValid() {
			if out := vec.CallSlice([]reflect.Value{reflect.ValueOf(values)}); out[1].IsNil() {
				return values
			}
		}
	}
	t.Fatalf("%T takes no number of labels", c)
	return nil
}

// gathered returns the service's metric families, without those of Go's runtime and of the process.
func gathered(t *testing.T, reg *prometheus.Registry) []*dto.MetricFamily {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(families, func(f *dto.MetricFamily) bool {
		return !strings.HasPrefix(f.GetName(), "licet_")
	})
}

// TestExposedMetrics compares names, types (native histograms too) and label names with the golden file,
// because dashboards and alerts depend on them.
func TestExposedMetrics(t *testing.T) {
	var got bytes.Buffer
	for _, f := range gathered(t, observed(t)) {
		fmt.Fprintf(&got, "%s %s", f.GetName(), strings.ToLower(f.GetType().String()))
		if h := f.GetMetric()[0].GetHistogram(); h != nil && h.Schema != nil {
			got.WriteString("+native")
		}
		for _, label := range f.GetMetric()[0].GetLabel() {
			fmt.Fprintf(&got, " %s", label.GetName())
		}
		got.WriteByte('\n')
	}
	compareGolden(t, golden, got.String())
}

// TestSeriesFromTheStart compares the series of a new process with another golden file: the series known
// beforehand must exist.
func TestSeriesFromTheStart(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	metrics.New(reg, "v1.2.3", "abcdef", "go1.26")
	var got bytes.Buffer
	for _, f := range gathered(t, reg) {
		for _, m := range f.GetMetric() {
			got.WriteString(f.GetName())
			for _, label := range m.GetLabel() {
				fmt.Fprintf(&got, " %s=%s", label.GetName(), label.GetValue())
			}
			got.WriteByte('\n')
		}
	}
	compareGolden(t, "testdata/series.golden", got.String())
}

// compareGolden compares a text with a golden file.
func compareGolden(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("metrics differ from %s; if that is meant, run with -update (-want +got):\n%s", golden, diff)
	}
}

// TestDocumentedMetrics compares docs/reference/metrics.md with the golden file, both ways: each
// metric has one row with its type and labels.
func TestDocumentedMetrics(t *testing.T) {
	doc, err := os.ReadFile("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	code := regexp.MustCompile("`([^`]*)`")
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| `licet_") || len(cells) < 5 {
			continue
		}
		row := strings.Trim(cells[1], " `") + " " + strings.TrimSpace(cells[2])
		var labels []string
		for _, label := range code.FindAllStringSubmatch(cells[3], -1) {
			labels = append(labels, label[1])
		}
		slices.Sort(labels)
		documented = append(documented, strings.Join(append([]string{row}, labels...), " "))
	}
	slices.Sort(documented)
	list, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	exposed := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(list), "+native", "")), "\n")
	slices.Sort(exposed)
	if diff := cmp.Diff(exposed, documented); diff != "" {
		t.Errorf("docs/reference/metrics.md differs from %s (-golden +documented):\n%s", golden, diff)
	}
}

// TestMetricsLint runs the checks of promtool check metrics.
func TestMetricsLint(t *testing.T) {
	problems, err := promlint.NewWithMetricFamilies(gathered(t, observed(t))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestEveryInstrumentIsRegistered: no scrape shows an instrument that is not registered.
func TestEveryInstrumentIsRegistered(t *testing.T) {
	reg := prometheus.NewRegistry()
	for name, field := range instruments(metrics.New(reg, "", "", "")) {
		if field.IsNil() {
			t.Errorf("%s is nil", name)
			continue
		}
		err := reg.Register(field.Interface().(prometheus.Collector))
		if already := (prometheus.AlreadyRegisteredError{}); !errors.As(err, &already) {
			t.Errorf("%s is not registered (registering it: %v)", name, err)
		}
	}
}

// TestLabelsHoldNoSecrets: no label is for a key, a device, an order or an address, whatever the golden file
// says. One metric is about products.
func TestLabelsHoldNoSecrets(t *testing.T) {
	allowed := []string{"method", "route", "code", "operation", "outcome", "result", "kind", "limit", "reason", "state",
		"version", "revision", "goversion", "error", "type", "sweep"}
	for _, f := range gathered(t, observed(t)) {
		for _, label := range f.GetMetric()[0].GetLabel() {
			of := []string{"account", "mode", "product"}
			if f.GetName() == "licet_leases_in_use" && slices.Contains(of, label.GetName()) {
				continue
			}
			if !slices.Contains(allowed, label.GetName()) {
				t.Errorf("%s has label %s: if its values are few and tell nothing of anyone, allow it here",
					f.GetName(), label.GetName())
			}
		}
	}
}

func TestBuildInfo(t *testing.T) {
	for _, f := range gathered(t, observed(t)) {
		if f.GetName() != "licet_build_info" {
			continue
		}
		labels := map[string]string{}
		for _, label := range f.GetMetric()[0].GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		want := map[string]string{"version": "v1.2.3", "revision": "abcdef", "goversion": "go1.26"}
		if diff := cmp.Diff(want, labels); diff != "" || f.GetMetric()[0].GetGauge().GetValue() != 1 {
			t.Errorf("value %v (-want +got):\n%s", f.GetMetric()[0].GetGauge().GetValue(), diff)
		}
		return
	}
	t.Error("licet_build_info is missing")
}

// TestNoGlobals: a process can have two sets of instruments, and the default registry has none of them.
func TestNoGlobals(t *testing.T) {
	observed(t)
	observed(t)
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "licet_") {
			t.Errorf("%s is in the default registry", f.GetName())
		}
	}
}

func TestHandler(t *testing.T) {
	handler := metrics.Handler(observed(t))
	f := func(accept, contentType string, lines ...string) {
		t.Helper()
		req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		req.Header.Set("Accept", accept)
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, req)
		if got := rec.Header().Get("Content-Type"); rec.Code != http.StatusOK || !strings.HasPrefix(got, contentType) {
			t.Errorf("Accept %q: status %d, Content-Type %q, want %q", accept, rec.Code, got, contentType)
		}
		for _, line := range lines {
			if !strings.Contains("\n"+rec.Body.String(), "\n"+line) {
				t.Errorf("Accept %q: no line begins with %q", accept, line)
			}
		}
	}
	f("", "text/plain", "licet_panics_total 1", "go_goroutines ", "process_start_time_seconds ")
	f("application/openmetrics-text;version=1.0.0", "application/openmetrics-text",
		"# TYPE licet_panics counter", "licet_panics_total 1.0", "# EOF")
}
