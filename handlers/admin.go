package handlers

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"licet/metrics"
)

// NewAdmin makes the server of the listener for operators: /metrics with what
// registry gathers, /livez and /readyz, and Go's profiles if they are wanted. It has
// no authentication and is not for the public. Nothing of it is traced.
func NewAdmin(cfg Config, registry prometheus.Gatherer, profiles bool) *Server {
	cfg.Tracer = nil
	scrape := fasthttpadaptor.NewFastHTTPHandler(metrics.Handler(registry))
	routes := append(probeRoutes(), route{
		method: fasthttp.MethodGet, pattern: "/metrics", traits: quiet | idempotent, scrape: scrape,
	})
	if profiles {
		routes = append(routes, profileRoutes()...)
	}
	return newServer(cfg, routes)
}
