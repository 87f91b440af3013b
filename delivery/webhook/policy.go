package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// Policy says which receivers may be reached. The zero Policy lets public
// addresses be reached at port 443, over TLS.
type Policy struct {
	// Networks may be reached although they are not public, such as the one in
	// which a shop's own receivers are. In a network of a NAT64 gateway lies all
	// that the gateway leads to.
	Networks []netip.Prefix
	// Loopback: this machine may be reached too, at any port and also by http://.
	// It is for development.
	Loopback bool
	// Ports may be reached. None: 443.
	Ports []uint16
}

const httpsPort = 443

// errRefusedAddress: an address was about to be dialed that may not be reached.
var errRefusedAddress = errors.New("the policy does not let this address be reached")

// guard judges addresses by a policy.
type guard struct {
	public   *ssrf.Guardian
	loopback bool
}

func (p *Policy) guard() *guard {
	var v4, v6 []netip.Prefix
	for _, network := range p.Networks {
		if network.Addr().Is4() {
			v4 = append(v4, network)
		} else {
			v6 = append(v6, network)
		}
	}
	return &guard{
		public: ssrf.New(
			ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...),
			// Never none, which would stand for all.
			ssrf.WithPorts(p.ports()...),
		),
		loopback: p.Loopback,
	}
}

func (p *Policy) ports() []uint16 {
	if len(p.Ports) == 0 {
		return []uint16{httpsPort}
	}
	return slices.Clone(p.Ports)
}

// check tells whether an address may be reached.
func (g *guard) check(addr netip.AddrPort) error {
	ip := addr.Addr().Unmap()
	if g.loopback && ip.IsLoopback() {
		return nil
	}
	if err := g.public.SafeAddrPort(netip.AddrPortFrom(ip, addr.Port())); err != nil {
		return fmt.Errorf("%w: %w", errRefusedAddress, err)
	}
	return nil
}

// control is for [net.Dialer]. It sees the address itself, after all names were
// resolved and right before the first packet, so that a name can't lead to one
// address when it is judged and to another when it is dialed.
func (g *guard) control(network, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: %s %s", errRefusedAddress, network, address)
	}
	return g.check(addr)
}

// controlLoopback lets this machine be reached and nothing else. What goes over
// plain HTTP does not leave it, wherever a name leads.
func controlLoopback(_, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil || !addr.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%w: %s over plain HTTP", errRefusedAddress, address)
	}
	return nil
}
