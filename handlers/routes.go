package handlers

import (
	"iter"
	"slices"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
)

// Auth says which credentials a route reads.
type Auth int

const (
	// NoAuth routes read no credentials: probes, and pages whose address is the secret.
	NoAuth Auth = iota
	// OptionalAuth routes serve end users, who need no credentials, and scripts of any web page.
	// Credentials that are sent must be valid.
	OptionalAuth
	// RequiredAuth routes need an API key with the scopes of the route.
	RequiredAuth
)

// route is one row of the table of routes.
type route struct {
	method   string
	pattern  string // variable segments in braces; the name of the route in logs and metrics
	access   Auth
	scope    string // the required scopes, with blanks between; only with RequiredAuth
	endpoint *endpoint
	body     bodyForm
	limit    int // of the body in bytes; 0: bodyLimit. Only on patterns without variables
	// idempotent: the same request sent twice has the effect of one, so that sending
	// it again resolves an unknown outcome.
	idempotent bool
	created    bool // a success creates something: 201 instead of 200
	mayCreate  bool // a success may create something
	page       bool // answers pages for people, its errors too
	// command: the request becomes one command and nothing else, and there may be so
	// many that most must be refused cheaply; see routeRefusal. Only on POST patterns
	// without variables.
	command bool
	// activates: answers are counted by the outcome of the activation.
	activates bool
	quiet     bool // called by machines every few seconds: logged at debug level
	// scrape, instead of endpoint, writes the whole answer itself.
	scrape fasthttp.RequestHandler
}

// statuses lists the statuses of successes.
func (r *route) statuses() []int {
	switch {
	case r.created:
		return []int{fasthttp.StatusCreated}
	case r.mayCreate:
		return []int{fasthttp.StatusOK, fasthttp.StatusCreated}
	case r.page && r.body == formBody:
		return []int{fasthttp.StatusSeeOther}
	default:
		return []int{fasthttp.StatusOK}
	}
}

// get, put, patch, remove and post make routes for callers with an API key. do is the function of
// the route; In is its request type. All but post make idempotent routes.
func get[In, Out any](pattern, scope string, do function[In, Out]) route {
	return idempotent(withKey(fasthttp.MethodGet, pattern, scope, do))
}

func put[In, Out any](pattern, scope string, do function[In, Out]) route {
	return idempotent(withKey(fasthttp.MethodPut, pattern, scope, do))
}

func patch[In, Out any](pattern, scope string, do function[In, Out]) route {
	return idempotent(withKey(fasthttp.MethodPatch, pattern, scope, do))
}

func remove[In, Out any](pattern, scope string, do function[In, Out]) route {
	return idempotent(withKey(fasthttp.MethodDelete, pattern, scope, do))
}

func post[In, Out any](pattern, scope string, do function[In, Out]) route {
	return withKey(fasthttp.MethodPost, pattern, scope, do)
}

func withKey[In, Out any](method, pattern, scope string, do function[In, Out]) route {
	r := newRoute(method, pattern, do)
	r.access, r.scope = RequiredAuth, scope
	return r
}

// command makes a route for end users; see route.command.
func command[In, Out any](pattern string, do function[In, Out]) route {
	r := idempotent(newRoute(fasthttp.MethodPost, pattern, do))
	r.access, r.limit, r.command = OptionalAuth, openBodyLimit, true
	return r
}

// page makes a route for people.
func page[In any](method, pattern string, do function[In, document]) route {
	r := idempotent(newRoute(method, pattern, do))
	r.page = true
	return r
}

func newRoute[In, Out any](method, pattern string, do function[In, Out]) route {
	e := serve(do)
	return route{method: method, pattern: pattern, endpoint: e, body: e.request.body}
}

func idempotent(r route) route {
	r.idempotent = true
	return r
}

func creating(r route) route {
	r.created = true
	return r
}

func maybeCreating(r route) route {
	r.mayCreate = true
	return r
}

func activating(r route) route {
	r.activates = true
	return r
}

func quiet(r route) route {
	r.quiet = true
	return r
}

// scopes lists the scopes that an API key needs, all of them.
func (r *route) scopes() iter.Seq[string] { return strings.FieldsSeq(r.scope) }

// apiRoutes is the table of what the public listener serves. Each row names the request type, the
// pattern, the scope and the function of a route.
func apiRoutes() []route {
	return append([]route{
		activating(command[activationRequest]("/v1/licenses/activate", (*Server).activate)),
		command[validationRequest]("/v1/licenses/validate", (*Server).validateLicense),
		command[deactivationRequest]("/v1/licenses/deactivate", (*Server).deactivate),

		creating(post[grant]("/v1/licenses", "licenses", (*Server).grantLicenses)),
		get[licenseQuery]("/v1/licenses", "licenses:read", (*Server).listLicenses),
		get[licensePath]("/v1/licenses/{license_key}", "licenses:read", (*Server).getLicense),
		patch[licenseUpdate]("/v1/licenses/{license_key}", "licenses", (*Server).updateLicense),
		idempotent(post[licenseChange]("/v1/licenses/{license_key}/suspend", "licenses", (*Server).suspendLicense)),
		idempotent(post[licenseChange]("/v1/licenses/{license_key}/reinstate", "licenses", (*Server).reinstateLicense)),
		idempotent(post[licenseChange]("/v1/licenses/{license_key}/revoke", "licenses", (*Server).revokeLicense)),
		post[renewal]("/v1/licenses/{license_key}/renew", "licenses", (*Server).renewLicense),
		get[deviceQuery]("/v1/licenses/{license_key}/devices", "licenses:read", (*Server).listDevices),
		get[licenseHistory]("/v1/licenses/{license_key}/events", "licenses:read", (*Server).listLicenseEvents),
		remove[devicePath]("/v1/licenses/{license_key}/devices/{device_id}", "licenses", (*Server).removeDevice),

		get[productQuery]("/v1/products", "products:read", (*Server).listProducts),
		maybeCreating(put[productDescription]("/v1/products/{product_id}", "products", (*Server).putProduct)),
		get[existingProduct]("/v1/products/{product_id}", "products:read", (*Server).getProduct),
		remove[existingProduct]("/v1/products/{product_id}", "products", (*Server).deleteProduct),

		creating(post[newOrder]("/v1/orders", "orders", (*Server).createOrder)),
		get[orderQuery]("/v1/orders", "orders:read", (*Server).listOrders),
		get[orderPath]("/v1/orders/{order_no}", "orders:read", (*Server).getOrder),
		get[orderHistory]("/v1/orders/{order_no}/events", "orders:read", (*Server).listOrderEvents),
		idempotent(post[orderChange]("/v1/orders/{order_no}/cancel", "orders", (*Server).cancelOrder)),
		idempotent(post[orderChange]("/v1/orders/{order_no}/refund", "orders", (*Server).refundOrder)),
		idempotent(post[buyerRedaction]("/v1/redactions", "orders licenses", (*Server).redactBuyer)),

		get[feedQuery]("/v1/events", "events:read", (*Server).listEvents),
		get[eventPath]("/v1/events/{event_id}", "events:read", (*Server).getEvent),

		creating(post[newWebhook]("/v1/webhook_endpoints", "webhooks", (*Server).createWebhook)),
		get[webhookQuery]("/v1/webhook_endpoints", "webhooks:read", (*Server).listWebhooks),
		get[webhookPath]("/v1/webhook_endpoints/{endpoint_id}", "webhooks:read", (*Server).getWebhook),
		patch[webhookUpdate]("/v1/webhook_endpoints/{endpoint_id}", "webhooks", (*Server).updateWebhook),
		remove[webhookPath]("/v1/webhook_endpoints/{endpoint_id}", "webhooks", (*Server).deleteWebhook),
		post[webhookRotation]("/v1/webhook_endpoints/{endpoint_id}/rotate", "webhooks", (*Server).rotateWebhook),
		idempotent(post[webhookTest]("/v1/webhook_endpoints/{endpoint_id}/test", "webhooks", (*Server).testWebhook)),
		get[deliveryQuery]("/v1/webhook_endpoints/{endpoint_id}/deliveries", "webhooks:read", (*Server).listDeliveries),
		post[replayRequest]("/v1/webhook_endpoints/{endpoint_id}/replay", "webhooks", (*Server).replayWebhook),

		creating(post[newAPIKey]("/v1/keys", "keys", (*Server).createAPIKey)),
		get[apiKeyQuery]("/v1/keys", "keys:read", (*Server).listAPIKeys),
		get[apiKeyPath]("/v1/keys/{key_id}", "keys:read", (*Server).getAPIKey),
		remove[apiKeyPath]("/v1/keys/{key_id}", "keys", (*Server).revokeAPIKey),
		post[apiKeyRotation]("/v1/keys/{key_id}/rotate", "keys", (*Server).rotateAPIKey),

		page[payPagePath](fasthttp.MethodGet, "/pay/{order_no}/{token}", (*Server).showOrder),
		page[payForm](fasthttp.MethodPost, "/pay/{order_no}/{token}", (*Server).settleOrder),
	}, probeRoutes()...)
}

// probeRoutes is what both listeners serve for an orchestrator.
func probeRoutes() []route {
	return []route{
		quiet(idempotent(newRoute[noInput](fasthttp.MethodGet, "/livez", (*Server).live))),
		quiet(idempotent(newRoute[noInput](fasthttp.MethodGet, "/readyz", (*Server).ready))),
	}
}

// resource is all routes of one pattern.
type resource struct {
	pattern string
	routes  map[string]*route // by method
	fixed   bool              // the pattern has no variable segments
	allow   string            // the header
	open    bool              // scripts of any web page may call; see OptionalAuth
	page    bool
	quiet   bool
}

// addRoutes hands every pattern to the router, for all methods: a known path with an unknown method
// is another error than an unknown path.
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
		res.open = res.open || r.access == OptionalAuth
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

// matchedResource is the key under which the router leaves the resource.
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
