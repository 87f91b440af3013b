package service

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/oklog/ulid/v2"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics/guard"
	"licet/node"
	"licet/node/store"
)

// Config contains the settings and the parts of a service. Every field is required unless its comment
// names a default.
type Config struct {
	node.Config // the engine's

	Entropy io.Reader // for keys and ids; crypto/rand.Reader in production

	SeenStep      time.Duration // see licensing.Activate; default licensing.DefaultSeenStep
	OrderLifetime time.Duration // default 24 h
	// TestOrderLifetime is the lifetime of orders in test mode. The default is OrderLifetime.
	TestOrderLifetime time.Duration
	// ExpiryMargin is how long the service waits after the end of an order or a license before it
	// records the end: twice the largest clock error of a node. The default is 2 min.
	ExpiryMargin time.Duration
	SweepEvery   time.Duration // about the pause between two passes of a chore, see Sweep; default 1 min
	KeyScanEvery time.Duration // the pause between scans of the API keys, see FollowKeys; default 1 s
	KeyUseEvery  time.Duration // the pause between stores of API key uses, see KeepKeyUses; default 10 s
	// Accepts returns why a new order with an amount can't be paid through a payment provider. The default accepts all
	// orders of test mode, and no other.
	Accepts func(licensing.Order) error

	Events store.Events
	Sweeps store.Sweeps
	// KeepEvents bounds the events that are kept. The default is DefaultEventAge and
	// DefaultEventBytes.
	KeepEvents store.EventRetention

	Deliveries store.DeliveryLog // nil: this node answers no questions about deliveries

	// Usages returns by how much owners' stores have grown, and Budget bounds how much an owner may store. With Usages
	// nil or a zero Budget, the service refuses no growth.
	Usages     store.Usages
	Budget     licensing.Budget
	UsageEvery time.Duration // the pause between passes of KeepUsage; default 10 s

	Keys store.Keys
	// MaxAPIKeys is how many usable API keys an owner may have. 0: no maximum.
	MaxAPIKeys int
	// Ring has the master keys, which the secrets of API keys and webhook endpoints and the pay tokens of orders are
	// derived from. Required to create any of these.
	Ring keyring.MasterRing
}

const (
	defaultOrderLifetime = 24 * time.Hour
	defaultExpiryMargin  = 2 * time.Minute
	defaultSweepEvery    = time.Minute
)

// Service offers the use cases of one node. Create it with [New]. It is safe for concurrent use.
type Service struct {
	*node.Node // the engine
	*Orders
	*Sandboxes
	*Payments
	*Subscriptions
	*Trials
	*Licenses
	*Products
	*Rollouts
	*Aliases
	*Keys
	*Webhooks
	*Receipts
	*Events
	*Redactions
	*Budgets
	*Sweeps
	*LeaseCounts
}

// core contains what all use cases share.
type core struct {
	cfg    Config
	engine *node.Node
	guard  *guard.Guard

	lists      *gate // pages of lists
	redactions *gate
	budgets    *Budgets

	entitlements entitlementsCache
}

// New returns a service with its engine. New starts no goroutine.
func New(cfg Config) *Service {
	if cfg.OrderLifetime == 0 {
		cfg.OrderLifetime = defaultOrderLifetime
	}
	if cfg.TestOrderLifetime == 0 {
		cfg.TestOrderLifetime = cfg.OrderLifetime
	}
	if cfg.Accepts == nil {
		cfg.Accepts = acceptTestOrders
	}
	if cfg.ExpiryMargin == 0 {
		cfg.ExpiryMargin = defaultExpiryMargin
	}
	if cfg.SweepEvery == 0 {
		cfg.SweepEvery = defaultSweepEvery
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
	if cfg.UsageEvery == 0 {
		cfg.UsageEvery = usageEvery
	}
	budgets := newBudgets(&cfg)
	cfg.Config.Budgets = budgets
	engine := node.New(cfg.Config)
	budgets.engine = engine
	shed := cfg.Metrics.CommandsShed
	c := &core{
		cfg: cfg, engine: engine, guard: guard.New(cfg.Metrics, cfg.Log),
		lists:      newGate(listsAtOnce, shed.WithLabelValues("lists")),
		redactions: newGate(redactionsAtOnce, shed.WithLabelValues("redactions")),
		budgets:    budgets, entitlements: newEntitlementsCache(),
	}
	aliases := newAliases(c)
	keys := &Keys{core: c, cache: newKeyCache(&cfg, engine)}
	rollouts := &Rollouts{core: c, places: make(chan struct{}, rolloutsAtOnce)}
	orders := &Orders{core: c}
	s := &Service{
		Node:          engine,
		Orders:        orders,
		Sandboxes:     &Sandboxes{c, orders},
		Payments:      newPayments(c, orders),
		Subscriptions: &Subscriptions{c, orders},
		Trials:        &Trials{c},
		Licenses:      &Licenses{c, aliases},
		Products:      &Products{c},
		Rollouts:      rollouts,
		Aliases:       aliases,
		Keys:          keys,
		Webhooks:      &Webhooks{c},
		Receipts:      newReceipts(c),
		Events:        newEvents(c, keys.cache),
		Redactions:    &Redactions{c},
		Budgets:       budgets,
		Sweeps:        &Sweeps{core: c, rollouts: rollouts},

		LeaseCounts: &LeaseCounts{core: c},
	}
	cfg.Metrics.Ready.AddSource(s.readiness)
	return s
}

// readiness returns 1 while the node is ready, else 0. It makes no request: FollowKeys asks the store
// every second anyway. Load balancers send no requests to a node that is not ready, so no request
// metric would show the state.
func (s *Service) readiness() float64 {
	if s.Node.Leaving() || s.Node.UnreadyByClock() != nil || !s.Keys.cache.trusted() {
		return 0
	}
	return 1
}

// StopIntake makes the node refuse new commands. Accepted commands continue. The node is no longer
// ready.
func (s *Service) StopIntake() {
	s.Node.StopIntake()
	s.Events.feed.end() // callers that wait for events return
}

// Drain stops the intake and returns when all accepted commands are answered, or when ctx ends.
func (s *Service) Drain(ctx context.Context) error {
	s.StopIntake()
	return s.Node.Drain(ctx)
}

// NewULID returns a new id. what names the object in an error message.
func NewULID(now time.Time, entropy io.Reader, what string) (string, error) {
	id, err := ulid.New(ulid.Timestamp(now), entropy)
	if err != nil {
		return "", fmt.Errorf("make the id of %s: %w", what, err)
	}
	return id.String(), nil
}
