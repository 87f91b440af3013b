package limits

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of those whose word is taken for where a request
// came from.
type Proxies []netip.Prefix

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
