package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

func TestReceiver(t *testing.T) {
	var out bytes.Buffer
	body, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
		ScopeSpans: []*trace.ScopeSpans{{Spans: []*trace.Span{{
			TraceId: bytes.Repeat([]byte{0xab}, 16), SpanId: bytes.Repeat([]byte{1}, 8), Name: "fold",
			StartTimeUnixNano: 1, EndTimeUnixNano: 1_500_001,
		}}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		body   string
		status int
	}{{string(body), http.StatusOK}, {"none", http.StatusBadRequest}} {
		answer := httptest.NewRecorder()
		receiver(&out).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/v1/traces", strings.NewReader(c.body)))
		if answer.Code != c.status {
			t.Errorf("status %d, want %d", answer.Code, c.status)
		}
	}
	if want := strings.Repeat("ab",
		16) + " 0101010101010101 below 0000000000000000     1.5ms  fold\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
