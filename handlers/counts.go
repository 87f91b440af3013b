package handlers

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"licet/licensing"
	"licet/metrics"
)

// count creates the counters of responses. The series of success and of server errors exist from the start, so that a
// rate includes the first error.
func (s *Server) count(routes []route) {
	s.times = metrics.NewRequestTimes(s.cfg.Metrics)
	for i := range routes {
		r := &routes[i]
		status := fasthttp.StatusOK
		if r.is(creates) {
			status = fasthttp.StatusCreated
		}
		s.times.Expect(r.method, r.pattern, status, 0)
		for _, reason := range []licensing.Reason{
			licensing.ReasonInternal, licensing.ReasonUnavailable,
			licensing.ReasonOverloaded, licensing.ReasonOutcomeUnknown,
		} {
			k := s.errors[reason]
			s.times.Expect(r.method, r.pattern, k.status, k.code())
		}
	}
	if slices.ContainsFunc(routes, func(r route) bool { return r.is(activates) }) {
		s.activations = newActivations(s.cfg.Metrics, s.errors)
	}
}

// activations counts the responses to activations. Only the node that responds to the client counts, whatever other
// nodes did for the request.
type activations struct {
	bound, again prometheus.Counter
	failed       map[int]prometheus.Counter // by the code in the envelope; never changes
	other        prometheus.Counter         // unexpected errors
}

// newActivations returns the counters, at 0.
func newActivations(m *metrics.Metrics, reasons errorTable) activations {
	a := activations{
		bound:  m.Activations.WithLabelValues("bound"),
		again:  m.Activations.WithLabelValues("again"),
		failed: make(map[int]prometheus.Counter),
		other:  m.Activations.WithLabelValues("other"),
	}
	for _, reason := range activationFailures() {
		a.failed[reasons[reason].code()] = m.Activations.WithLabelValues(string(reason))
	}
	return a
}

// activationFailures lists the expected reasons for which an activation fails.
func activationFailures() []licensing.Reason {
	return []licensing.Reason{
		reasonMalformedRequest, reasonUnauthenticated, reasonInvalidSignature, reasonSignatureRequired,
		reasonBodyTooLarge, reasonURITooLong, reasonUnsupportedMediaType, reasonHeadersTooLarge,
		licensing.ReasonInvalidLicenseKey, licensing.ReasonInvalidField, licensing.ReasonRateLimited,
		licensing.ReasonLicenseNotFound, licensing.ReasonLicenseRevoked,
		licensing.ReasonLicenseSuspended, licensing.ReasonLicenseExpired,
		licensing.ReasonProductMismatch, licensing.ReasonDeviceLimitReached,
		licensing.ReasonInternal, licensing.ReasonUnavailable, licensing.ReasonOverloaded, licensing.ReasonOutcomeUnknown,
	}
}

// count counts a response by its code, and a success by whether it has bound a new device.
func (a *activations) count(code int, bound bool) {
	counter, known := a.failed[code]
	switch {
	case code == 0 && bound:
		counter = a.bound
	case code == 0:
		counter = a.again
	case !known:
		counter = a.other
	}
	counter.Inc()
}
