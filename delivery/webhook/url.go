package webhook

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const maxURL = 2048 // characters

// CheckURL returns what is wrong with the URL of an endpoint, as in "must have no fragment", or an empty string.
// It resolves no name: the sender checks the address when it dials.
func (p *Policy) CheckURL(raw string) (problem string) {
	u, err := url.Parse(raw)
	switch {
	case len(raw) > maxURL:
		return fmt.Sprintf("must have at most %d characters", maxURL)
	case strings.ContainsFunc(raw, mustBeEncoded):
		return "must be percent-encoded, and an international host name in its ASCII form"
	case err != nil || u.Opaque != "" || u.Hostname() == "":
		return "must be an absolute URL, such as https://shop.example.com/licet"
	case u.User != nil:
		return "must have no user information"
	case strings.Contains(raw, "#"):
		return "must have no fragment"
	}
	if problem := checkHost(u.Hostname()); problem != "" {
		return problem
	}
	return p.checkTarget(u)
}

// checkTarget checks the scheme, the port and, if the host is an IP address, the address.
func (p *Policy) checkTarget(u *url.URL) (problem string) {
	local := isLoopback(u.Hostname())
	switch {
	case u.Scheme == "https", u.Scheme == "http" && local && p.Loopback:
	case p.Loopback:
		return "must begin with https:// (http:// is for loopback addresses)"
	default:
		return "must begin with https://"
	}
	port, valid := portOf(u)
	switch {
	case !valid:
		return "must have a port from 1 to 65535, or none"
	case local && p.Loopback:
		return ""
	case local:
		return "must not lead to a loopback address"
	case !slices.Contains(p.ports(), port):
		return "must have " + p.describePorts()
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && p.filter().check(netip.AddrPortFrom(ip, port)) != nil {
		return "must not lead to an address that is not public"
	}
	return ""
}

// checkHost refuses a host that is neither a name nor an IP address. It refuses names such as 2130706433 and
// 0x7f.1, since some resolvers take them for addresses.
func checkHost(host string) (problem string) {
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return "must have no zone in its address"
		}
		return ""
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notOfName) {
			return "must have a host name of letters, digits, hyphens and points, or an IP address"
		}
	}
	last := strings.ToLower(labels[len(labels)-1])
	if len(host) > 253 || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "must have a host name of letters, digits, hyphens and points, or an IP address"
	}
	return ""
}

// mustBeEncoded reports whether a URL must not contain a character as it is.
func mustBeEncoded(c rune) bool {
	return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"<>\^{|}`+"`", c)
}

// notOfName reports whether a host name must not contain a character.
func notOfName(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || err == nil && ip.Unmap().IsLoopback()
}

func portOf(u *url.URL) (uint16, bool) {
	switch text := u.Port(); {
	case text != "":
		port, err := strconv.ParseUint(text, 10, 16)
		return uint16(port), err == nil && port > 0
	case strings.HasSuffix(u.Host, ":"):
		return 0, false
	case u.Scheme == "http":
		return 80, true
	}
	return httpsPort, true
}

func (p *Policy) describePorts() string {
	ports := p.ports()
	if len(ports) == 1 {
		return fmt.Sprintf("the port %d", ports[0])
	}
	texts := make([]string, len(ports))
	for i, port := range ports {
		texts[i] = strconv.Itoa(int(port))
	}
	return "one of the ports " + strings.Join(texts, ", ")
}
