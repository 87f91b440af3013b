package paypage

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// CSP returns the Content-Security-Policy of a page. formTargets are the URLs on other origins to which the response to
// the form may redirect, such as the checkout of a payment provider. Browsers apply form-action to every redirect. So
// if a target redirects to yet another origin, the customer stays on the pay page: only a link is reliable. CSP ignores
// unsafe URLs.
func (r *Renderer) CSP(formTargets ...string) string {
	sources := []string{"'self'"}
	for _, target := range formTargets {
		if source := cspSource(target); source != "" && !slices.Contains(sources, source) {
			sources = append(sources, source)
		}
	}
	return "default-src 'none'; style-src '" + r.styleHash + "'; img-src 'self'; form-action " +
		strings.Join(sources, " ") +
		"; base-uri 'none'; frame-ancestors 'none'"
}

// plainHost matches the hosts that a policy can name, and that can't break out of the policy.
var plainHost = regexp.MustCompile(`^[a-z0-9.-]+$`)

// cspSource returns the origin of a URL in the form of a policy, or "" if the URL is not safe. A policy can't name an
// IPv6 host or a host that is not ASCII. For these, cspSource returns the scheme, which allows every host.
func cspSource(address string) string {
	u := safeURL(address)
	if u == nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	if !plainHost.MatchString(host) {
		return u.Scheme + ":"
	}
	if port := u.Port(); port != "" {
		host += ":" + port
	}
	return u.Scheme + "://" + host
}

// link is a link to another site.
type link struct {
	URL  string
	Host string // shown to the customer
}

// safeLink returns the link to an address, or nil if the address is not safe.
func safeLink(address string) *link {
	u := safeURL(address)
	if u == nil {
		return nil
	}
	return &link{URL: u.String(), Host: u.Hostname()}
}

// safeURL parses the URLs that are valid as an order's success URL: https, or http on this machine. It returns nil for
// any other URL. The service has checked the URL when it created the order; a page with a link does not rely on that.
func safeURL(address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	if u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()) {
		return u
	}
	return nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}
