package handlers

import (
	"net/http"
	"net/http/pprof"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
)

// profilesPath is where Go's tools look for profiles. The index is there, with a slash
// at its end as its links want it.
const profilesPath = "/debug/pprof/"

// profileRoutes serves Go's profiles, for operators only: they tell much of the
// process, and make it work. fasthttp has a handler of the kind, which does not know
// the index.
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
		serve(fasthttp.MethodGet, "{profile}", pprof.Index), // any other, by its name
	}
}
