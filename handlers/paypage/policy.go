package paypage

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// CSP gives the Content-Security-Policy to send with a page. formTargets are
// the addresses outside of our own origin that the form's answer may redirect
// to, such as a payment provider's checkout. Browsers hold form-action against
// every hop of such a redirect, so an address that redirects on to yet another
// origin leaves the buyer where they were: only a link gets them there for sure.
// What is no safe address is left out.
func (r *Renderer) CSP(formTargets ...string) string {
	sources := []string{"'self'"}
	for _, target := range formTargets {
		if source := cspSource(target); source != "" && !slices.Contains(sources, source) {
			sources = append(sources, source)
		}
	}
	return "default-src 'none'; style-src '" + r.styleHash + "'; form-action " + strings.Join(sources, " ") +
		"; base-uri 'none'; frame-ancestors 'none'"
}

// plainHost is what a policy can name, and what can't break out of it.
var plainHost = regexp.MustCompile(`^[a-z0-9.-]+$`)

// cspSource gives the origin of an address as a policy names it, or "" if the
// address is not safe. A policy has no way to name an IPv6 host or one that is
// not ASCII: these are let through by their scheme.
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

// link is an address outside of ours that a page may show.
type link struct {
	URL  string
	Host string // tells the buyer where it leads
}

// safeLink gives nil for an address that must not become a link.
func safeLink(address string) *link {
	u := safeURL(address)
	if u == nil {
		return nil
	}
	return &link{URL: u.String(), Host: u.Hostname()}
}

// safeURL takes the addresses that an order's success URL may have: https, or
// http on this very machine. Orders were checked for it when they were made;
// a page that takes buyers somewhere does not rely on it.
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
