package main

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"licet/licensing"
	"licet/metrics/guard"
	"licet/node/peer"
	"licet/node/service"
	"licet/node/store"
)

// peering is what a node shares with the others on its store: a listener that
// takes their commands, and the address they reach it at.
type peering struct {
	ring     licensing.MasterRing
	listener net.Listener
	address  string
	client   *peer.Client
}

// meet takes the address for the other nodes. It comes with the other listeners.
func (s *serve) meet(ctx context.Context, ring licensing.MasterRing) error {
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
		address = reachedAt(ctx, listener.Addr(), s.cfg.Etcd.Endpoints)
	}
	s.peering = &peering{ring: ring, listener: listener, address: address}
	return nil
}

// call makes what reaches the other nodes. It comes after the store was opened.
func (p *peering) call(list func(context.Context) ([]store.Registration, error), guard *guard.Guard) (err error) {
	p.client, err = peer.NewClient(p.ring, list, guard)
	return err
}

// answerPeers takes other nodes' commands.
func (s *instance) answerPeers(n *service.Service) (*peer.Server, error) {
	server, err := peer.NewServer(s.store.Incarnation(), s.peering.ring, n, s.instruments, s.log)
	if err != nil {
		return nil, err
	}
	s.serve("other nodes", server, s.peering.listener)
	return server, nil
}

// reachedAt is where other machines reach a listener: at the address it listens
// on, or, if that is any, at the one that this machine has toward etcd.
func reachedAt(ctx context.Context, listens net.Addr, endpoints []string) string {
	host, port, err := net.SplitHostPort(listens.String())
	if err != nil {
		return listens.String()
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsUnspecified() {
		return listens.String()
	}
	family := "udp"
	if ip.Is4() {
		family = "udp4" // nobody listens at any other address
	}
	for _, endpoint := range endpoints {
		u, err := url.Parse(endpoint)
		if err != nil || u.Port() == "" {
			continue
		}
		// Nothing is sent but the question for etcd's address: a datagram socket that is
		// connected has an address.
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, family, u.Host)
		if err != nil {
			continue
		}
		local := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
		_ = conn.Close()
		if local.IsLinkLocalUnicast() {
			continue // it means something else on each machine
		}
		return net.JoinHostPort(local.String(), port)
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// reachable tells whether an address may be one that others reach: a host, and a
// port that is a number.
func reachable(address string) bool {
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
