package handlers

import (
	"context"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"licet/licensing"
	"licet/metrics"
)

// NewAdmin returns the server for operators. It serves /metrics from registry, /livez, /readyz, and Go's profiles if
// profiles is set. It has no authentication and must not be public. Its requests are not traced.
func NewAdmin(cfg Config, registry prometheus.Gatherer, profiles bool) *Server {
	cfg.Tracer, cfg.Docs, cfg.Home = nil, false, nil
	scrape := fasthttpadaptor.NewFastHTTPHandler(metrics.Handler(registry))
	routes := append(probes(), route{
		method: fasthttp.MethodGet, pattern: "/metrics", traits: quiet | idempotent, scrape: scrape,
	})
	if profiles {
		routes = append(routes, profileRoutes()...)
	}
	return newServer(cfg, routes)
}

// profilesPath is the path at which Go's tools expect profiles. The index needs the trailing slash for its links.
const profilesPath = "/debug/pprof/"

// profileRoutes returns the routes of Go's profiles. They are for operators only: profiles disclose internals of the
// process and cost work. fasthttp's own handler of profiles lacks the index.
func profileRoutes() []route {
	serve := func(method, name string, handler http.HandlerFunc) route {
		return route{method: method, pattern: profilesPath + name, traits: quiet | idempotent,
			scrape: fasthttpadaptor.NewFastHTTPHandlerFunc(handler)}
	}
	return []route{
		serve(fasthttp.MethodGet, "", pprof.Index),
		serve(fasthttp.MethodGet, "cmdline", pprof.Cmdline),
		serve(fasthttp.MethodGet, "profile", pprof.Profile),
		serve(fasthttp.MethodGet, "symbol", pprof.Symbol),
		serve(fasthttp.MethodPost, "symbol", pprof.Symbol),
		serve(fasthttp.MethodGet, "trace", pprof.Trace),
		serve(fasthttp.MethodGet, "{profile}", pprof.Index), // any other profile, by its name
	}
}

// probeRoutes are the functions of the routes of probes.
type probeRoutes struct{ *Server }

// readyTimeout bounds how long a probe waits for the store.
const readyTimeout = time.Second

type health struct {
	Status string `json:"status"`
}

// readiness also says which changes the store has room for. A node without room is ready: it serves look-ups,
// validations and activations of bound devices, and no other node has more room.
type readiness struct {
	Status string `json:"status"`
	Space  string `json:"store_space"`
}

// live reports that the process runs. It does not ask the store: restarting a
// node does not repair its store.
func (s probeRoutes) live(context.Context, *call, noInput) (health, error) {
	return health{"live"}, nil
}

// ready reports whether this node takes requests: the store answers, and the
// node is not shutting down.
func (s probeRoutes) ready(ctx context.Context, _ *call, _ noInput) (readiness, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	err := s.cfg.Node.Ready(ctx)
	if ctx.Err() != nil {
		return readiness{}, licensing.ErrUnavailable
	}
	if err != nil {
		return readiness{}, err
	}
	return readiness{"ready", s.cfg.Node.Space().String()}, nil
}
