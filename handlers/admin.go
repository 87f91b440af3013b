package handlers

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"licet/metrics"
)

// NewAdmin returns the server for operators. It serves /metrics from registry, /livez, /readyz, and Go's profiles if
// profiles is set. It has no authentication and must not be public. Its requests are not traced.
func NewAdmin(cfg Config, registry prometheus.Gatherer, profiles bool) *Server {
	cfg.Tracer = nil
	scrape := fasthttpadaptor.NewFastHTTPHandler(metrics.Handler(registry))
	routes := append(probes(), route{
		method: fasthttp.MethodGet, pattern: "/metrics", traits: quiet | idempotent, scrape: scrape,
	})
	if profiles {
		routes = append(routes, profileRoutes()...)
	}
	return newServer(cfg, routes)
}
