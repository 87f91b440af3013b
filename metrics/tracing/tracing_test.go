package tracing_test

import (
	"context"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"licet/internal/otlptest"
	"licet/metrics"
	"licet/metrics/tracing"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
	sampled = "00-" + traceID + "-" + spanID + "-01"
)

// newTracer returns a tracer with an endpoint, and its metrics and log.
func newTracer(t *testing.T, endpoint string, ratio float64) (*tracing.Tracer, *metrics.Metrics, *logText) {
	t.Helper()
	m := metrics.New(prometheus.NewRegistry(), "", "", "")
	log := new(logText)
	tracer, err := tracing.New(t.Context(), tracing.Config{
		Endpoint: endpoint, Ratio: ratio, Version: "v1", Instance: "i1", Metrics: m, Log: zerolog.New(log),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tracer.Close(context.Background()) })
	return tracer, m, log
}

type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// lost returns the counted lost spans.
func lost(m *metrics.Metrics) (count float64) {
	for _, reason := range []string{"queue_full", "export_failed"} {
		count += testutil.ToFloat64(m.TraceSpansDropped.WithLabelValues(reason))
	}
	return count
}

// TestSampling: the parent decides, whatever the ratio. A malformed parent counts as none.
func TestSampling(t *testing.T) {
	never, _, _ := newTracer(t, otlptest.Start(t).URL+"/v1/traces", 0)
	always, _, _ := newTracer(t, otlptest.Start(t).URL+"/v1/traces", 1)
	f := func(traceparent string, withNever, withAlways bool, id string) {
		t.Helper()
		for _, c := range []struct {
			ratio  string
			tracer *tracing.Tracer
			want   bool
		}{{"0", never, withNever}, {"1", always, withAlways}} {
			span := c.tracer.Begin(tracing.Parent{Traceparent: traceparent}, tracing.Start{Name: "a"})
			if (span != nil) != c.want || span != nil && (span.TraceID() == traceID) != (id == traceID) {
				t.Errorf("ratio %s, %q: span %v of trace %q", c.ratio, traceparent, span != nil, span.TraceID())
			}
			span.End()
		}
	}
	const none = ""
	f(sampled, true, true, traceID)
	f("00-"+traceID+"-"+spanID+"-00", false, false, none)
	f("cc-"+traceID+"-"+spanID+"-01-what-comes-later", true, true, traceID) // a later version may have more
	f("00-"+traceID+"-"+spanID+"-03", true, true, traceID)                  // the random flag of level 2
	for _, malformed := range []string{
		"", "-", "01", "00-" + traceID + "-" + spanID, sampled + "-", sampled + "-00", " " + sampled,
		strings.ToUpper(sampled),
		"ff-" + traceID + "-" + spanID + "-01", "0-" + traceID + "-" + spanID + "-01",
		"00-" + traceID[1:] + "-" + spanID + "-01",
		"00-" + traceID + "-" + spanID[1:] + "-01", "00-" + strings.Repeat("0", 32) + "-" + spanID + "-01",
		"00-" + traceID + "-" + strings.Repeat("0", 16) + "-01", "00-" + traceID + "-" + spanID + "-0x",
		"00-" + strings.Replace(traceID, "4", "g", 1) + "-" + spanID + "-01", sampled + "," + sampled,
		strings.Repeat("0", 5000),
	} {
		f(malformed, false, true, none)
	}
	if span := always.Continue(tracing.Parent{}, tracing.Start{Name: "a"}); span != nil {
		t.Error("what is to be continued began by itself")
	}
	if span := never.Continue(tracing.Parent{Traceparent: sampled},
		tracing.Start{Name: "a"}); span.TraceID() != traceID {
		t.Errorf("what was sampled elsewhere is in trace %q", span.TraceID())
	}
}

// TestRatio: the share of sampled traces is about Ratio. The bounds are six standard deviations wide.
func TestRatio(t *testing.T) {
	tracer, _, _ := newTracer(t, otlptest.Start(t).URL+"/v1/traces", 0.1)
	const all = 20_000
	count := 0.0
	for range all {
		if tracer.Begin(tracing.Parent{}, tracing.Start{Name: "a"}) != nil {
			count++
		}
	}
	if off := math.Abs(count - 0.1*all); off > 6*math.Sqrt(all*0.1*0.9) {
		t.Errorf("%v of %d are sampled, want a tenth", count, all)
	}
}

// TestSpansArrive: the collector receives names, times, kinds, attributes, events, links, parents and the
// resource of spans.
func TestSpansArrive(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20collector-token")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=licet-0")
	collector := otlptest.Start(t)
	tracer, m, log := newTracer(t, collector.URL+"/v1/traces", 0)
	at := time.Now().Add(-time.Second)
	other := tracer.Begin(tracing.Parent{Traceparent: strings.Replace(sampled, traceID, strings.Repeat("a", 32), 1)},
		tracing.Start{Name: "other"})
	above := tracer.Begin(tracing.Parent{Traceparent: sampled, Tracestate: "vendor=1,b=2"},
		tracing.Start{Kind: tracing.Server, Name: "above", At: at})
	ctx := tracing.NewContext(t.Context(), above)
	below := tracer.SpanFrom(ctx).Child(tracing.Start{Kind: tracing.Client, Name: "below", Link: other,
		Attrs: []tracing.Attr{tracing.String("a", "1")}})
	below.Set(tracing.Int("b", 2))
	below.Event("sent")
	below.Fail("timeout")
	parent := below.Parent()
	below.End()
	above.End()
	other.End()
	tracer.Close(t.Context())

	spans := collector.Trace(traceID)
	if len(spans) != 2 || len(collector.Spans()) != 3 {
		t.Fatalf("the collector has %+v", collector.Spans())
	}
	got, top := otlptest.Named(spans, "below")[0], otlptest.Named(spans, "above")[0]
	want := otlptest.Span{
		Name: "below", Kind: "SPAN_KIND_CLIENT", TraceID: traceID, ID: got.ID, Parent: top.ID, Start: got.Start,
		End:    got.End,
		Attrs:  map[string]string{"a": "1", "b": "2", "error.type": "timeout"},
		Events: []string{"sent"},
		Links: []otlptest.Link{{TraceID: strings.Repeat("a", 32),
			ID: otlptest.Named(collector.Spans(), "other")[0].ID}},
		Failed:   true,
		Resource: got.Resource, Tracestate: "vendor=1,b=2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if top.Kind != "SPAN_KIND_SERVER" || top.Parent != spanID || !top.Start.Equal(at.Truncate(0)) || top.Failed {
		t.Errorf("the upper one is %+v, want a server's below %s that began at %v", top, spanID, at)
	}
	if want := (tracing.Parent{Traceparent: "00-" + traceID + "-" + got.ID + "-01",
		Tracestate: "vendor=1,b=2"}); parent != want {
		t.Errorf("the next service gets %+v, want %+v", parent, want)
	}
	for name, value := range map[string]string{
		"service.name": "licet", "service.version": "v1", "service.instance.id": "i1", "k8s.pod.name": "licet-0",
		"telemetry.sdk.language": "go",
	} {
		if got.Resource[name] != value {
			t.Errorf("%s is %q, want %q", name, got.Resource[name], value)
		}
	}
	for _, head := range collector.Headers() {
		if head.Get("Authorization") != "Bearer collector-token" {
			t.Errorf("headers are %v", head)
		}
	}
	if lost(m) != 0 || log.String() != "" {
		t.Errorf("%v spans are counted as lost, and the log is %q", lost(m), log)
	}
}

// TestOff: all methods of a nil Tracer are no-ops.
func TestOff(t *testing.T) {
	var tracer *tracing.Tracer
	ctx, root := tracer.Root(t.Context(), tracing.Start{Name: "a"})
	span := tracer.Begin(tracing.Parent{Traceparent: sampled}, tracing.Start{Name: "a"})
	span.Set(tracing.Int("a", 1))
	span.Event("a")
	span.Fail("a")
	span.End()
	if ctx != t.Context() || root != nil || span != nil || span.Child(tracing.Start{}) != nil || span.TraceID() != "" ||
		span.Parent() != (tracing.Parent{}) ||
		tracer.SpanFrom(tracing.NewContext(ctx, span)) != nil ||
		tracer.Continue(tracing.Parent{Traceparent: sampled}, tracing.Start{}) != nil {
		t.Error("there is something")
	}
	tracer.Close(t.Context())
}

// TestNothingIsAllocated: nothing is allocated if tracing is off or a trace is not sampled.
func TestNothingIsAllocated(t *testing.T) {
	unsampled, _, _ := newTracer(t, otlptest.Start(t).URL+"/v1/traces", 0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for name, tracer := range map[string]*tracing.Tracer{"off": nil, "unsampled": unsampled} {
		if allocations := testing.AllocsPerRun(1000, func() {
			span := tracer.Begin(tracing.Parent{},
				tracing.Start{Kind: tracing.Server, Name: "POST /v1/licenses/activate"})
			under := tracing.NewContext(ctx, span)
			if tracer.SpanFrom(under) != nil || span.TraceID() != "" {
				t.Error("it is sampled")
			}
			span.End()
		}); allocations != 0 {
			t.Errorf("%s: %v allocations for each request", name, allocations)
		}
	}
}

// TestDeadCollector: spans never wait for a collector that refuses them, is down, or accepts connections and
// never responds. The lost spans are counted, and logged once.
func TestDeadCollector(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepted sync.WaitGroup
	accepted.Go(func() {
		var all []net.Conn
		for {
			conn, err := silent.Accept()
			if err != nil {
				for _, conn := range all {
					_ = conn.Close()
				}
				return
			}
			all = append(all, conn)
		}
	})
	defer accepted.Wait()
	defer silent.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("no ", 1000), http.StatusForbidden)
	}))
	defer refusing.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, endpoint := range map[string]string{
		"silent": "http://" + silent.Addr().String(), "refusing": refusing.URL, "gone": gone.URL,
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			tracer, m, log := newTracer(t, endpoint+"/v1/traces", 1)
			const spans = 10_000
			for range spans {
				tracer.Begin(tracing.Parent{}, tracing.Start{Name: "a"}).End()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			tracer.Close(ctx)
			for deadline := time.Now().Add(30 * time.Second); lost(m) < spans && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			if lost(m) != spans {
				t.Errorf("%v spans of %d are counted as lost", lost(m), spans)
			}
			lines := strings.Count(log.String(), "\n")
			if lines < 1 || lines > 2 || !strings.Contains(log.String(), "traces are lost") ||
				len(log.String()) > 2000 {
				t.Errorf("the log is %q", log)
			}
			http.DefaultTransport.(*http.Transport).CloseIdleConnections()
			goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
				goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
				goleak.IgnoreAnyFunction("net/http.(*conn).serve"))
		})
	}
}

func BenchmarkBegin(b *testing.B) {
	for name, ratio := range map[string]float64{"off": -1, "unsampled": 0} {
		b.Run(name, func(b *testing.B) {
			var tracer *tracing.Tracer
			if ratio >= 0 {
				var err error
				if tracer, err = tracing.New(b.Context(), tracing.Config{
					Endpoint: otlptest.Start(b).URL + "/v1/traces", Ratio: ratio,
					Metrics: metrics.New(prometheus.NewRegistry(), "", "", ""), Log: zerolog.Nop(),
				}); err != nil {
					b.Fatal(err)
				}
				defer tracer.Close(context.Background())
			}
			b.ReportAllocs()
			for b.Loop() {
				tracer.Begin(tracing.Parent{},
					tracing.Start{Kind: tracing.Server, Name: "POST /v1/licenses/activate"}).End()
			}
		})
	}
}
