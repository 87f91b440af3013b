package handlers

import (
	"iter"
	"slices"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
)

// access tells whose credentials a route looks at.
type access int

const (
	// anyone: nobody's. A probe, or a page that is protected by its address.
	anyone access = iota
	// open: an end user needs none, and scripts of any web page may call. What
	// is sent all the same must be good.
	open
	// keyed: an API key with the route's scope.
	keyed
)

// bodyForm tells what a route reads as its body.
type bodyForm int

const (
	noBody bodyForm = iota
	jsonBody
	formBody
)

// handler does the work of one route. It answers the value that goes into the
// envelope, or a document that is sent as it is.
type handler func(*Server, *request) (any, error)

// route is one row of the table of routes.
type route struct {
	method  string
	pattern string // variable segments in braces; the name of the route in logs and metrics
	access  access
	scope   string // of a keyed route; where it needs several, with blanks between
	body    bodyForm
	limit   int // of the body; 0: bodyLimit. Only on patterns without variables
	// idempotent: the very same request sent twice does what it does once, so
	// that an unknown outcome may be resolved by sending it again.
	idempotent bool
	created    bool // a success makes something: 201 instead of 200
	page       bool // answers pages for people, its errors too
	// command: becomes one command and nothing else, and so many may come that
	// most must be refused cheaply; see refusal. Only on POST patterns without
	// variables.
	command bool
	// activates: its answers are counted by what they tell of the activation.
	activates bool
	quiet     bool // called by machines every few seconds: logged at debug level
	handle    handler
	// scrape, in place of handle, writes its answer itself.
	scrape fasthttp.RequestHandler
}

// scopes are those that the key must have, all of them; none but on keyed routes.
func (r *route) scopes() iter.Seq[string] { return strings.FieldsSeq(r.scope) }

// apiRoutes is the table of what the public listener serves.
func apiRoutes() []route {
	return append([]route{
		{method: "POST", pattern: "/v1/licenses/activate", access: open, body: jsonBody, limit: openBodyLimit,
			idempotent: true, command: true, activates: true, handle: (*Server).activate},
		{method: "POST", pattern: "/v1/licenses/validate", access: open, body: jsonBody, limit: openBodyLimit,
			idempotent: true, command: true, handle: (*Server).validateLicense},
		{method: "POST", pattern: "/v1/licenses/deactivate", access: open, body: jsonBody, limit: openBodyLimit,
			idempotent: true, command: true, handle: (*Server).deactivate},
		{method: "POST", pattern: "/v1/licenses", access: keyed, scope: "licenses", body: jsonBody,
			created: true, handle: (*Server).grantLicenses},
		{method: "GET", pattern: "/v1/licenses", access: keyed, scope: "licenses:read",
			idempotent: true, handle: (*Server).listLicenses},
		{method: "GET", pattern: "/v1/licenses/{license_key}", access: keyed, scope: "licenses:read",
			idempotent: true, handle: (*Server).getLicense},
		{method: "PATCH", pattern: "/v1/licenses/{license_key}", access: keyed, scope: "licenses", body: jsonBody,
			idempotent: true, handle: (*Server).updateLicense},
		{method: "POST", pattern: "/v1/licenses/{license_key}/suspend", access: keyed, scope: "licenses", body: jsonBody,
			idempotent: true, handle: (*Server).suspendLicense},
		{method: "POST", pattern: "/v1/licenses/{license_key}/reinstate", access: keyed, scope: "licenses", body: jsonBody,
			idempotent: true, handle: (*Server).reinstateLicense},
		{method: "POST", pattern: "/v1/licenses/{license_key}/revoke", access: keyed, scope: "licenses", body: jsonBody,
			idempotent: true, handle: (*Server).revokeLicense},
		{method: "POST", pattern: "/v1/licenses/{license_key}/renew", access: keyed, scope: "licenses", body: jsonBody,
			handle: (*Server).renewLicense},
		{method: "GET", pattern: "/v1/licenses/{license_key}/devices", access: keyed, scope: "licenses:read",
			idempotent: true, handle: (*Server).listDevices},
		{method: "GET", pattern: "/v1/licenses/{license_key}/events", access: keyed, scope: "licenses:read",
			idempotent: true, handle: (*Server).listLicenseEvents},
		{method: "DELETE", pattern: "/v1/licenses/{license_key}/devices/{device_id}", access: keyed, scope: "licenses",
			idempotent: true, handle: (*Server).removeDevice},
		{method: "GET", pattern: "/v1/products", access: keyed, scope: "products:read",
			idempotent: true, handle: (*Server).listProducts},
		{method: "PUT", pattern: "/v1/products/{product_id}", access: keyed, scope: "products", body: jsonBody,
			idempotent: true, handle: (*Server).putProduct},
		{method: "GET", pattern: "/v1/products/{product_id}", access: keyed, scope: "products:read",
			idempotent: true, handle: (*Server).getProduct},
		{method: "DELETE", pattern: "/v1/products/{product_id}", access: keyed, scope: "products",
			idempotent: true, handle: (*Server).deleteProduct},
		{method: "POST", pattern: "/v1/orders", access: keyed, scope: "orders", body: jsonBody,
			created: true, handle: (*Server).createOrder},
		{method: "GET", pattern: "/v1/orders", access: keyed, scope: "orders:read",
			idempotent: true, handle: (*Server).listOrders},
		{method: "GET", pattern: "/v1/orders/{order_no}", access: keyed, scope: "orders:read",
			idempotent: true, handle: (*Server).getOrder},
		{method: "GET", pattern: "/v1/orders/{order_no}/events", access: keyed, scope: "orders:read",
			idempotent: true, handle: (*Server).listOrderEvents},
		{method: "POST", pattern: "/v1/orders/{order_no}/cancel", access: keyed, scope: "orders", body: jsonBody,
			idempotent: true, handle: (*Server).cancelOrder},
		{method: "POST", pattern: "/v1/orders/{order_no}/refund", access: keyed, scope: "orders", body: jsonBody,
			idempotent: true, handle: (*Server).refundOrder},
		{method: "POST", pattern: "/v1/redactions", access: keyed, scope: "orders licenses", body: jsonBody,
			idempotent: true, handle: (*Server).redactBuyer},
		{method: "GET", pattern: "/v1/events", access: keyed, scope: "events:read",
			idempotent: true, handle: (*Server).listEvents},
		{method: "GET", pattern: "/v1/events/{event_id}", access: keyed, scope: "events:read",
			idempotent: true, handle: (*Server).getEvent},
		{method: "POST", pattern: "/v1/webhook_endpoints", access: keyed, scope: "webhooks", body: jsonBody,
			created: true, handle: (*Server).createWebhook},
		{method: "GET", pattern: "/v1/webhook_endpoints", access: keyed, scope: "webhooks:read",
			idempotent: true, handle: (*Server).listWebhooks},
		{method: "GET", pattern: "/v1/webhook_endpoints/{endpoint_id}", access: keyed, scope: "webhooks:read",
			idempotent: true, handle: (*Server).getWebhook},
		{method: "PATCH", pattern: "/v1/webhook_endpoints/{endpoint_id}", access: keyed, scope: "webhooks", body: jsonBody,
			idempotent: true, handle: (*Server).updateWebhook},
		{method: "DELETE", pattern: "/v1/webhook_endpoints/{endpoint_id}", access: keyed, scope: "webhooks",
			idempotent: true, handle: (*Server).deleteWebhook},
		{method: "POST", pattern: "/v1/webhook_endpoints/{endpoint_id}/rotate", access: keyed, scope: "webhooks", body: jsonBody,
			handle: (*Server).rotateWebhook},
		{method: "POST", pattern: "/v1/webhook_endpoints/{endpoint_id}/test", access: keyed, scope: "webhooks", body: jsonBody,
			idempotent: true, handle: (*Server).testWebhook},
		{method: "GET", pattern: "/v1/webhook_endpoints/{endpoint_id}/deliveries", access: keyed, scope: "webhooks:read",
			idempotent: true, handle: (*Server).listDeliveries},
		{method: "POST", pattern: "/v1/webhook_endpoints/{endpoint_id}/replay", access: keyed, scope: "webhooks", body: jsonBody,
			handle: (*Server).replayWebhook},
		{method: "POST", pattern: "/v1/keys", access: keyed, scope: "keys", body: jsonBody,
			created: true, handle: (*Server).createAPIKey},
		{method: "GET", pattern: "/v1/keys", access: keyed, scope: "keys:read",
			idempotent: true, handle: (*Server).listAPIKeys},
		{method: "GET", pattern: "/v1/keys/{key_id}", access: keyed, scope: "keys:read",
			idempotent: true, handle: (*Server).getAPIKey},
		{method: "DELETE", pattern: "/v1/keys/{key_id}", access: keyed, scope: "keys",
			idempotent: true, handle: (*Server).revokeAPIKey},
		{method: "POST", pattern: "/v1/keys/{key_id}/rotate", access: keyed, scope: "keys", body: jsonBody,
			handle: (*Server).rotateAPIKey},
		{method: "GET", pattern: "/pay/{order_no}/{token}", page: true,
			idempotent: true, handle: (*Server).showOrder},
		{method: "POST", pattern: "/pay/{order_no}/{token}", page: true, body: formBody,
			idempotent: true, handle: (*Server).settleOrder},
	}, probeRoutes()...)
}

// probeRoutes is what both listeners serve for an orchestrator.
func probeRoutes() []route {
	return []route{
		{method: "GET", pattern: "/livez", quiet: true, idempotent: true, handle: (*Server).live},
		{method: "GET", pattern: "/readyz", quiet: true, idempotent: true, handle: (*Server).ready},
	}
}

// resource is all routes of one pattern.
type resource struct {
	pattern string
	routes  map[string]*route // by method
	fixed   bool              // the pattern has no variable segments
	allow   string            // the header
	open    bool              // scripts of any web page may call
	page    bool
	quiet   bool
}

// addRoutes hands every pattern to the router, for any method: the path
// decides what is meant, and then the method whether it has that.
func (s *Server) addRoutes(routes []route) {
	resources := make(map[string]*resource)
	s.bodyLimits = make(map[string]int)
	s.fixed = make(map[string]*resource)
	for i := range routes {
		r := &routes[i]
		res := resources[r.pattern]
		if res == nil {
			res = &resource{pattern: r.pattern, routes: make(map[string]*route)}
			resources[r.pattern] = res
		}
		res.routes[r.method] = r
		res.open = res.open || r.access == open
		res.page = res.page || r.page
		res.quiet = res.quiet || r.quiet
		if r.limit != 0 {
			s.bodyLimits[r.pattern] = r.limit
		}
	}
	s.matcher = router.New()
	for pattern, res := range resources {
		res.allow = res.methods()
		if res.fixed = !strings.Contains(pattern, "{"); res.fixed {
			s.fixed[pattern] = res
		}
		s.matcher.ANY(res.pattern, func(ctx *fasthttp.RequestCtx) { ctx.SetUserValue(matchedResource{}, res) })
	}
}

// matchedResource is the key under which the router leaves what it found.
type matchedResource struct{}

// match finds the resource of a raw path, or nil. The values of its variable
// segments are left in ctx, still encoded. Only the router's search is used:
// its handler would search the path that fasthttp made of the target.
func (s *Server) match(ctx *fasthttp.RequestCtx, path string) *resource {
	if !plainPath(path) {
		return nil
	}
	found, _ := s.matcher.Lookup(router.MethodWild, path, ctx)
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
