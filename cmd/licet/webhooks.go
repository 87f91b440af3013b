package main

import (
	"context"
	"net/netip"
	"time"

	"github.com/spf13/pflag"

	"licet/delivery"
	"licet/delivery/webhook"
	"licet/handlers"
	"licet/node/service"
	"licet/node/store"
)

const (
	minEventAge   = time.Minute
	minEventBytes = 1 << 20
)

// eventsConfig is the settings of events, and of their delivery.
type eventsConfig struct {
	Deliver       bool
	Networks      []string
	Ports         []uint
	RetainedAge   time.Duration
	RetainedBytes int64

	// Loopback lets webhooks reach this machine, at any port and also over HTTP.
	Loopback bool
}

func (c *eventsConfig) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&c.RetainedAge, "event-retention-age", store.DefaultEventAge, "how long events are kept, at least 1m; the oldest go first")
	fs.Int64Var(&c.RetainedBytes, "event-retention-bytes", store.DefaultEventBytes, "how many `bytes` of events are kept, of all accounts together, at least 1048576; beyond that the account with the most loses its oldest ones")
	fs.BoolVar(&c.Deliver, "webhook-delivery", true, "deliver events to webhook endpoints; with false other nodes must")
	fs.StringSliceVar(&c.Networks, "webhook-allow-networks", nil, "`networks` that webhooks may reach although they are not public, such as 10.0.0.0/8; one of this machine, such as 127.0.0.0/8, allows http:// and any port there")
	fs.UintSliceVar(&c.Ports, "webhook-ports", []uint{443}, "`ports` that webhooks may reach")
}

func (c *eventsConfig) validate() error {
	if c.RetainedAge < minEventAge {
		return badUsage("--event-retention-age is %v: it must be at least 1m", c.RetainedAge)
	}
	if c.RetainedBytes < minEventBytes {
		return badUsage("--event-retention-bytes is %d: it must be at least %d", c.RetainedBytes, minEventBytes)
	}
	if _, err := parseNetworks(c.Networks); err != nil {
		return badUsage("--webhook-allow-networks: %w", err)
	}
	if len(c.Ports) == 0 {
		return badUsage("--webhook-ports must name a port, such as 443")
	}
	for _, port := range c.Ports {
		if port < 1 || port > 65535 {
			return badUsage("--webhook-ports: %d is no port: it must be from 1 to 65535", port)
		}
	}
	return nil
}

// policy says which receivers may be reached. The settings must have been validated.
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
		// Whoever names this machine means it.
		policy.Loopback = policy.Loopback || ofThisMachine(network)
	}
	return policy, nil
}

// ofThisMachine tells whether a network is one of loopback addresses.
func ofThisMachine(network netip.Prefix) bool {
	if network.Addr().Is4() {
		return network.Addr().IsLoopback() && network.Bits() >= 8
	}
	return network.Addr().IsLoopback() && network.Bits() == 128
}

// sender makes what sends webhooks.
func (s *instance) sender(policy webhook.Policy) *webhook.Sender {
	sender := webhook.NewSender(webhook.Config{Policy: policy, Version: s.version, Clock: time.Now})
	s.parts.started("the sender of webhooks", func(context.Context) error {
		sender.Close()
		return nil
	})
	return sender
}

// deliver delivers events to webhook endpoints until the service stops. The front
// tells what a message says.
func (s *instance) deliver(n *service.Service, sender *webhook.Sender, front *handlers.Server) {
	if !s.cfg.Deliver {
		return
	}
	engine := delivery.New(delivery.Config{
		Store: s.store, Node: n, Sender: sender, Render: front.RenderEvent,
		Clock: time.Now, Metrics: s.instruments, Log: s.log, Tracer: s.tracer,
	})
	engine.Start()
	s.parts.started("the deliveries", engine.Stop)
}
