// Command trace-receiver prints the spans that a node sends: a collector to look at
// traces with, where no other is at hand.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// maxBody is how large a batch of spans may be.
const maxBody = 16 << 20

func main() {
	server := http.Server{Addr: "127.0.0.1:4318", Handler: receiver(os.Stdout), ReadTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// receiver prints a line for each span: trace, span, the one above it, how long, name.
func receiver(out io.Writer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		var batch collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &batch)
		}
		if err != nil {
			http.Error(w, "this is no OTLP in protobuf", http.StatusBadRequest)
			return
		}
		for _, resource := range batch.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					took := time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano)
					fmt.Fprintf(out, "%x %x below %016x %9s  %s\n", s.TraceId, s.SpanId, s.ParentSpanId, took.Round(time.Microsecond), s.Name)
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	})
	return mux
}
