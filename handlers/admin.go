package handlers

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"licet/metrics"
)

// NewAdmin makes the server of the listener for operators: /metrics with what
// registry gathers, /livez and /readyz. It has no authentication and is not for
// the public.
func NewAdmin(cfg Config, registry prometheus.Gatherer) *Server {
	scrape := fasthttpadaptor.NewFastHTTPHandler(metrics.Handler(registry))
	return newServer(cfg, append(probeRoutes(), route{
		method: fasthttp.MethodGet, pattern: "/metrics", quiet: true, idempotent: true, scrape: scrape,
	}))
}
