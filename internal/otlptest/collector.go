package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Collector keeps the spans that it receives.
type Collector struct {
	URL string

	mu      sync.Mutex
	spans   []Span
	text    []byte
	headers []http.Header
}

// Span is a received span.
type Span struct {
	Name               string
	Kind               string
	TraceID            string
	ID, Parent         string // Parent is empty where there is none
	Start, End         time.Time
	Attrs              map[string]string // numbers in decimal
	Resource           map[string]string
	Events             []string
	Links              []Link
	Failed             bool
	Tracestate         string
	DroppedAttrsOrMore bool
}

// Link names a span of any trace.
type Link struct{ TraceID, ID string }

// Start starts a collector. The end of the test stops it.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := new(Collector)
	server := httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" ||
		r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "this is no OTLP", http.StatusNotFound)
		return
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	raw, err := io.ReadAll(body)
	var request collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(raw, &request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, err := protojson.Marshal(&request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.keep(&request, text, r.Header)
	answer, _ := proto.Marshal(new(collector.ExportTraceServiceResponse)) // it is empty
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

func (c *Collector) keep(request *collector.ExportTraceServiceRequest, text []byte, head http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(append(c.text, text...), '\n')
	c.headers = append(c.headers, head.Clone())
	for _, of := range request.ResourceSpans {
		resource := attrs(of.Resource.GetAttributes())
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, read(s, resource))
			}
		}
	}
}

func read(s *trace.Span, resource map[string]string) Span {
	span := Span{
		Name: s.Name, Kind: s.Kind.String(), Resource: resource,
		TraceID: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId),
		Parent: hex.EncodeToString(s.ParentSpanId),
		Start:  time.Unix(0, int64(s.StartTimeUnixNano)), End: time.Unix(0, int64(s.EndTimeUnixNano)),
		Attrs: attrs(s.Attributes), Tracestate: s.TraceState,
		Failed:             s.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR,
		DroppedAttrsOrMore: s.DroppedAttributesCount+s.DroppedEventsCount+s.DroppedLinksCount > 0,
	}
	for _, e := range s.Events {
		span.Events = append(span.Events, e.Name)
	}
	for _, l := range s.Links {
		span.Links = append(span.Links, Link{hex.EncodeToString(l.TraceId), hex.EncodeToString(l.SpanId)})
	}
	return span
}

func attrs(list []*common.KeyValue) map[string]string {
	all := make(map[string]string, len(list))
	for _, a := range list {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			all[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			all[a.Key] = strconv.FormatInt(v.IntValue, 10)
		default:
			all[a.Key] = a.Value.String()
		}
	}
	return all
}

// Spans returns the spans received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Trace returns the spans of a trace received so far.
func (c *Collector) Trace(id string) []Span {
	return slices.DeleteFunc(c.Spans(), func(s Span) bool { return s.TraceID != id })
}

// Text returns everything received so far, as JSON.
func (c *Collector) Text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.text)
}

// Headers returns the headers of the requests so far.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.headers)
}

// Named returns the spans with a name.
func Named(spans []Span, name string) (found []Span) {
	for _, s := range spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// Below reports whether a span is a descendant of another span of the same trace.
func Below(spans []Span, s, above Span) bool {
	for s.Parent != "" {
		if s.Parent == above.ID {
			return true
		}
		at := slices.IndexFunc(spans, func(other Span) bool { return other.ID == s.Parent })
		if at < 0 {
			return false
		}
		s = spans[at]
	}
	return false
}
