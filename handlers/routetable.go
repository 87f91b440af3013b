package handlers

import (
	"net/url"
	"slices"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
)

// resource is all routes of one pattern.
type resource struct {
	pattern string
	parts   []string          // the segments of the pattern
	routes  map[string]*route // by method
	fixed   bool              // the pattern has no variable segments
	allow   string            // the header
	open    bool              // scripts of any web page may call; see OptionalAuth
	page    bool
	quiet   bool
}

// routeTable finds the resource of a request target. It never changes.
type routeTable struct {
	matcher    *router.Router
	fixed      map[string]*resource // by path; resources without variables in their path
	bodyLimits map[string]int       // by path; limits other than bodyLimit
	resources  []*resource          // sorted by pattern, without /, which no path resembles
}

// newRouteTable hands every pattern to the router, for all methods: a known path with an unknown method
// is another error than an unknown path.
func newRouteTable(routes []route) *routeTable {
	t := &routeTable{
		matcher: router.New(), fixed: make(map[string]*resource), bodyLimits: make(map[string]int),
	}
	resources := make(map[string]*resource)
	for i := range routes {
		r := &routes[i]
		res := resources[r.pattern]
		if res == nil {
			res = &resource{
				pattern: r.pattern, parts: strings.Split(r.pattern, "/"), routes: make(map[string]*route),
			}
			resources[r.pattern] = res
		}
		res.routes[r.method] = r
		res.open = res.open || r.access == OptionalAuth
		res.page = res.page || r.page
		res.quiet = res.quiet || r.is(quiet)
		if r.limit != 0 {
			t.bodyLimits[r.pattern] = r.limit
		}
	}
	for pattern, res := range resources {
		if get := res.routes[fasthttp.MethodGet]; get != nil && res.routes[fasthttp.MethodHead] == nil {
			res.routes[fasthttp.MethodHead] = get // fasthttp leaves the body out; RFC 9110, section 9.3.2
		}
		res.allow = res.methods()
		if res.fixed = !strings.Contains(pattern, "{"); res.fixed {
			t.fixed[pattern] = res
		}
		if pattern != "/" {
			t.resources = append(t.resources, res)
		}
		t.matcher.ANY(res.pattern, func(ctx *fasthttp.RequestCtx) { ctx.SetUserValue(matchedResource{}, res) })
	}
	slices.SortFunc(t.resources, func(a, b *resource) int { return slices.Compare(a.parts, b.parts) })
	return t
}

// matchedResource is the key under which the router leaves the resource.
type matchedResource struct{}

// find finds the resource that a request target names, and returns the target's path and query.
func (t *routeTable) find(r *request, target []byte) (path, query string) {
	if res := t.fixed[string(target)]; res != nil {
		r.resource = res
		return res.pattern, ""
	}
	path, query, named := splitTarget(string(target))
	if named {
		r.resource = t.match(r.fast, path)
	}
	return path, query
}

// match returns the resource of a raw path, or nil. It leaves the values of the
// path's variables in ctx, still encoded. match only uses the router's lookup: the
// router's handler would look up the path that fasthttp decoded and cleaned.
func (t *routeTable) match(ctx *fasthttp.RequestCtx, path string) *resource {
	if res := t.fixed[path]; res != nil {
		return res
	}
	if !plainPath(path) {
		return nil
	}
	found, _ := t.matcher.Lookup(router.MethodWild, path, ctx)
	if found == nil {
		return nil
	}
	found(ctx)
	res, _ := ctx.UserValue(matchedResource{}).(*resource)
	return res
}

func (r *resource) methods() string {
	var methods []string
	for method := range r.routes {
		methods = append(methods, method)
	}
	if r.open {
		methods = append(methods, fasthttp.MethodOptions)
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

// bodyLimit returns the body limit of the path that a head names.
func (t *routeTable) bodyLimit(h *fasthttp.RequestHeader) int {
	if limit, special := t.bodyLimits[string(h.RequestURI())]; special {
		return limit
	}
	path, _, _ := splitTarget(string(h.RequestURI()))
	if limit, special := t.bodyLimits[path]; special {
		return limit
	}
	return bodyLimit
}

// splitTarget returns the path and the query of a request target, both as sent. It reports false for a target without
// a path ("*", an authority), and for a target with a fragment, which no client may send.
//
// splitTarget does not use fasthttp's path, which is decoded and cleaned: an encoded slash in a device id would become
// a separator.
func splitTarget(target string) (path, query string, ok bool) {
	if strings.Contains(target, "#") {
		return "", "", false
	}
	target, query, _ = strings.Cut(target, "?")
	if strings.HasPrefix(target, "/") {
		return target, query, true
	}
	scheme, rest, found := strings.Cut(target, "://")
	if !found || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", "", false
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return "/", query, true
	}
	return rest[slash:], query, true
}

// plainPath reports whether a raw path has no empty segment and no dot segment. Any other path names no route: the
// server does not normalize paths.
func plainPath(path string) bool {
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// pathValue decodes a variable segment of a raw path, once.
func pathValue(segment string) (string, bool) {
	value, err := url.PathUnescape(segment)
	return value, err == nil
}

// queryValue returns a parameter of a raw query. For a parameter that is repeated or can't be decoded, given is true
// and ok is false.
func queryValue(query, name string) (value string, given, ok bool) {
	for pair := range strings.SplitSeq(query, "&") {
		rawKey, rawValue, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(rawKey)
		if err != nil || key != name {
			continue
		}
		if given {
			return "", true, false
		}
		value, err = url.QueryUnescape(rawValue)
		given, ok = true, err == nil
	}
	return value, given, ok
}
