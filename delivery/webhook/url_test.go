package webhook_test

import (
	"net/netip"
	"strings"
	"testing"

	"licet/delivery/webhook"
)

func networks(texts ...string) (n []netip.Prefix) {
	for _, text := range texts {
		n = append(n, netip.MustParsePrefix(text))
	}
	return n
}

func TestCheckURL(t *testing.T) {
	f := func(policy webhook.Policy, url, want string) {
		t.Helper()
		if got := policy.CheckURL(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	const (
		absolute   = "must be an absolute URL, such as https://shop.example.com/licet"
		encoded    = "must be percent-encoded, and an international host name in its ASCII form"
		host       = "must have a host name of letters, digits, hyphens and points, or an IP address"
		https      = "must begin with https://"
		httpsLocal = "must begin with https:// (http:// is for loopback addresses)"
		local      = "must not lead to a loopback address"
		notPublic  = "must not lead to an address that is not public"
		port443    = "must have the port 443"
		anyPort    = "must have a port from 1 to 65535, or none"
	)
	var public webhook.Policy
	f(public, "https://shop.example.com", "")
	f(public, "HTTPS://Shop.Example.com:443/licet/hooks?token=a%20b&x=[1]", "")
	f(public, "https://shop_1.example.com./", "")
	f(public, "https://xn--bcher-kva.example/", "")
	f(public, "https://intranet/", "")
	f(public, "https://8.8.8.8/", "")
	f(public, "https://[2606:4700::1111]/", "")
	f(public, "https://[::ffff:8.8.8.8]/", "")
	f(public, "https://a.example/"+strings.Repeat("a", 2048-18), "")
	f(public, "https://a.example/"+strings.Repeat("a", 2048-17), "must have at most 2048 characters")

	f(public, "", absolute)
	f(public, "shop.example.com/licet", absolute)
	f(public, "/licet", absolute)
	f(public, "https:", absolute)
	f(public, "https:shop.example.com", absolute)
	f(public, "https:///licet", absolute)
	f(public, "https://:443/", absolute)
	f(public, "https://a.example/%zz", absolute)
	f(public, "https://a%2eexample/", absolute)
	f(public, "https://a.example:https/", absolute)
	f(public, "https://[::1/", absolute)
	f(public, "https://bücher.example/", encoded)
	f(public, "https://a.example/a b", encoded)
	f(public, " https://a.example/", encoded)
	f(public, "https://a.example/\r\nHost:b", encoded)
	f(public, `https://a.example\@b.example/`, encoded)
	f(public, "https://user@a.example/", "must have no user information")
	f(public, "https://user:password@a.example/", "must have no user information")
	f(public, "https://a.example/#", "must have no fragment")
	f(public, "https://a.example/#there", "must have no fragment")
	f(public, "https://a..example/", host)
	f(public, "https://a.example../", host)
	f(public, "https://a!.example/", host)
	f(public, "https://"+strings.Repeat("a", 64)+".example/", host)
	f(public, "https://"+strings.Repeat("a.", 127)+"example/", host)
	f(public, "https://2130706433/", host)
	f(public, "https://127.1/", host)
	f(public, "https://0177.0.0.1/", host)
	f(public, "https://0x7f000001/", host)
	f(public, "https://127.0.0.0x1/", host)
	f(public, "https://[fe80::1%25eth0]/", "must have no zone in its address")
	f(public, "http://a.example/", https)
	f(public, "ftp://a.example/", https)
	f(public, "javascript://a.example/", https)
	f(public, "https://a.example:/", anyPort)
	f(public, "https://a.example:0/", anyPort)
	f(public, "https://a.example:65536/", anyPort)
	f(public, "https://a.example:22/", port443)
	f(public, "https://a.example:8443/", port443)

	f(public, "https://localhost/", local)
	f(public, "https://LocalHost./", local)
	f(public, "https://a.localhost/", local)
	f(public, "https://127.0.0.1/", local)
	f(public, "https://127.9.9.9/", local)
	f(public, "https://[::1]/", local)
	f(public, "https://[::ffff:127.0.0.1]/", local)
	for _, address := range denied() {
		if strings.HasPrefix(address, "127.") || address == "::1" || address == "::ffff:127.0.0.1" {
			continue
		}
		f(public, "https://"+bracketed(address)+"/", notPublic)
	}

	dev := webhook.Policy{Loopback: true}
	f(dev, "http://localhost:9000/licet", "")
	f(dev, "http://127.0.0.1:1/", "")
	f(dev, "http://[::1]/", "")
	f(dev, "https://localhost:8443/", "")
	f(dev, "https://a.example/", "")
	f(dev, "http://a.example/", httpsLocal)
	f(dev, "http://localhost.example/", httpsLocal)
	f(dev, "http://10.0.0.1/", httpsLocal)
	f(dev, "https://10.0.0.1/", notPublic)
	f(dev, "https://0.0.0.0/", notPublic)
	f(dev, "https://a.example:8443/", port443)
	f(dev, "http://localhost:0/", anyPort)

	shop := webhook.Policy{Networks: networks("10.1.0.0/16", "fd00:1::/32"), Ports: []uint16{443, 8443}}
	f(shop, "https://10.1.2.3/", "")
	f(shop, "https://10.1.2.3:8443/", "")
	f(shop, "https://[fd00:1::5]/", "")
	f(shop, "https://10.2.2.3/", notPublic)
	f(shop, "https://[fd00:2::5]/", notPublic)
	f(shop, "https://127.0.0.1/", local)
	f(shop, "http://10.1.2.3/", https)
	f(shop, "https://a.example:8444/", "must have one of the ports 443, 8443")
}

// denied returns addresses of each kind that is not public.
func denied() []string {
	return []string{
		"0.0.0.0", "0.1.2.3", // this network
		"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", // private
		"100.64.0.1", "100.127.255.255", // carriers' NAT
		"127.0.0.1", "127.9.9.9", // loopback
		"169.254.0.1", "169.254.169.254", // link-local, metadata of clouds
		// protocols, examples, benchmarks
		"192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1",
		"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", // multicast, reserved, broadcast
		"::", "::1", // unspecified, loopback
		"::ffff:10.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", // v4 written as v6
		"::127.0.0.1",                     // once meant the same
		"64:ff9b::7f00:1", "64:ff9b:1::1", // NAT64
		// discard, Teredo, ORCHID, examples, 6to4
		"100::1", "2001::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "3fff::1",
		"fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", // private, link-local
		"ff02::1", "ff0e::1", // multicast
		"5f00::1", // segment routing
	}
}

func bracketed(address string) string {
	if strings.Contains(address, ":") {
		return "[" + address + "]"
	}
	return address
}
