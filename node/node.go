package node

import (
	"context"
	"sync"
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

	claimLock sync.Mutex
	claiming  map[licensing.Ref]struct{} // claims of requests under way here; guarded by claimLock
}

// runner runs the turns of mailboxes: it reads, folds, swaps and answers. It does not use mailboxes.
type runner struct {
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
			cfg: cfg, guard: guarding, admission: newAdmission(&cfg), placement: newPlacement(&cfg),
			limits: newWriteLimits(&cfg),
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
		lifecycle: lifecycle{guard: guarding},
		claiming:  make(map[licensing.Ref]struct{}),
	}
	n.mailboxes.init()
	cfg.Metrics.Mailboxes.AddSource(n.countMailboxes)
	cfg.Metrics.CommandsWaiting.AddSource(n.countWaiting)
	return n
}

// Now returns the time as records keep it: UTC, in whole milliseconds.
func (s *runner) Now() time.Time { return s.cfg.Clock().UTC().Truncate(time.Millisecond) }

// turnTime is the time for commands of a turn, and whether the node may act by it. One verdict holds for a fold and for
// the search before it: a node that acts by time in the fold, and did not in the search, would refuse devices of a
// license whose lapsed leases it has not looked for.
type turnTime struct {
	now        time.Time
	clocks     *clocks.Comparison
	asked      bool // most commands need no verdict
	actsByTime bool
	behind     time.Duration // see licensing.Record
}

// timeOfTurn returns the time for the commands of a turn. It fails if the node must refuse every request because of its
// clock: commands wait for their turn, and the clock may be set meanwhile.
func (s *runner) timeOfTurn() (turnTime, error) {
	now := s.Now() // before the check, which notices a step since the last comparison
	return turnTime{now: now, clocks: s.cfg.Clocks}, s.cfg.Clocks.Refusal()
}

// note notes in a record whether the node may act by the time, or else by how much its clock may be behind.
func (t *turnTime) note(record *licensing.Record) {
	if !t.asked {
		t.asked = true
		if t.actsByTime = t.clocks.Untrusted() == nil; !t.actsByTime {
			t.behind = t.clocks.Documents().Behind()
		}
	}
	record.ActsByTime, record.Behind = t.actsByTime, t.behind
}

// noteFor is note if a command depends on that, or its growth: that of an activation that takes the slot of an inactive
// device does.
func (t *turnTime) noteFor(cmd licensing.Command, record *licensing.Record) {
	if record.NeedsClock(cmd) {
		t.note(record)
	}
}

// LicenseKeys returns what makes, reads and writes the license keys of the store.
func (n *Node) LicenseKeys() keyring.LicenseKeys { return n.cfg.LicenseKeys }

// Full reports whether a command that came now would find no place. Full costs next to nothing, and counts nothing.
func (n *Node) Full() bool { return n.admission.full() }

// RefuseIfFull fails with ErrOverloaded, and counts a refusal, if a command would find no place now. Callers ask
// before they decode a request: in an overload most of that work would be lost, at the cost of the requests that
// are served. RefuseIfFull takes no place.
func (n *Node) RefuseIfFull() error { return n.admission.refuseIfFull() }

// Crowded reports whether an owner may have no place left although the node is not full. Crowded costs next to
// nothing, and counts nothing.
func (n *Node) Crowded() bool { return n.admission.crowded() }

// RefuseIfShared fails with ErrOverloaded, and counts a refusal, if the owner of a license has no place left now.
// See RefuseIfFull.
func (n *Node) RefuseIfShared(key licensing.LicenseKey) error {
	return n.admission.refuseIfShared(n.shareOf(licensing.LicenseRef(key), nil))
}

// RefuseByClock fails if the node must refuse every request because of its clock, see package clocks. It costs a look
// at the clock.
func (n *Node) RefuseByClock() error { return n.cfg.Clocks.Refusal() }

// UnreadyByClock fails if no requests should be sent to the node because of its clock, see package clocks.
func (n *Node) UnreadyByClock() error { return n.cfg.Clocks.Unready() }

// ActsByTime fails unless the node may end something because of its clock at present, see package clocks.
func (n *Node) ActsByTime() error { return n.cfg.Clocks.Untrusted() }

// LeaseTime returns the time by which leases have lapsed for a look-up; the zero time if the node must not act by its
// clock: then only those have lapsed that had ended by the last stamp of their license.
func (n *Node) LeaseTime() time.Time {
	now := n.Now() // before the check, as for timeOfTurn
	if n.ActsByTime() != nil {
		return time.Time{}
	}
	return now
}

// DocumentClock says how the node dates documents, see package clocks.
func (n *Node) DocumentClock() *licensing.DocumentClock { return n.cfg.Clocks.Documents() }

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
