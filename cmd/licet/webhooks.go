package main

import (
	"context"
	"net/netip"
	"time"

	"github.com/spf13/pflag"

	"licet/delivery"
	"licet/delivery/webhook"
	"licet/handlers"
	"licet/kv/deliveries"
	"licet/node/service"
	"licet/node/store"
)

const (
	minEventAge   = time.Minute
	minEventBytes = 1 << 20
)

// eventsConfig contains the settings of events and of their delivery.
type eventsConfig struct {
	Deliver       bool
	Networks      []string
	Ports         []uint
	RetainedAge   time.Duration
	RetainedBytes int64

	// Loopback allows webhooks to loopback addresses, on any port, also over HTTP.
	Loopback bool
}

func (c *eventsConfig) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&c.RetainedAge, "event-retention-age", store.DefaultEventAge, "how long to keep events, at least 1m")
	fs.Int64Var(&c.RetainedBytes, "event-retention-bytes", store.DefaultEventBytes,
		"how many `bytes` of events to keep, for all accounts together, at least 1048576; above that the account with "+
			"the most bytes loses its oldest events")
	fs.BoolVar(&c.Deliver, "webhook-delivery", true,
		"deliver events to webhook endpoints; if false, other nodes must deliver them")
	fs.StringSliceVar(&c.Networks, "webhook-allow-networks", nil,
		"private `networks` that webhooks may reach, such as 10.0.0.0/8; a loopback network, such as 127.0.0.0/8, "+
			"also allows http:// and any port there")
	fs.UintSliceVar(&c.Ports, "webhook-ports", []uint{443}, "`ports` that webhooks may reach")
}

func (c *eventsConfig) validate() error {
	if c.RetainedAge < minEventAge {
		return badUsage("--event-retention-age is %v: write at least 1m", c.RetainedAge)
	}
	if c.RetainedBytes < minEventBytes {
		return badUsage("--event-retention-bytes is %d: write at least %d", c.RetainedBytes, minEventBytes)
	}
	if _, err := parseNetworks(c.Networks); err != nil {
		return badUsage("--webhook-allow-networks: %w", err)
	}
	if len(c.Ports) == 0 {
		return badUsage("--webhook-ports is empty: write a port, such as 443")
	}
	for _, port := range c.Ports {
		if port < 1 || port > 65535 {
			return badUsage("--webhook-ports: %d is not a port: write a number from 1 to 65535", port)
		}
	}
	return nil
}

// policy returns which addresses webhooks may reach. The settings must be valid.
func (c *eventsConfig) policy() (webhook.Policy, error) {
	networks, err := parseNetworks(c.Networks)
	if err != nil {
		return webhook.Policy{}, err
	}
	policy := webhook.Policy{Networks: networks, Loopback: c.Loopback}
	for _, port := range c.Ports {
		policy.Ports = append(policy.Ports, uint16(port))
	}
	for _, network := range networks {
		// The user named a loopback network on purpose.
		policy.Loopback = policy.Loopback || isLoopback(network)
	}
	return policy, nil
}

// isLoopback reports whether all addresses of a network are loopback addresses.
func isLoopback(network netip.Prefix) bool {
	if network.Addr().Is4() {
		return network.Addr().IsLoopback() && network.Bits() >= 8
	}
	return network.Addr().IsLoopback() && network.Bits() == 128
}

// sender starts the sender of webhooks.
func (s *instance) sender(policy webhook.Policy) *webhook.Sender {
	sender := webhook.NewSender(webhook.Config{Policy: policy, Version: s.version, Clock: time.Now})
	s.parts.started("the sender of webhooks", func(context.Context) error {
		sender.Close()
		return nil
	})
	return sender
}

// deliver starts the delivery of events to webhook endpoints, until the service stops. api renders the messages.
func (s *instance) deliver(n *service.Service, sender *webhook.Sender, api *handlers.Server) {
	if !s.cfg.Deliver {
		return
	}
	engine := delivery.New(delivery.Config{
		Store: deliveries.New(s.store), Node: n, Sender: sender, Render: api.RenderEvent,
		Clock: time.Now, Metrics: s.instruments, Log: s.log, Tracer: s.tracer,
	})
	engine.Start()
	s.parts.started("the deliveries", engine.Stop)
}
