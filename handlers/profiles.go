package handlers

import (
	"net/http"
	"net/http/pprof"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
)

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
