package main

import (
	"fmt"
	"net/netip"
	"strings"
)

// parseNetworks parses networks such as 10.0.0.0/8, and single addresses.
func parseNetworks(texts []string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, text := range texts {
		text = strings.TrimSpace(text)
		network, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil && addr.Zone() == "" {
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil || network.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is not a network: write a network such as 10.0.0.0/8, 2001:db8::/32 or "+
				"192.0.2.7", text)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}
