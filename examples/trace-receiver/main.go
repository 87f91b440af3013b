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

// maxBody is the maximum size of a batch of spans, in bytes.
const maxBody = 16 << 20

func main() {
	server := http.Server{Addr: "127.0.0.1:4318", Handler: receiver(os.Stdout), ReadTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// receiver accepts spans by OTLP over HTTP. It prints a line for each span: its trace, its id, its parent, its
// duration and its name.
func receiver(out io.Writer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		var batch collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &batch)
		}
		if err != nil {
			http.Error(w, "the body is not an OTLP request in protobuf", http.StatusBadRequest)
			return
		}
		for _, resource := range batch.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					took := time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano)
					fmt.Fprintf(out, "%x %x below %016x %9s  %s\n",
						s.TraceId, s.SpanId, s.ParentSpanId, took.Round(time.Microsecond), s.Name)
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	})
	return mux
}
