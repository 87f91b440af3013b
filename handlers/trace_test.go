package handlers_test

import (
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"licet/handlers"
	"licet/internal/otlptest"
	"licet/metrics/tracing"
	"licet/node/service"
)

func withTracer(tracer *tracing.Tracer) option {
	return func(front *handlers.Config, behind *service.Config) { front.Tracer, behind.Tracer = tracer, tracer }
}

// TestUnsampledRequestsAllocateNothingMore: an activation that is not sampled allocates as much with tracing as
// without.
func TestUnsampledRequestsAllocateNothingMore(t *testing.T) {
	unsampled, _ := otlptest.Tracer(t, 0)
	count := func(tracer *tracing.Tracer) float64 {
		server, request := benchServer(t, tracer)
		ctx := parsed(t, request)
		serve := func() {
			ctx.Response.Reset()
			server.ServeRequest(ctx)
			if ctx.Response.StatusCode() != fasthttp.StatusOK {
				t.Fatalf("%s", &ctx.Response)
			}
		}
		serve()
		// Requests share a deadline, and a new one now and then allocates little among so many requests.
		return testing.AllocsPerRun(5000, serve)
	}
	if off, on := count(nil), count(unsampled); on > off {
		t.Errorf("%v allocations with tracing, %v without", on, off)
	}
}

// TestTraceHeaders: the server reads the headers of W3C Trace Context.
func TestTraceHeaders(t *testing.T) {
	tracer, collector := otlptest.Tracer(t, 0)
	s := newService(t, withTracer(tracer))
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	good := "00-" + id + "-" + span + "-01"
	send := func(headers ...string) {
		t.Helper()
		s.send("GET", "/v1/products", keyAll, "", headers...).must(t, 0)
	}
	send("traceparent", good, "tracestate", "a=1", "tracestate", "b=2")
	send("TRACEPARENT", strings.Replace(good, "4b", "5b", 1), "tracestate", "no state at all")
	// Each of these counts as none:
	send("traceparent", good, "traceparent", strings.Replace(good, "4b", "6b", 1))
	send("tracestate", "a=1")
	send("traceparent", good[:len(good)-1]+"0")
	// An unknown method and an unknown route: the span shows neither.
	s.send("SECRET", "/v1/secret", "", "", "traceparent", strings.Replace(good, "4b", "7b", 1)).must(t, 40400)
	tracer.Close(t.Context())
	tops := func(id string) (found []otlptest.Span) {
		for _, s := range collector.Trace(id) {
			if s.Kind == "SPAN_KIND_SERVER" {
				found = append(found, s)
			}
		}
		return found
	}
	if got := tops(id); len(got) != 1 || got[0].Parent != span || got[0].Tracestate != "a=1,b=2" ||
		got[0].Name != "GET /v1/products" {
		t.Errorf("a valid traceparent returns %+v", got)
	}
	if got := tops("5b" + id[2:]); len(got) != 1 || got[0].Tracestate != "" {
		t.Errorf("a valid traceparent with an invalid tracestate returns %+v", got)
	}
	if got := tops("7b" + id[2:]); len(got) != 1 || got[0].Name != "HTTP" ||
		got[0].Attrs["http.request.method"] != "_OTHER" || strings.Contains(collector.Text(), "ecret") {
		t.Errorf("a request without a traceparent returns %+v", got)
	}
	for _, s := range collector.Spans() {
		if s.TraceID != id && s.TraceID != "5b"+id[2:] && s.TraceID != "7b"+id[2:] {
			t.Errorf("there is also %+v", s)
		}
	}
}

// TestTraceOfAFailure: a response with status 5xx is a failure of the span, and the log line of a panic names the
// trace.
func TestTraceOfAFailure(t *testing.T) {
	tracer, collector := otlptest.Tracer(t, 1)
	s := newService(t, withTracer(tracer))
	s.store.onRead(func() { panic("CANARY") })
	s.send("GET", "/v1/products/x", keyAll, "").must(t, 50000)
	tracer.Close(t.Context())
	got := otlptest.Named(collector.Spans(), "GET /v1/products/{product_id}")
	if len(got) != 1 || !got[0].Failed || got[0].Attrs["error.type"] != "50000" ||
		got[0].Attrs["licet.code"] != "50000" {
		t.Fatalf("%+v", collector.Spans())
	}
	if strings.Count(s.log.String(), got[0].TraceID) != 2 || strings.Contains(collector.Text(), "CANARY") {
		t.Errorf("the log is %s", s.log)
	}
}
