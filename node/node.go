package node

import (
	"context"
	"hash/maphash"
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
	Records  store.Records
	Queries  store.Queries
	KeyCheck licensing.KeyCheck
	Clock    func() time.Time
	Metrics  *metrics.Metrics
	Log      zerolog.Logger
	Tracer   *tracing.Tracer // nil: nothing is traced

	SeenEvery  time.Duration // how often what was seen is stored, see KeepSeen; 0: 1 s
	QueueLimit int           // commands waiting for one record; 0: 4096
	QueueDelay time.Duration // how long commands may wait to be served, see admission; 0: 100 ms

	Peers      Peers             // reaches the other nodes; nil: this node runs all that comes to it
	Self       store.Incarnation // the store's own, which records name; needed with Peers
	YieldAfter int               // swaps lost until a record is yielded; 0: 3
	// HopMargin is how much earlier commands that were sent to another node are over
	// there than here, for timers that are late; 0: 250 ms. Commands that have less
	// than four times as much left are not sent.
	HopMargin time.Duration
}

const (
	defaultQueueLimit = 4096
)

// Node runs commands against a store. Make it with [New]; it is safe for
// concurrent use.
type Node struct {
	cfg       Config
	guard     *guard.Guard
	admission *admission
	placement *placement
	seed      maphash.Seed
	shards    [shardCount]shard
	seen      seenDevices

	claimLock sync.Mutex
	claiming  map[licensing.Ref]struct{} // claims being worked on here; guarded by claimLock

	leaving  atomic.Bool
	gate     sync.RWMutex // held for reading while work is let in
	draining bool         // guarded by gate
	work     sync.WaitGroup
}

// New makes a node. It starts nothing: goroutines live only while there is
// work.
func New(cfg Config) *Node {
	if cfg.SeenEvery == 0 {
		cfg.SeenEvery = defaultSeenEvery
	}
	if cfg.QueueLimit == 0 {
		cfg.QueueLimit = defaultQueueLimit
	}
	if cfg.QueueDelay == 0 {
		cfg.QueueDelay = defaultQueueDelay
	}
	if cfg.HopMargin == 0 {
		cfg.HopMargin = defaultHopMargin
	}
	admission := newAdmission(&cfg)
	n := &Node{
		cfg:       cfg,
		guard:     guard.New(cfg.Metrics, cfg.Log),
		admission: admission,
		placement: newPlacement(&cfg),
		seed:      maphash.MakeSeed(),
		claiming:  make(map[licensing.Ref]struct{}),
	}
	for i := range n.shards {
		n.shards[i].boxes = make(map[licensing.Ref]*mailbox)
		n.shards[i].outboxes = make(map[licensing.Ref]*mailbox)
	}
	cfg.Metrics.Mailboxes.AddSource(n.countMailboxes)
	cfg.Metrics.CommandsWaiting.AddSource(n.countWaiting)
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

// Ready tells whether the node can serve: it is not leaving and its store
// answers.
func (n *Node) Ready(ctx context.Context) error {
	if n.leaving.Load() {
		return errDraining
	}
	return n.cfg.Queries.Ping(ctx)
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
