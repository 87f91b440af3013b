package main

import (
	"context"
	"fmt"
	"strings"
)

// The networks. They lie in namespaces of their own, so they clash with nothing.
const (
	controlIP    = "10.97.0.1"
	serviceRange = "10.96.0.0/16"
	podRange     = "10.98.0.0/16"
	apiServiceIP = "10.96.0.1"
)

func nodeIP(n int) string   { return fmt.Sprintf("10.97.0.%d", 11+n) }
func nodePods(n int) string { return fmt.Sprintf("10.98.%d.0/24", n) }

// wire connects all machines by one bridge, which belongs to the control plane. Each node
// routes to the pods of the others. The control plane, where the load comes from too,
// reaches Services through the first node, as a load balancer does.
func (c *cluster) wire(ctx context.Context) {
	c.sh(ctx, c.control, fmt.Sprintf(`
		ip link add fabric type bridge
		ip address add %s/24 dev fabric
		ip link set fabric up
		echo 1 > /proc/sys/net/ipv4/ip_forward`, controlIP))
	for i, n := range c.nodes {
		port := fmt.Sprintf("port-%d", i)
		// The other end goes to the node's namespace, which is named by its first process, as
		// this namespace of processes knows it.
		link := c.control.onNetwork(ctx, "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns",
			n.pid())
		must(output(link))
		c.sh(ctx, c.control, fmt.Sprintf("ip link set %s master fabric up", port))
		lines := []string{
			fmt.Sprintf("ip address add %s/24 dev eth0", nodeIP(i)),
			"ip link set eth0 up",
			"ip route add default via " + controlIP,
			"echo 1 > /proc/sys/net/ipv4/ip_forward",
		}
		for j := range c.nodes {
			if j != i {
				lines = append(lines, fmt.Sprintf("ip route add %s via %s", nodePods(j), nodeIP(j)))
			}
		}
		c.sh(ctx, n.machine, strings.Join(lines, "\n"))
		c.sh(ctx, c.control, fmt.Sprintf("ip route add %s via %s", nodePods(i), nodeIP(i)))
	}
	c.sh(ctx, c.control, fmt.Sprintf("ip route add %s via %s", serviceRange, nodeIP(0)))
}

// sh runs lines on a machine.
func (c *cluster) sh(ctx context.Context, on *machine, lines string) {
	must(output(on.inside(ctx, "bash", "-euc", lines)))
}
