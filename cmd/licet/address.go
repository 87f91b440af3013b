package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// listen listens on the address of a flag. Unless remote is set, listen refuses addresses that other machines can
// reach.
func listen(ctx context.Context, flag, address string, remote bool) (net.Listener, error) {
	host, port, err := splitAddress(flag, address)
	if err != nil {
		return nil, err
	}
	if _, err := net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil {
		return nil, badUsage("--%s is %q: %q is not a port", flag, address, port)
	}
	if !remote {
		// One lookup of the name: the address that was checked is the address to listen on.
		if host, err = loopback(ctx, flag, host); err != nil {
			return nil, err
		}
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, network(host), net.JoinHostPort(host, port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--%s %s: another process listens there already: stop that process, or choose another "+
			"port (port 0 takes a free port)", flag, address)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", flag, address, err)
	}
	return listener, nil
}

// splitAddress returns the host and the port of the address of a flag.
func splitAddress(flag, address string) (host, port string, err error) {
	if host, port, err = net.SplitHostPort(address); err != nil {
		return "", "", badUsage("--%s is %q: write an address such as 127.0.0.1:8080", flag, address)
	}
	return host, port, nil
}

// network returns the network to listen on. For an IPv4 address this is tcp4, because Go listens on [::] for 0.0.0.0
// otherwise.
func network(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		return "tcp4"
	}
	return "tcp"
}

// loopback returns a loopback address of host. All addresses of host must be loopback addresses.
func loopback(ctx context.Context, flag, host string) (string, error) {
	refused := badUsage("--%s: %q is not a loopback address, so other machines could reach it: use 127.0.0.1, or set "+
		"--allow-remote", flag, host)
	if host == "" {
		return "", badUsage("--%s has no host, so other machines could reach it: write 127.0.0.1 before the port, or "+
			"set --allow-remote", flag)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if !ip.Unmap().IsLoopback() {
			return "", refused
		}
		return host, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", fmt.Errorf("--%s: %w", flag, err)
	}
	for _, ip := range ips {
		if !ip.Unmap().IsLoopback() {
			return "", refused
		}
	}
	return ips[0].Unmap().String(), nil
}

// localURL returns a URL at which this machine reaches a listener on address.
func localURL(address net.Addr) string {
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return "http://" + address.String()
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
