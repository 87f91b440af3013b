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
