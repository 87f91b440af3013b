package limits

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of trusted proxies: they may name the client of a request.
type Proxies []netip.Prefix

func (p Proxies) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// Peer returns the address that the connections of a peer count as: its [Network], or the zero address
// for a trusted proxy, which connects for many clients.
func (p Proxies) Peer(peer netip.Addr) netip.Addr {
	if p.trusts(canonical(peer)) {
		return netip.Addr{}
	}
	return Network(peer)
}

// Client returns the address of a request's client. forwardedFor contains the lines of the header
// X-Forwarded-For, in order. Each proxy appends the address of its peer to that header.
//
//   - If peer is no trusted proxy, the client is peer.
//   - Otherwise the client is the last address in forwardedFor that is no trusted proxy. Client
//     ignores everything before that address, because the client may have sent it.
//   - If all addresses are trusted proxies, the client is the first of them.
//   - If something that is no address comes before the client is found, the client is peer.
func (p Proxies) Client(peer netip.Addr, forwardedFor [][]byte) netip.Addr {
	peer = canonical(peer)
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

// parseHop reads one address of X-Forwarded-For. Some proxies write a port, or brackets around an IPv6
// address.
func parseHop(text []byte) (netip.Addr, bool) {
	hop := strings.Trim(string(text), " \t")
	if both, err := netip.ParseAddrPort(hop); err == nil {
		return canonical(both.Addr()), true
	}
	if inside, bracket := strings.CutPrefix(hop, "["); bracket {
		var closed bool
		if hop, closed = strings.CutSuffix(inside, "]"); !closed {
			return netip.Addr{}, false
		}
	}
	addr, err := netip.ParseAddr(hop)
	return canonical(addr), err == nil
}

// canonical returns an address in the one form in which addresses are compared.
func canonical(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }
