package node

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/metrics/tracing"
	"licet/node/clocks"
	"licet/node/store"
)

// Config configures a node. Every field is needed unless its comment says otherwise.
type Config struct {
	Records     store.Records
	Queries     store.Queries
	LicenseKeys keyring.LicenseKeys
	Clock       func() time.Time
	Clocks      *clocks.Comparison // of Clock with the other nodes' clocks; nil: the node trusts Clock
	Metrics     *metrics.Metrics
	Log         zerolog.Logger
	Tracer      *tracing.Tracer // nil: the node traces nothing

	SeenEvery  time.Duration // how often the node stores when devices were seen, see KeepSeen; 0: 1 s
	QueueLimit int           // how many commands may wait for one record; 0: 4096
	QueueDelay time.Duration // how long commands may wait to be served, see admission; 0: 100 ms

	WriteLimits WriteLimits
	Budgets     Budgets // nil: no account has a budget of stored data

	Peers      Peers             // reaches the other nodes; nil: this node runs all its commands itself
	Self       store.Incarnation // the incarnation that the store's swaps name; needed with Peers or Clocks
	YieldAfter int               // how many lost swaps make the node yield a license; 0: 3
	// HopMargin is how much earlier commands expire on the node that they were sent to than here, since timers
	// may be late; 0: 250 ms. Commands with less than four times as much left are not sent.
	HopMargin time.Duration
}

const (
	defaultQueueLimit = 4096
)

// Node runs commands against a store. Make it with [New]; it is safe for concurrent use.
type Node struct {
	*runner
	lifecycle
	mailboxes
	openClaims
}

// runner runs the turns of mailboxes: it reads, folds, swaps and answers. It does not use mailboxes.
type runner struct {
	clock
	cfg       Config
	guard     *guard.Guard
	admission *admission
	placement *placement
	limits    *writeLimits
	changes   *changeLimit // while the store is almost full
	claims    *changeLimit // of owners beyond their budget
	trials    *changeLimit // of new trials
	// addressTrials limits the new trials of the end users of each network.
	addressTrials *changeLimit
	seen          seenDevices
}

// New makes a node. New starts no goroutine: goroutines live only while there is work.
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
	guarding := guard.New(cfg.Metrics, cfg.Log)
	n := &Node{
		runner: &runner{
			clock: clock{cfg.Clock, cfg.Clocks}, cfg: cfg, guard: guarding, admission: newAdmission(&cfg),
			placement: newPlacement(&cfg), limits: newWriteLimits(&cfg),
			changes: newChangeLimit(&cfg, PolicyReserve, reserveLimit,
				"the store is almost full, and this account makes too many changes for that; nothing was changed"),
			claims: newChangeLimit(&cfg, PolicyClaims, reserveLimit,
				"the account has used up its budget, and makes too many changes with an Idempotency-Key for that; "+
					"nothing was changed"),
			trials: newChangeLimit(&cfg, PolicyTrials, reserveLimit,
				"too many trials of this account begin at this time; nothing was changed"),
			addressTrials: newChangeLimit(&cfg, PolicyAddressTrials, addressTrialsLimit,
				"too many trials of this account begin from this address at this time; nothing was changed"),
		},
		lifecycle:  lifecycle{guard: guarding},
		openClaims: openClaims{claiming: make(map[licensing.Ref]struct{})},
	}
	n.mailboxes.init()
	cfg.Metrics.Mailboxes.AddSource(n.countMailboxes)
	cfg.Metrics.CommandsWaiting.AddSource(n.countWaiting)
	return n
}

// LicenseKeys returns what makes, reads and writes the license keys of the store.
func (s *runner) LicenseKeys() keyring.LicenseKeys { return s.cfg.LicenseKeys }

// Full reports whether a command that came now would find no place. Full costs next to nothing, and counts nothing.
func (n *Node) Full() bool { return n.admission.full() }

// RefuseIfFull fails with ErrOverloaded, and counts a refusal, if a command would find no place now. Callers ask
// before they decode a request: in an overload most of that work would be lost, at the cost of the requests that
// are served. RefuseIfFull takes no place.
func (n *Node) RefuseIfFull() error { return n.admission.refuseIfFull() }

// HalfFull reports whether at least half of the places are taken. Below that, each owner has a place left. HalfFull
// costs next to nothing, and counts nothing.
func (n *Node) HalfFull() bool { return n.admission.halfFull() }

// RefuseIfShared fails with ErrOverloaded, and counts a refusal, if the owner of a license has no place left now.
// See RefuseIfFull.
func (n *Node) RefuseIfShared(key licensing.LicenseKey) error {
	return n.admission.refuseIfShared(n.shareOf(licensing.LicenseRef(key), nil))
}

// Ready fails if the node can't serve: it is leaving, its clock is wrong or not compared yet, or its store does not
// answer.
func (n *Node) Ready(ctx context.Context) error {
	if n.leaving.Load() {
		return errDraining
	}
	if err := n.UnreadyByClock(); err != nil {
		return err
	}
	return n.cfg.Queries.Ping(ctx)
}
