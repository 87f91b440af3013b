package handlers

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"licet/licensing"
)

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
