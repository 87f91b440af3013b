package service

import (
	"context"
	"io"
	"time"

	"licet/licensing"
	"licet/metrics/guard"
	"licet/node"
	"licet/node/store"
)

// Config is what a service is made of. Every field is needed unless its comment says
// otherwise.
type Config struct {
	node.Config // of the engine

	Entropy io.Reader // for keys and ids; crypto/rand.Reader in production

	SeenStep      time.Duration // see licensing.Activate; 0: licensing.DefaultSeenStep
	OrderLifetime time.Duration // 0: 24 h
	// TestOrderLifetime is that of orders in test mode; 0: the same.
	TestOrderLifetime time.Duration
	// ExpiryMargin is how long ago the end of an order or a license must have come
	// until it is recorded: twice what the clocks of nodes may be wrong by; 0: 2 min.
	ExpiryMargin time.Duration
	KeyScanEvery time.Duration // how often the API keys are looked after, see FollowKeys; 0: 1 s
	KeyUseEvery  time.Duration // how often uses of API keys are stored, see KeepKeyUses; 0: 10 s
	LivePayments bool          // a payment provider for live orders is set up

	Events store.Events
	Sweeps store.Sweeps
	// KeepEvents says how long events are kept; 0: DefaultEventAge, DefaultEventBytes.
	KeepEvents store.EventRetention

	Deliveries store.DeliveryLog // nil: this node shows no deliveries

	Keys store.Keys
	Ring licensing.MasterRing // what API secrets are derived from; needed to make API keys
}

const (
	defaultOrderLifetime = 24 * time.Hour
	defaultExpiryMargin  = 2 * time.Minute
)

// Service is the use cases of one node, on its engine. Make it with [New]; it is safe
// for concurrent use.
type Service struct {
	*node.Node // the engine
	*Orders
	*Licenses
	*Products
	*Keys
	*Webhooks
	*Events
	*Redactions
	*Sweeps
}

// core is what all use cases have in common.
type core struct {
	cfg    Config
	engine *node.Node
	guard  *guard.Guard
	lists  *listGate
}

// New makes a service and its engine. It starts nothing.
func New(cfg Config) *Service {
	if cfg.OrderLifetime == 0 {
		cfg.OrderLifetime = defaultOrderLifetime
	}
	if cfg.TestOrderLifetime == 0 {
		cfg.TestOrderLifetime = cfg.OrderLifetime
	}
	if cfg.ExpiryMargin == 0 {
		cfg.ExpiryMargin = defaultExpiryMargin
	}
	if cfg.SeenStep == 0 {
		cfg.SeenStep = licensing.DefaultSeenStep
	}
	if cfg.KeyScanEvery == 0 {
		cfg.KeyScanEvery = keyScanEvery
	}
	if cfg.KeyUseEvery == 0 {
		cfg.KeyUseEvery = keyUseEvery
	}
	if cfg.KeepEvents.Age == 0 {
		cfg.KeepEvents.Age = store.DefaultEventAge
	}
	if cfg.KeepEvents.Bytes == 0 {
		cfg.KeepEvents.Bytes = store.DefaultEventBytes
	}
	engine := node.New(cfg.Config)
	c := &core{cfg: cfg, engine: engine, guard: guard.New(cfg.Metrics, cfg.Log), lists: newListGate(cfg.Metrics)}
	keys := &Keys{core: c, cache: newKeyCache(&cfg, engine)}
	s := &Service{
		Node:       engine,
		Orders:     &Orders{c},
		Licenses:   &Licenses{c},
		Products:   &Products{c},
		Keys:       keys,
		Webhooks:   &Webhooks{c},
		Events:     newEvents(c, keys.cache),
		Redactions: &Redactions{c},
		Sweeps:     &Sweeps{core: c},
	}
	cfg.Metrics.Ready.AddSource(s.readiness)
	return s
}

// readiness is 1 while the node is ready, as far as is known without asking the store: FollowKeys
// asks the store every second anyway. Load balancers send nothing to nodes that
// are not ready, so nothing that is counted of requests would show it.
func (s *Service) readiness() float64 {
	if s.Node.Leaving() || !s.Keys.cache.trusted() {
		return 0
	}
	return 1
}

// StopIntake refuses commands from now on; those that were accepted go on.
// Readiness fails too.
func (s *Service) StopIntake() {
	s.Node.StopIntake()
	s.Events.feed.wake() // who waits for events is to see it
}

// Drain stops the intake and waits until everything accepted was answered, or
// ctx ends.
func (s *Service) Drain(ctx context.Context) error {
	s.StopIntake()
	return s.Node.Drain(ctx)
}
