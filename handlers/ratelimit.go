package handlers

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"licet/handlers/limits"
	"licet/licensing"
)

// draft-ietf-httpapi-ratelimit-headers, from its version 08 on.
const (
	headerRateLimit       = "RateLimit"
	headerRateLimitPolicy = "RateLimit-Policy"

	exposedWithCounts = exposed + ", " + headerRateLimit + ", " + headerRateLimitPolicy
)

// limitAPIKey holds a request against the limit of its API key, if it has one.
func (s *Server) limitAPIKey(r *request) error {
	if r.caller == nil {
		return nil
	}
	return s.limit(r, s.cfg.Limits.APIKey(r.caller.Hash), errAPIKeyLimited)
}

// limitLicense holds a request against the limit of the license that it names.
func (s *Server) limitLicense(r *request, key licensing.LicenseKey) error {
	return s.limit(r, s.cfg.Limits.License(string(key)), errLicenseLimited)
}

// limitFailures holds a request that failed against the limit of its client's
// address, if it named no license, and gives what it is to be answered. That is
// known only now, so a guess that is well formed was looked up before; but
// whoever asks for licenses that there are is never limited, however many share
// an address. A caller with an API key is known by that, and limited by it.
func (s *Server) limitFailures(e *exchange, cause error) error {
	r := e.request
	if r == nil || r.caller != nil || e.route.access != open {
		return cause
	}
	var known *licensing.Error
	if !errors.As(cause, &known) {
		return cause
	}
	switch known.Reason {
	case reasonMalformedRequest, licensing.ReasonInvalidLicenseKey, licensing.ReasonLicenseNotFound:
	default:
		return cause
	}
	if err := s.limit(r, s.cfg.Limits.Address(s.client(e)), errAddressLimited); err != nil {
		return err
	}
	return cause
}

// limit notes what a limit made of a request.
func (s *Server) limit(r *request, c limits.Count, refusal *licensing.Error) error {
	if c.Policy == nil {
		return nil
	}
	r.counts = append(r.counts, c)
	if !c.Refused {
		return nil
	}
	s.cfg.Metrics.RateLimited.WithLabelValues(c.Policy.Name).Inc()
	return refusal
}

// client is the address that a request came from. Those that have none, which
// came over no network, are taken for one.
func (s *Server) client(e *exchange) netip.Addr {
	peer, ok := e.ctx.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return s.cfg.Proxies.Client(peer.AddrPort().Addr(), e.ctx.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor))
}

// retryAfter is in how many seconds a limit that has refused the request would
// let it through; 0: none has.
func (e *exchange) retryAfter() int {
	for _, c := range e.made.counts {
		if c.Refused {
			return wholeSeconds(c.Next)
		}
	}
	return 0
}

// writeCounts tells of the limits that a request was held against.
func (e *exchange) writeCounts() {
	var policies, states [96]byte
	policy, state := policies[:0], states[:0]
	for i, c := range e.made.counts {
		if i > 0 {
			policy, state = append(policy, ", "...), append(state, ", "...)
		}
		policy = appendItem(policy, c.Policy.Name, ";q=", c.Policy.Rate.Count, ";w=", wholeSeconds(c.Policy.Rate.Per))
		state = appendItem(state, c.Policy.Name, ";r=", c.Remaining, ";t=", wholeSeconds(c.Next))
	}
	h := &e.ctx.Response.Header
	h.SetCanonical([]byte(headerRateLimitPolicy), policy)
	h.SetCanonical([]byte(headerRateLimit), state)
	if e.resource.open {
		set(h, fasthttp.HeaderAccessControlExposeHeaders, exposedWithCounts)
	}
}

// appendItem writes a string with two parameters (RFC 9651). No name has anything
// in it that would have to be escaped.
func appendItem(to []byte, name, first string, a int, second string, b int) []byte {
	to = append(append(append(to, '"'), name...), '"')
	to = strconv.AppendInt(append(to, first...), int64(a), 10)
	return strconv.AppendInt(append(to, second...), int64(b), 10)
}

// wholeSeconds rounds up: whoever comes back earlier comes in vain.
func wholeSeconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }
