package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// Policy says which receivers a sender may reach. The zero Policy allows public addresses at port 443, over TLS.
type Policy struct {
	// Networks are allowed although they are not public, such as the network of a shop's own receivers. The
	// network of a NAT64 gateway includes every host behind the gateway.
	Networks []netip.Prefix
	// Loopback allows this machine, at any port and also over http://. It is for development.
	Loopback bool
	// Ports are the allowed ports; none: 443.
	Ports []uint16
}

const httpsPort = 443

// errRefusedAddress means that the policy forbids the address that was about to be dialed.
var errRefusedAddress = errors.New("the webhook settings forbid this address")

// addressFilter checks addresses by a policy.
type addressFilter struct {
	public   *ssrf.Guardian
	loopback bool
}

func (p *Policy) filter() *addressFilter {
	var v4, v6 []netip.Prefix
	for _, network := range p.Networks {
		if network.Addr().Is4() {
			v4 = append(v4, network)
		} else {
			v6 = append(v6, network)
		}
	}
	return &addressFilter{
		public: ssrf.New(
			ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...),
			// At least one port, since no port would allow all ports.
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

// check returns an error if the policy forbids an address.
func (f *addressFilter) check(addr netip.AddrPort) error {
	ip := addr.Addr().Unmap()
	if f.loopback && ip.IsLoopback() {
		return nil
	}
	if err := f.public.SafeAddrPort(netip.AddrPortFrom(ip, addr.Port())); err != nil {
		return fmt.Errorf("%w: %w", errRefusedAddress, err)
	}
	return nil
}

// control is a Control function for [net.Dialer]. The dialer calls it with the address itself, after resolving
// the name and right before the first packet. So a name can't resolve to one address for the check and to
// another address for the connection.
func (f *addressFilter) control(network, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: %s %s", errRefusedAddress, network, address)
	}
	return f.check(addr)
}

// controlLoopback is a Control function that allows this machine only. So plain HTTP never leaves this machine,
// whatever a name resolves to.
func controlLoopback(_, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil || !addr.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%w: %s over plain HTTP", errRefusedAddress, address)
	}
	return nil
}
