package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"licet/internal/etcdtest"
	"licet/internal/otlptest"
	"licet/kv"
)

// traceHeader is what a caller sends whose trace is sampled, or is not, and the id of
// the trace.
func traceHeader(sampled bool) (traceparent, id string) {
	id = fmt.Sprintf("%016x%016x", rand.Uint64()|1, rand.Uint64())
	flags := "00"
	if sampled {
		flags = "01"
	}
	return "00-" + id + "-00f067aa0ba902b7-" + flags, id
}

// sendTraced sends a request with a traceparent.
func (a api) sendTraced(ctx context.Context, traceparent, method, path, body string) (reply, error) {
	request, err := http.NewRequestWithContext(ctx, method, a.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Authorization", "Bearer "+a.key)
	request.Header.Set("Traceparent", traceparent)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	return a.do(request)
}

func (a api) traced(t *testing.T, traceparent, method, path, body string) reply {
	t.Helper()
	r, err := a.sendTraced(t.Context(), traceparent, method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// activationOf is the body of an activation.
func activationOf(key, device string) string {
	return `{"license_key":"` + key + `","device_id":"` + device + `"}`
}

// TestTraceOfARequest: from a caller's traceparent through the mailbox to the store,
// what the spans say of it, and where the log and the answer name the trace.
func TestTraceOfARequest(t *testing.T) {
	t.Parallel()
	traces := otlptest.Start(t)
	p := startProcess(t, t.TempDir(), "--tracing-otlp-endpoint", traces.URL+"/", "--tracing-sample-ratio", "0",
		"--metrics-listen", "127.0.0.1:0")
	key := p.grant(t, 1)

	sampled, id := traceHeader(true)
	first := p.traced(t, sampled, "POST", "/v1/licenses/activate", activationOf(key, "laptop"))
	if first.status != 200 {
		t.Fatal(first.body)
	}
	refused, refusedID := traceHeader(true)
	if r := p.traced(t, refused, "POST", "/v1/licenses/activate", activationOf(key, "phone")); r.status != 409 {
		t.Fatal(r.body)
	}
	lookup, lookupID := traceHeader(true)
	if r := p.traced(t, lookup, "GET", "/v1/licenses/"+key, ""); r.status != 200 {
		t.Fatal(r.body)
	}
	nowhere, nowhereID := traceHeader(true)
	p.traced(t, nowhere, "GET", "/v1/"+key, "")
	unsampled, unsampledID := traceHeader(false)
	p.traced(t, unsampled, "POST", "/v1/licenses/activate", activationOf(key, "laptop"))
	p.traced(t, "00-not-a-parent-01", "POST", "/v1/licenses/activate", activationOf(key, "laptop"))
	probe, probeID := traceHeader(true)
	p.traced(t, probe, "GET", "/livez", "")
	examples := p.exemplars(t)
	if code := p.terminate(t); code != exitOK { // a stop sends the remaining spans
		t.Fatalf("exit code %d", code)
	}

	spans := traces.Trace(id)
	top := theOne(t, spans, "POST /v1/licenses/activate")
	wantAttrs(t, top, map[string]string{
		"http.request.method": "POST", "http.route": "/v1/licenses/activate", "url.path": "/v1/licenses/activate",
		"url.scheme":                "http",
		"http.response.status_code": "200", "licet.request_id": first.header.Get("X-Request-Id"),
	})
	fold := theOne(t, spans, "fold")
	swap := theOne(t, spans, "etcd swap")
	if top.Parent != "00f067aa0ba902b7" || top.Kind != "SPAN_KIND_SERVER" || top.Failed || fold.Parent != top.ID ||
		swap.Parent != fold.ID {
		t.Errorf("the parents are wrong: %+v", spans)
	}
	wantAttrs(t, fold, map[string]string{"licet.fold.commands": "1", "licet.record": "license"})
	wantAttrs(t, swap, map[string]string{
		"db.system.name": "etcd", "db.operation.name": "swap", "licet.outcome": "ok", "licet.store.swap": "won",
		"licet.store.batch_parts": "1",
	})
	if !slices.Equal(swap.Events, []string{"sent"}) || swap.Kind != "SPAN_KIND_CLIENT" {
		t.Errorf("the swap is %+v", swap)
	}
	if top.Start.After(fold.Start) || fold.Start.After(swap.Start) || swap.End.After(fold.End) {
		t.Errorf("the times are wrong: %+v", spans)
	}
	for _, s := range traces.Spans() {
		if s.DroppedAttrsOrMore || s.Resource["service.name"] != "licet" || s.Resource["service.instance.id"] == "" {
			t.Errorf("%+v", s)
		}
	}

	// Each is the example of its bucket, or was until a later one of the others came.
	if count := strings.Count(examples, `# {trace_id="`); count == 0 ||
		!strings.Contains(examples, `# {trace_id="`+lookupID+`"`) {
		t.Errorf("metrics have no exemplar with the trace:\n%s", examples)
	}
	if strings.Contains(examples, unsampledID) {
		t.Error("metrics have an exemplar of a trace that there is not")
	}

	limit := theOne(t, traces.Trace(refusedID), "POST /v1/licenses/activate")
	wantAttrs(t, limit, map[string]string{"http.response.status_code": "409", "licet.code": "40901"})
	if limit.Failed {
		t.Error("a refusal counts as a failure of the service")
	}
	read := theOne(t, traces.Trace(lookupID), "GET /v1/licenses/{license_key}")
	wantAttrs(t, read,
		map[string]string{"http.route": "/v1/licenses/{license_key}", "url.path": "/v1/licenses/{license_key}"})
	if len(traces.Trace(lookupID)) < 2 {
		t.Errorf("a lookup asks no store: %+v", traces.Trace(lookupID))
	}
	if missed := theOne(t, traces.Trace(nowhereID), "GET"); missed.Attrs["url.path"] != "" ||
		missed.Attrs["licet.code"] != "40400" {
		t.Errorf("what is nowhere is %+v", missed)
	}
	if strings.Contains(strings.ToLower(traces.Text()), strings.ToLower(key)) {
		t.Error("the license key is in the traces")
	}
	for name, id := range map[string]string{"a request whose parent is not sampled": unsampledID, "a probe": probeID} {
		if len(traces.Trace(id)) > 0 {
			t.Errorf("%s is traced", name)
		}
		if strings.Contains(p.log.String(), id) {
			t.Errorf("the log names the trace of %s", name)
		}
	}
	if count := strings.Count(p.log.String(), `"trace_id"`); count != 4 {
		t.Errorf("%d lines of the log name a trace, want 4:\n%s", count, tail(p.log.String()))
	}
	for _, s := range traces.Spans() {
		if !slices.Contains([]string{id, refusedID, lookupID, nowhereID}, s.TraceID) {
			t.Errorf("there is another trace: %+v", s)
		}
	}
}

// TestTraceOfAFold: each of several requests that are folded has its wait and the fold in its trace, and all traces
// link to the trace with the swap.
func TestTraceOfAFold(t *testing.T) {
	t.Parallel()
	traces := otlptest.Start(t)
	p := startProcess(t, t.TempDir(), "--tracing-otlp-endpoint", traces.URL, "--tracing-sample-ratio", "1")
	key := p.grant(t, 0)
	const callers = 64
	shared := func(s otlptest.Span) bool {
		n, _ := strconv.Atoi(s.Attrs["licet.fold.commands"])
		return s.Name == "fold" && n > 1 && len(s.Links) > 0
	}
	for try := 0; ; try++ {
		if try == 50 {
			t.Fatal("no two requests were run together")
		}
		atOnce(callers, func(i int) { _, _ = p.activate(t.Context(), key, fmt.Sprintf("d-%d-%d", try, i)) })
		if slices.ContainsFunc(traces.Spans(), shared) {
			break
		}
	}
	if code := p.terminate(t); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	spans := traces.Spans()
	byID := make(map[string]otlptest.Span, len(spans))
	for _, s := range spans {
		byID[s.ID] = s
	}
	linked := 0
	for _, s := range spans {
		switch {
		case s.Name == "mailbox wait" &&
			(byID[s.Parent].Name != "POST /v1/licenses/activate" || s.Attrs["licet.outcome"] != "taken"):
			t.Errorf("a waiting is %+v below %+v", s, byID[s.Parent])
		case s.Name == "etcd swap" && s.Attrs["licet.fold.commands"] != "" || s.Name == "fold" &&
			byID[s.Parent].Kind != "SPAN_KIND_SERVER":
			t.Errorf("%+v is below %+v", s, byID[s.Parent])
		}
		for _, link := range s.Links {
			linked++
			leader := byID[link.ID]
			if leader.Name != "fold" || leader.TraceID != link.TraceID || leader.TraceID == s.TraceID ||
				leader.Attrs["licet.fold.commands"] != s.Attrs["licet.fold.commands"] {
				t.Errorf("a fold links to %+v", leader)
			}
			below := 0
			for _, other := range spans {
				if other.Parent == leader.ID && strings.HasPrefix(other.Name, "etcd ") {
					below++
				}
			}
			if below == 0 {
				t.Errorf("the fold that others link to has nothing below: %+v", leader)
			}
		}
	}
	if linked == 0 || len(otlptest.Named(spans, "mailbox wait")) == 0 {
		t.Errorf("%d links, %d waitings", linked, len(otlptest.Named(spans, "mailbox wait")))
	}
}

// TestTraceOverAHop: one trace leads from the node that gets the request to the node that writes the license, and
// there through its mailbox to the store.
func TestTraceOverAHop(t *testing.T) {
	t.Parallel()
	traces := otlptest.Start(t)
	cluster := etcdtest.Start(t, 1)
	apiKey := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	start := func() *process {
		p := startServe(t, "--etcd-endpoints", strings.Join(cluster.Endpoints(), ","), "--internal-listen",
			"127.0.0.1:0",
			"--drain-delay", "0s", "--tracing-otlp-endpoint", traces.URL, "--tracing-sample-ratio", "0")
		p.key = apiKey
		return p
	}
	nodes := []*process{start(), start()}
	key := nodes[0].grant(t, 0)
	// Both are asked all the time, so that each takes the other's writes until one yields.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	const contenders = 8
	for i := range contenders {
		go func() {
			defer func() { done <- struct{}{} }()
			for n := 0; ctx.Err() == nil; n++ {
				traceparent, _ := traceHeader(n%4 == 0)
				_, _ = nodes[i%2].sendTraced(ctx, traceparent, "POST", "/v1/licenses/activate",
					activationOf(key, fmt.Sprintf("d-%d-%d", i, n%50)))
				_, _ = nodes[i%2].send(ctx, "DELETE", "/v1/licenses/"+key+"/devices/"+fmt.Sprintf("d-%d-%d", i, n%50),
					"")
			}
		}()
	}
	var whole []otlptest.Span
	hopped := func(s otlptest.Span) bool {
		if s.Name != "etcd swap" || s.Attrs["licet.store.swap"] != "won" {
			return false
		}
		trace := traces.Trace(s.TraceID)
		for _, run := range otlptest.Named(trace, "hop run") {
			if otlptest.Below(trace, s, run) && len(otlptest.Named(trace, "hop")) > 0 {
				whole = trace
				return true
			}
		}
		return false
	}
	waitFor(t, func() bool { return slices.ContainsFunc(traces.Spans(), hopped) })
	cancel()
	for range contenders {
		<-done
	}
	id := whole[0].TraceID
	for _, p := range nodes {
		if code := p.terminate(t); code != exitOK {
			t.Fatalf("exit code %d", code)
		}
	}
	whole = traces.Trace(id)
	var top otlptest.Span
	for _, s := range whole {
		if s.Kind == "SPAN_KIND_SERVER" && s.Name != "hop run" {
			top = s
		}
	}
	run := otlptest.Named(whole, "hop run")[0]
	hop := otlptest.Named(whole, "hop")[0]
	if run.Parent != hop.ID || !otlptest.Below(whole, hop, top) {
		t.Errorf("the parents are wrong: %+v", whole)
	}
	instance := func(s otlptest.Span) string { return s.Resource["service.instance.id"] }
	if instance(top) != instance(hop) || instance(run) == instance(hop) {
		t.Errorf("the request is of %s, the hop of %s, and run by %s", instance(top), instance(hop), instance(run))
	}
	if hop.Kind != "SPAN_KIND_CLIENT" || run.Kind != "SPAN_KIND_SERVER" || hop.Attrs["licet.outcome"] == "" {
		t.Errorf("the hop is %+v, and %+v", hop, run)
	}
	for _, name := range []string{"mailbox wait", "fold", "etcd swap"} {
		if !slices.ContainsFunc(whole, func(s otlptest.Span) bool {
			return s.Name == name && otlptest.Below(whole, s, run) && instance(s) == instance(run)
		}) {
			t.Errorf("there is no %s on the node that was sent the commands: %+v", name, whole)
		}
	}
	text := strings.ToLower(traces.Text())
	for _, secret := range []string{key, "d-0-0", apiKey} {
		if strings.Contains(text, strings.ToLower(secret)) {
			t.Errorf("%s is in the traces", secret)
		}
	}
}

// TestTracesAreOffUnlessWanted, and a collector that is dead changes nothing for
// callers, nor how the service stops.
func TestTracesAreOffUnlessWanted(t *testing.T) {
	t.Parallel()
	traces := otlptest.Start(t)
	stuck, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stuck.Close() })
	for name, args := range map[string][]string{
		"off":   {"--tracing-sample-ratio", "1"},
		"stuck": {"--tracing-sample-ratio", "1", "--tracing-otlp-endpoint", "http://" + stuck.Addr().String()},
		"gone":  {"--tracing-sample-ratio", "1", "--tracing-otlp-endpoint", "http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProcess(t, t.TempDir(), append(args, "--metrics-listen", "127.0.0.1:0")...)
			key := p.grant(t, 0)
			for n := range 100 {
				traceparent, _ := traceHeader(true)
				for _, device := range []string{"a", strconv.Itoa(n)} {
					if r := p.traced(t, traceparent, "POST", "/v1/licenses/activate",
						activationOf(key, device)); r.status != http.StatusOK {
						t.Fatalf("status %d: %s", r.status, r.body)
					}
				}
			}
			if code := p.terminate(t); code != exitOK {
				t.Errorf("exit code %d", code)
			}
			if said := strings.Contains(p.log.String(), "traces are lost"); said != (name != "off") {
				t.Errorf("that traces are lost is said: %v\n%s", said, tail(p.log.String()))
			}
			if named := strings.Contains(p.log.String(), "trace_id"); named != (name != "off") {
				t.Errorf("the log names traces: %v", named)
			}
		})
	}
	if len(traces.Spans()) > 0 {
		t.Error("a service without an address for traces has sent traces")
	}
}

// TestTracingSettings: what is wrong is said at the start.
func TestTracingSettings(t *testing.T) {
	t.Parallel()
	f := func(want string, args ...string) {
		t.Helper()
		r := runLicet(t, append([]string{"dev", "--data-dir", t.TempDir()}, args...)...)
		if r.code != exitUsage || !strings.Contains(r.stderr, want) || strings.Contains(r.stderr, "hunter2") {
			t.Errorf("%v: exit code %d, %s", args, r.code, r.stderr)
		}
	}
	for _, endpoint := range []string{"collector:4318", "127.0.0.1:4318", "ftp://collector", "http://", "http://c?x=1",
		"http://c#x", "http://[::1", "/v1/traces"} {
		f("--tracing-otlp-endpoint must be a URL such as http://127.0.0.1:4318", "--tracing-otlp-endpoint", endpoint)
	}
	f("OTEL_EXPORTER_OTLP_HEADERS", "--tracing-otlp-endpoint", "https://someone:hunter2@collector")
	for _, ratio := range []string{"-0.1", "1.1", "NaN", "Inf"} {
		f("--tracing-sample-ratio is", "--tracing-sample-ratio", ratio)
	}
	f(`--tracing-sample-ratio is "some": write a number`, "--tracing-sample-ratio", "some")
}

// exemplars returns the buckets of the requests' durations, in the form that has exemplars.
func (p *process) exemplars(t *testing.T) string {
	t.Helper()
	var buckets strings.Builder
	for line := range strings.Lines(p.openMetrics(t)) {
		if strings.HasPrefix(line, "licet_http_request_duration_seconds_bucket") {
			buckets.WriteString(line)
		}
	}
	return buckets.String()
}

// openMetrics scrapes metrics in the format that has exemplars.
func (p *process) openMetrics(t *testing.T) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, logged(p.log.String(), "metrics", "url"),
		http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	r, err := p.do(request)
	if err != nil {
		t.Fatal(err)
	}
	return r.body
}

// theOne returns the only span of a name.
func theOne(t *testing.T, spans []otlptest.Span, name string) otlptest.Span {
	t.Helper()
	found := otlptest.Named(spans, name)
	if len(found) != 1 {
		t.Fatalf("%d spans are called %q: %+v", len(found), name, spans)
	}
	return found[0]
}

func wantAttrs(t *testing.T, s otlptest.Span, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if s.Attrs[name] != value {
			t.Errorf("%s: %s is %q, want %q", s.Name, name, s.Attrs[name], value)
		}
	}
}
