package limits

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of those whose word is taken for where a request
// came from.
type Proxies []netip.Prefix

// ParseProxies reads networks, such as 10.0.0.0/8, and single addresses.
func ParseProxies(texts []string) (Proxies, error) {
	var p Proxies
	for _, text := range texts {
		text = strings.TrimSpace(text)
		network, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil && addr.Zone() == "" {
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil || network.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is no network: it must be like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.7", text)
		}
		p = append(p, network.Masked())
	}
	return p, nil
}

func (p Proxies) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// Client finds where a request came from: its peer, unless that is one of the
// proxies. Then it is the last address of X-Forwarded-For that is none of them.
// Each proxy writes behind what it was sent whom it was sent it by, so whatever
// stands before that address is only what that client says, and is not looked
// at. If all are proxies it is the first of them. Where anything else stands
// before such an address was found, nobody knows, and it is the peer.
//
// forwardedFor is the lines of that header, in order.
func (p Proxies) Client(peer netip.Addr, forwardedFor [][]byte) netip.Addr {
	peer = plain(peer)
	if !p.trusts(peer) {
		return peer
	}
	client := peer
	for _, line := range slices.Backward(forwardedFor) {
		for {
			comma := bytes.LastIndexByte(line, ',')
			addr, ok := parseHop(line[comma+1:])
			if !ok {
				return peer
			}
			if !p.trusts(addr) {
				return addr
			}
			client = addr
			if comma < 0 {
				break
			}
			line = line[:comma]
		}
	}
	return client
}

// parseHop reads one address of X-Forwarded-For. Some proxies write the port,
// or brackets around IPv6.
func parseHop(text []byte) (netip.Addr, bool) {
	hop := strings.Trim(string(text), " \t")
	if both, err := netip.ParseAddrPort(hop); err == nil {
		return plain(both.Addr()), true
	}
	if inside, bracket := strings.CutPrefix(hop, "["); bracket {
		var closed bool
		if hop, closed = strings.CutSuffix(inside, "]"); !closed {
			return netip.Addr{}, false
		}
	}
	addr, err := netip.ParseAddr(hop)
	return plain(addr), err == nil
}

// plain is an address in the one form that it is compared in.
func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }
