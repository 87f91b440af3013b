package limits

import (
	"net/netip"
	"testing"
)

func proxiesOf(networks ...string) (p Proxies) {
	for _, network := range networks {
		p = append(p, netip.MustParsePrefix(network))
	}
	return p
}

// TestClient: only trusted proxies may name the client.
func TestClient(t *testing.T) {
	t.Parallel()
	proxies := proxiesOf("10.0.0.0/8", "192.0.2.7/32", "2001:db8:aaaa::/48")
	const peer, stranger = "10.1.2.3", "198.51.100.9"
	for _, c := range []struct {
		name, peer string
		lines      []string
		want       string
	}{
		{"no proxy", stranger, nil, stranger},
		{"an untrusted peer", stranger, []string{"203.0.113.1"}, stranger},
		{"an untrusted peer that names a proxy", stranger, []string{"203.0.113.1, 10.0.0.1"}, stranger},
		{"a proxy without the header", peer, nil, peer},
		{"one proxy", peer, []string{"203.0.113.1"}, "203.0.113.1"},
		{"one proxy, a forged address", peer, []string{"1.1.1.1, 203.0.113.1"}, "203.0.113.1"},
		{"the client names a proxy", peer, []string{"10.0.0.1, 203.0.113.1"}, "203.0.113.1"},
		{"the client sends nonsense", peer, []string{`";,<script>, unknown,, 203.0.113.1`}, "203.0.113.1"},
		{"two proxies", peer, []string{"203.0.113.1, 10.9.9.9"}, "203.0.113.1"},
		{"two proxies, a forged address", peer, []string{"1.1.1.1, 203.0.113.1,10.9.9.9"}, "203.0.113.1"},
		{"a single address is a proxy", "192.0.2.7", []string{"203.0.113.1"}, "203.0.113.1"},
		{"an address next to a proxy", "192.0.2.8", []string{"203.0.113.1"}, "192.0.2.8"},
		{"several lines", peer, []string{"1.1.1.1", "203.0.113.1", "10.9.9.9"}, "203.0.113.1"},
		{"several lines, one of them the client's", peer, []string{"1.1.1.1, 2.2.2.2", "203.0.113.1"}, "203.0.113.1"},
		{"all are proxies", peer, []string{"10.7.7.7, 10.8.8.8"}, "10.7.7.7"},
		{"with a port", peer, []string{"203.0.113.1:4711"}, "203.0.113.1"},
		{"blanks", peer, []string{"\t 203.0.113.1 \t"}, "203.0.113.1"},
		{"IPv6", peer, []string{"2001:db8::1"}, "2001:db8::1"},
		{"IPv6 in brackets", peer, []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"IPv6 with a port", peer, []string{"[2001:db8::1]:443"}, "2001:db8::1"},
		{"IPv6 with a zone", peer, []string{"fe80::1%eth0"}, "fe80::1"},
		{"IPv4 in IPv6", peer, []string{"::ffff:203.0.113.1"}, "203.0.113.1"},
		{"a proxy as IPv4 in IPv6", "::ffff:10.1.2.3", []string{"203.0.113.1, ::ffff:10.2.2.2"}, "203.0.113.1"},
		{"a proxy with IPv6", "2001:db8:aaaa::1", []string{"203.0.113.1"}, "203.0.113.1"},
		{"unknown", peer, []string{"unknown"}, peer},
		{"an obfuscated name", peer, []string{"203.0.113.1, _hidden"}, peer},
		{"empty", peer, []string{""}, peer},
		{"an empty element", peer, []string{"203.0.113.1,"}, peer},
		{"an empty line", peer, []string{"203.0.113.1", ""}, peer},
		{"nonsense before a proxy", peer, []string{"203.0.113.1, x, 10.9.9.9"}, peer},
		{"a number too many", peer, []string{"203.0.113.1.1"}, peer},
		{"leading zeros", peer, []string{"203.0.113.001"}, peer},
		{"a network", peer, []string{"203.0.113.0/24"}, peer},
		{"an open bracket", peer, []string{"[2001:db8::1"}, peer},
		{"a port too large", peer, []string{"203.0.113.1:65536"}, peer},
	} {
		var lines [][]byte
		for _, line := range c.lines {
			lines = append(lines, []byte(line))
		}
		if got := proxies.Client(netip.MustParseAddr(c.peer), lines); got != netip.MustParseAddr(c.want) {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
		if got := Proxies(nil).Client(netip.MustParseAddr(c.peer), lines); got != netip.MustParseAddr(c.peer).Unmap() {
			t.Errorf("%s, without proxies: %v, want the peer", c.name, got)
		}
	}
}

// FuzzClient: whatever a client sends, Client returns the address that the proxy has appended. Client
// ignores the header of an untrusted peer.
func FuzzClient(f *testing.F) {
	proxies := proxiesOf("10.0.0.0/8")
	proxy, client := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("203.0.113.1")
	stranger := netip.MustParseAddr("198.51.100.9")
	f.Add("1.1.1.1, 10.0.0.2")
	f.Add("[2001:db8::1]:443,")
	f.Add("unknown")
	f.Fuzz(func(t *testing.T, sent string) {
		if got := proxies.Client(proxy, [][]byte{[]byte(sent + ", " + client.String())}); got != client {
			t.Errorf("after %q: %v", sent, got)
		}
		if got := proxies.Client(proxy, [][]byte{[]byte(sent), []byte(client.String())}); got != client {
			t.Errorf("on the line below %q: %v", sent, got)
		}
		if got := proxies.Client(stranger, [][]byte{[]byte(sent)}); got != stranger {
			t.Errorf("an untrusted peer that sends %q: %v", sent, got)
		}
		proxies.Client(proxy, [][]byte{[]byte(sent)})
	})
}
