// Package node runs commands. It holds no truth of its own: records lie in a
// [store.Store], and any number of nodes may stand in front of one.
//
// A license or an order is an actor: one mailbox per record and node, one
// command at a time. Commands that wait for the same record are folded: they
// run one by one through licensing.Apply on one snapshot, and what they add up to
// is one compare-and-swap. If another node was first, the swap brings back
// what that one wrote, and the fold is made again on it. Nobody is answered
// before the store has said that the swap landed, so a node may die at any
// moment and nothing acknowledged is lost.
//
// A mailbox exists only while commands wait in it; an idle license costs
// nothing.
package node

import (
	"context"
	"hash/maphash"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/metrics/tracing"
	"licet/node/store"
)

// Config is what a node is made of. Every field is needed unless it says
// otherwise.
type Config struct {
	Store    store.Store
	KeyCheck licensing.KeyCheck
	Clock    func() time.Time
	Entropy  io.Reader // for keys and ids; crypto/rand.Reader in production
	Metrics  *metrics.Metrics
	Log      zerolog.Logger
	Tracer   *tracing.Tracer // nil: nothing is traced

	SeenStep      time.Duration // see licensing.Activate; 0: licensing.DefaultSeenStep
	SeenEvery     time.Duration // how often what was seen is stored, see KeepSeen; 0: 1 s
	OrderLifetime time.Duration // 0: 24 h
	// TestOrderLifetime is that of orders in test mode; 0: the same.
	TestOrderLifetime time.Duration
	// ExpiryMargin is how long ago the end of an order or a license must have come
	// until it is recorded: twice what the clocks of nodes may be wrong by; 0: 2 min.
	ExpiryMargin time.Duration
	QueueLimit   int           // commands waiting for one record; 0: 4096
	QueueDelay   time.Duration // how long commands may wait to be served, see admission; 0: 100 ms
	KeyScanEvery time.Duration // how often the API keys are looked after, see FollowKeys; 0: 1 s
	KeyUseEvery  time.Duration // how often uses of API keys are stored, see KeepKeyUses; 0: 10 s
	LivePayments bool          // a payment provider for live orders is set up

	Events store.EventStore // tells of what was recorded; nil: this node does not
	// KeepEvents says how long events are kept; 0: DefaultEventAge, DefaultEventBytes.
	KeepEvents store.EventRetention

	Deliveries store.DeliveryStore // tells of the delivery of webhooks; nil: this node does not

	Keys store.KeyStore       // makes and changes API keys, and keeps when they were used; nil: this node does neither
	Ring licensing.MasterRing // what API secrets are derived from; needed with Keys

	Peers      Peers             // reaches the other nodes; nil: this node runs all that comes to it
	Self       store.Incarnation // the store's own, which records name; needed with Peers
	YieldAfter int               // swaps lost until a record is yielded; 0: 3
	// HopMargin is how much earlier commands that were sent to another node are over
	// there than here, for timers that are late; 0: 250 ms. Commands that have less
	// than four times as much left are not sent.
	HopMargin time.Duration
}

const (
	defaultOrderLifetime = 24 * time.Hour
	defaultExpiryMargin  = 2 * time.Minute
	defaultQueueLimit    = 4096
)

// Node runs commands against a store. Make it with [New]; it is safe for
// concurrent use.
type Node struct {
	cfg        Config
	guard      *guard.Guard
	admission  *admission
	lists      *listGate
	placement  *placement
	keys       *keyCache
	feed       *feed
	delivering chan struct{} // bounds the pages of events that are read for deliveries
	seed       maphash.Seed
	shards     [shardCount]shard
	seen       seenDevices

	claimLock sync.Mutex
	claiming  map[licensing.Ref]struct{} // claims being worked on here; guarded by claimLock

	dueFrom sync.Map // by licensing.DueKind: the place, a string, where the next pass goes on; see eachDue

	leaving  atomic.Bool
	gate     sync.RWMutex // held for reading while work is let in
	draining bool         // guarded by gate
	work     sync.WaitGroup
}

// New makes a node. It starts nothing: goroutines live only while there is
// work.
func New(cfg Config) *Node {
	if cfg.SeenStep == 0 {
		cfg.SeenStep = licensing.DefaultSeenStep
	}
	if cfg.SeenEvery == 0 {
		cfg.SeenEvery = defaultSeenEvery
	}
	if cfg.OrderLifetime == 0 {
		cfg.OrderLifetime = defaultOrderLifetime
	}
	if cfg.TestOrderLifetime == 0 {
		cfg.TestOrderLifetime = cfg.OrderLifetime
	}
	if cfg.ExpiryMargin == 0 {
		cfg.ExpiryMargin = defaultExpiryMargin
	}
	if cfg.QueueLimit == 0 {
		cfg.QueueLimit = defaultQueueLimit
	}
	if cfg.QueueDelay == 0 {
		cfg.QueueDelay = defaultQueueDelay
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
	if cfg.HopMargin == 0 {
		cfg.HopMargin = defaultHopMargin
	}
	admission := newAdmission(&cfg)
	n := &Node{
		cfg:        cfg,
		guard:      guard.New(cfg.Metrics, cfg.Log),
		admission:  admission,
		lists:      newListGate(),
		placement:  newPlacement(&cfg),
		keys:       newKeyCache(&cfg, admission),
		feed:       newFeed(),
		delivering: make(chan struct{}, deliveryPages),
		seed:       maphash.MakeSeed(),
		claiming:   make(map[licensing.Ref]struct{}),
	}
	for i := range n.shards {
		n.shards[i].boxes = make(map[licensing.Ref]*mailbox)
		n.shards[i].outboxes = make(map[licensing.Ref]*mailbox)
	}
	cfg.Metrics.Mailboxes.From(n.countMailboxes)
	cfg.Metrics.CommandsWaiting.From(n.countWaiting)
	cfg.Metrics.Ready.From(n.readiness)
	return n
}

// Now is the time as records keep it: UTC, in whole milliseconds.
func (n *Node) Now() time.Time { return n.cfg.Clock().UTC().Truncate(time.Millisecond) }

// ParseLicenseKey reads a license key as people type it. It asks nobody.
func (n *Node) ParseLicenseKey(input string) (licensing.LicenseKey, error) {
	return n.cfg.KeyCheck.Parse(input)
}

// Full tells whether a command that came now would find no place. It costs next
// to nothing, and counts nothing.
func (n *Node) Full() bool { return n.admission.full() }

// RefuseIfFull refuses a command with ErrOverloaded, and counts that, if it
// would find no place now. It is for callers to ask before they do what makes a
// command of a request: while more comes than can be served, most of that would
// be in vain, and would be taken from those who are served. It takes no place.
func (n *Node) RefuseIfFull() error { return n.admission.refuseIfFull() }

// Crowded reports whether an owner may have no place left although the node is not
// full. It costs next to nothing, and counts nothing.
func (n *Node) Crowded() bool { return n.admission.crowded() }

// RefuseIfShared refuses an activation of a license with ErrOverloaded, and counts
// that, if the license's owner has no place left now. See RefuseIfFull.
func (n *Node) RefuseIfShared(key licensing.LicenseKey) error {
	return n.admission.refuseIfShared(n.shareOf(licensing.LicenseRef(key), nil))
}

// Authenticate finds the API key of a text. It answers nil where the text is
// no key, or one that is expired or revoked. The key is shared with others and
// must not be changed.
func (n *Node) Authenticate(ctx context.Context, text string) (*licensing.APIKey, error) {
	known, err := n.keys.find(ctx, licensing.HashAPIKey(text))
	if err != nil || known == nil {
		return nil, err
	}
	now := n.Now()
	if !known.key.Usable(now) {
		return nil, nil
	}
	known.used(now)
	return known.key, nil
}

// Ready tells whether the node can serve: it is not leaving and its store
// answers.
func (n *Node) Ready(ctx context.Context) error {
	if n.leaving.Load() {
		return errDraining
	}
	return n.cfg.Store.Ping(ctx)
}

// readiness is 1 while the node is ready, as far as is known without asking the store: FollowKeys
// asks the store every second anyway. Load balancers send nothing to nodes that
// are not ready, so nothing that is counted of requests would show it.
func (n *Node) readiness() float64 {
	if n.leaving.Load() || !n.keys.trusted() {
		return 0
	}
	return 1
}

var errDraining = &licensing.Error{Reason: licensing.ReasonUnavailable, Message: "the node is shutting down; nothing was changed"}

func (n *Node) isDraining() bool {
	n.gate.RLock()
	defer n.gate.RUnlock()
	return n.draining
}

// enter lets one piece of work in, unless the node is draining. The caller
// must call n.work.Done when it has ended.
func (n *Node) enter() error {
	n.gate.RLock()
	defer n.gate.RUnlock()
	if n.draining {
		return errDraining
	}
	n.work.Add(1)
	return nil
}

// Leave fails readiness from now on, so that callers are sent elsewhere;
// commands are still taken.
func (n *Node) Leave() { n.leaving.Store(true) }

// StopIntake refuses commands from now on; those that were accepted go on.
// Readiness fails too.
func (n *Node) StopIntake() {
	n.Leave()
	n.gate.Lock()
	n.draining = true
	n.gate.Unlock()
	n.feed.wake() // who waits for events is to see it
}

// Drain stops the intake and waits until everything accepted was answered, or
// ctx ends.
func (n *Node) Drain(ctx context.Context) error {
	n.StopIntake()
	done := make(chan struct{})
	n.guard.Start("drain", func() {
		defer close(done)
		n.work.Wait()
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
