package handlers

import (
	"reflect"
	"slices"

	"licet/licensing"
)

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
// without its method, belongs to no route: see routeTable.noRoute and errMethodNotAllowed.
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
		if limits.Format == formatLicenseKey {
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
		all = append(all, licensing.ReasonUnavailable, licensing.ReasonOverloaded, licensing.ReasonRateLimited)
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
