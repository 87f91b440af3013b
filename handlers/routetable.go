package handlers

import (
	"cmp"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"licet/licensing"
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

// Route describes a route of the API: what it reads, and what it answers.
type Route struct {
	Method, Pattern string
	Auth            Auth
	Scopes          []string
	MediaType       string // of the body; empty: no body
	OptionalBody    bool
	Inputs          []Input
	IdempotencyKey  bool     // the header Idempotency-Key is read
	Headers         []string // further headers of requests that the function of the route reads
	Request         reflect.Type
	Response        reflect.Type // the data of the envelope, or the whole answer of a route without envelope
	Page            bool         // answers HTML instead of the envelope
	Media           string       // the media type of another answer without the envelope; else empty
	Statuses        []int        // of successes
	BodyLimit       int          // in bytes
	Refusals        []Refusal    // every refusal that a request to the route may get, by code
}

// Refusal is the HTTP form of a reason.
type Refusal struct {
	Reason     licensing.Reason
	Status     int
	Code       int  // in the envelope
	RetryAfter bool // the response has the header Retry-After
}

// Input is a variable of the path, a parameter of the query, or a member of the body.
type Input struct {
	Name string
	In   Location
	Kind Kind
	Limits
}

// Routes lists the routes of the public listener, including routes that only some services have.
func Routes() []Route {
	var routes []Route
	reasons := kinds()
	for _, r := range slices.Concat(apiRoutes(), referenceRoutes(), homeRoutes()) {
		of := r.endpoint.request
		request := reflect.New(of.typ).Interface()
		_, once := request.(keyTaker)
		described := Route{
			Method: r.method, Pattern: r.pattern, Auth: r.access, Scopes: slices.Collect(r.scopes()),
			MediaType: r.body.mediaType(), OptionalBody: of.optionalBody, IdempotencyKey: once,
			Headers: r.headers,
			Request: of.typ, Response: r.endpoint.answer, Page: r.page, Media: r.media, Statuses: r.statuses(),
			BodyLimit: cmp.Or(r.limit, bodyLimit), Refusals: reasons.refusals(r.reasons()),
		}
		limits := limitsOf(request)
		for _, f := range of.inputs {
			in := Input{Name: f.name, In: f.in, Kind: f.kind, Limits: limits[f.name]}
			if in.Required = in.Required || in.In == InPath; in.Bounded && in.Kind == String {
				in.Kind = Integer
			}
			described.Inputs = append(described.Inputs, in)
		}
		routes = append(routes, described)
	}
	return routes
}

// Refusals lists all refusals, by code.
func Refusals() []Refusal {
	all := kinds()
	return all.refusals(slices.Collect(maps.Keys(all)))
}

// refusals returns the HTTP form of reasons, by code.
func (t errorTable) refusals(reasons []licensing.Reason) []Refusal {
	var refusals []Refusal
	for _, reason := range reasons {
		k := t[reason]
		refusals = append(refusals, Refusal{reason, k.status, k.code(), k.retry != never})
	}
	slices.SortFunc(refusals, func(a, b Refusal) int { return cmp.Compare(a.Code, b.Code) })
	return refusals
}

// EventForm returns the type of an event, as responses and webhooks show it, and the type of its data.
func EventForm() (of, data reflect.Type) {
	return reflect.TypeFor[event](), reflect.TypeFor[eventData]()
}

// refuses returns the route with the reasons for which its function refuses requests. reasons adds the reasons of the
// steps that all routes share.
func (r route) refuses(own ...licensing.Reason) route {
	r.own = own
	return r
}

// absences are the reasons for which a route refuses a path that names nothing, by the variable that names it.
// product_id is not here: PUT creates the product.
var absences = map[string]licensing.Reason{
	"license_key": licensing.ReasonLicenseNotFound,
	"order_no":    licensing.ReasonOrderNotFound,
	"endpoint_id": licensing.ReasonWebhookNotFound,
	"event_id":    licensing.ReasonEventNotFound,
	"key_id":      licensing.ReasonAPIKeyNotFound,
}

// reasons lists every reason for which a request to the route may fail. A request that names no route, or a route
// without its method, belongs to no route: see routeTable.noRoute and routeTable.noMethod.
func (r *route) reasons() []licensing.Reason {
	all := append([]licensing.Reason{
		reasonMalformedRequest, reasonBodyTooLarge, reasonURITooLong, reasonHeadersTooLarge, licensing.ReasonInternal,
	}, r.own...)
	of := r.endpoint.request
	request := reflect.New(of.typ).Interface()
	for _, f := range of.inputs {
		if f.in == InPath {
			all = append(all, reasonNotFound) // the value can't be decoded
			if absent, named := absences[f.name]; named {
				all = append(all, absent)
			}
		}
	}
	for _, limits := range limitsOf(request) {
		if limits.Format == formatLicenseKey || limits.Format == formatLicense {
			all = append(all, licensing.ReasonInvalidLicenseKey)
		}
		all = append(all, licensing.ReasonInvalidField)
	}
	if _, once := request.(keyTaker); once {
		all = append(all, licensing.ReasonInvalidField, licensing.ReasonRequestInProgress,
			licensing.ReasonIdempotencyKeyReused)
	}
	if r.body != noBody {
		all = append(all, reasonUnsupportedMediaType)
	}
	if !r.is(quiet) {
		all = append(all, licensing.ReasonUnavailable, licensing.ReasonOverloaded)
		if r.media == "" { // files have no limit
			all = append(all, licensing.ReasonRateLimited)
		}
	}
	if r.access != NoAuth {
		all = append(all, reasonUnauthenticated, reasonInvalidSignature, reasonSignatureRequired)
	}
	if r.access == RequiredAuth {
		all = append(all, licensing.ReasonForbidden, licensing.ReasonInvalidField) // also for an unknown parameter
	}
	if r.is(grows) {
		all = append(all, licensing.ReasonAccountBudgetReached)
	}
	if r.method != "GET" {
		all = append(all, licensing.ReasonOutcomeUnknown)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
