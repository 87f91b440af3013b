package main

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"licet/licensing/keyring"
	"licet/metrics/guard"
	"licet/node/peer"
	"licet/node/service"
	"licet/node/store"
)

// peering is the connection to the other nodes of the store: a listener for their commands, its address, and the client
// that sends commands to them.
type peering struct {
	ring     keyring.MasterRing
	listener net.Listener
	address  string
	client   *peer.Client
}

// listenForPeers opens the listener for commands of other nodes, unless --internal-listen is empty.
func (s *serve) listenForPeers(ctx context.Context, ring keyring.MasterRing) error {
	if s.cfg.InternalListen == "" {
		return nil
	}
	listener, err := listen(ctx, "internal-listen", s.cfg.InternalListen, true)
	if err != nil {
		return err
	}
	s.parts.started("listening for other nodes", closing(listener))
	address := s.cfg.InternalAddress
	if address == "" {
		address = reachableAddress(ctx, listener.Addr(), s.cfg.Etcd.Endpoints)
	}
	s.peering = &peering{ring: ring, listener: listener, address: address}
	return nil
}

// connect creates the client that sends commands to other nodes. The store must be open.
func (p *peering) connect(list func(context.Context) ([]store.Registration, error), guard *guard.Guard) (err error) {
	p.client, err = peer.NewClient(p.ring, list, guard)
	return err
}

// servePeers starts serving commands of other nodes.
func (s *instance) servePeers(n *service.Service) (*peer.Server, error) {
	server, err := peer.NewServer(s.store.Incarnation(), s.peering.ring, n, s.instruments, s.log)
	if err != nil {
		return nil, err
	}
	s.serve("other nodes", server, s.peering.listener)
	return server, nil
}

// reachableAddress returns the address at which other machines reach a listener: the address of the listener, or, for
// an unspecified address, the local address of a connection to etcd.
func reachableAddress(ctx context.Context, listener net.Addr, endpoints []string) string {
	host, port, err := net.SplitHostPort(listener.String())
	if err != nil {
		return listener.String()
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsUnspecified() {
		return listener.String()
	}
	family := "udp"
	if ip.Is4() {
		family = "udp4" // the listener has no IPv6 address
	}
	for _, endpoint := range endpoints {
		u, err := url.Parse(endpoint)
		if err != nil || u.Port() == "" {
			continue
		}
		// Connecting a datagram socket sends nothing except the DNS query, and gives the socket a local address.
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, family, u.Host)
		if err != nil {
			continue
		}
		local := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
		_ = conn.Close()
		if local.IsLinkLocalUnicast() {
			continue // a link-local address means another interface on each machine
		}
		return net.JoinHostPort(local.String(), port)
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// validAddress reports whether other nodes can connect to an address: it has a host that is not unspecified, and a port
// number above 0.
func validAddress(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		return false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0
}
