package clocks

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/metrics"
	"licet/node/store"
)

const (
	// DefaultTolerance is by how much clocks may differ before a node refuses requests.
	DefaultTolerance = 2 * time.Second
	// trustFor is how long a proof allows the node to act by time, from when the read began that proves it. A
	// registration outlives its last stamp by more: it has a lease of ten seconds, renewed each 3.3 seconds.
	trustFor = 6 * time.Second
	// stepGrace bounds how long a node refuses requests only because its clock was set. New bounds take about two
	// seconds; they take forever while the store takes no stamps.
	stepGrace = 10 * time.Second
	// startGrace bounds how long a node that starts is not ready only because its clock is not compared yet. A lone
	// node has its verdict at once, and other nodes after about two seconds. A dead node counts for ten seconds.
	startGrace = 5 * time.Second
	// slept is by how much the clock may run ahead of the monotonic clock between two comparisons before the machine
	// counts as asleep meanwhile, and by how much it may differ before it counts as set. NTP slews a clock by less than
	// a millisecond in that time.
	slept = 100 * time.Millisecond
)

var (
	// ErrUntrusted reports that the node does not act by time at present. Nothing was executed.
	ErrUntrusted = fmt.Errorf("the node does not act by its clock: %w", licensing.ErrClockInDoubt)
	errDiffers   = &licensing.Error{
		Reason:  licensing.ReasonUnavailable,
		Message: "the node's clock differs from the clocks of most nodes; nothing was changed",
	}
	errStepped = &licensing.Error{
		Reason:  licensing.ReasonUnavailable,
		Message: "the node's clock was set, and must be compared with the other nodes' clocks; nothing was changed",
	}
)

// Source reads a clock: the wall time, and at the same moment the monotonic time since the start of the process.
type Source func() (wall time.Time, elapsed time.Duration)

// System returns the clock of the machine.
func System() Source {
	start := time.Now()
	return func() (time.Time, time.Duration) {
		now := time.Now()
		return now, now.Sub(start)
	}
}

// Config configures a Comparison. Every field is required unless its comment says otherwise.
type Config struct {
	Self      store.Incarnation
	Clock     Source
	Tolerance time.Duration // 0: DefaultTolerance
	Metrics   *metrics.Metrics
	Log       zerolog.Logger
}

// Comparison compares the clock of a node with the other nodes' clocks. Make it with [New]. It is safe for concurrent
// use, except that one goroutine calls Stamp and Compare. A nil Comparison trusts the clock.
type Comparison struct {
	cfg   Config
	state atomic.Pointer[state]

	nodes atomic.Pointer[[]store.Incarnation] // see Nodes

	mu       sync.Mutex // guards what follows
	evidence evidence
	began    time.Duration // when Stamp was called last
	newest   time.Time     // the latest time that Stamp has returned
	// suspect: the clock has differed from another node's clock, and has not agreed with one since.
	suspect bool
	dating  dating
	own     join          // of this node
	zero    time.Time     // the wall time at the monotonic time 0, as of the latest Stamp or Compare
	stale   int64         // the registration of this node in which its clock was set; 0: none
	again   bool          // the registration must end: the clock was set in it
	since   time.Duration // this node has known since this monotonic time which nodes leave; see earlier
	read    time.Duration // when the latest read began; monotonic
}

// proof says that most clocks were within a distance of the node's clock, as the clock was set then.
type proof struct {
	within time.Duration
	zero   time.Time     // the wall time at the monotonic time 0, as the clock was set then
	at     time.Duration // when the read began that proves it; monotonic
}

// state is the result of the latest comparison. It never changes.
type state struct {
	verdict verdict
	proof   *proof        // the latest, unless a later comparison contradicts the proof; nil: none
	zero    time.Time     // the wall time at the monotonic time 0, as the clock was set then
	at      time.Duration // of the comparison; monotonic
	// refuseUntil: requests are refused until this monotonic time, since the clock was set.
	refuseUntil time.Duration
	// startsUntil: the node is not ready until this monotonic time, since it has had no verdict yet.
	startsUntil time.Duration
	documents   *licensing.DocumentClock // see Documents
}

// New returns a Comparison that has compared nothing yet: the node serves, and does not act by time.
func New(cfg Config) *Comparison {
	if cfg.Tolerance == 0 {
		cfg.Tolerance = DefaultTolerance
	}
	c := &Comparison{cfg: cfg, evidence: evidence{nodes: map[store.Incarnation]*witness{}}}
	wall, elapsed := c.now()
	c.state.Store(&state{zero: wall.Add(-elapsed), at: elapsed, startsUntil: elapsed + startGrace,
		documents: licensing.ClocksUnknown()})
	c.zero = wall.Add(-elapsed)
	c.dating.doubtUntil = elapsed + startGrace
	c.report(undecided, nil)
	return c
}

// Nodes returns the nodes that were registered at the latest comparison, this node too. The caller must not change the
// slice.
func (c *Comparison) Nodes() []store.Incarnation {
	if c == nil {
		return nil
	}
	if nodes := c.nodes.Load(); nodes != nil {
		return *nodes
	}
	return nil
}

// now reads the clock. The wall time has no monotonic reading, so differences are differences of wall time.
func (c *Comparison) now() (wall time.Time, elapsed time.Duration) {
	wall, elapsed = c.cfg.Clock()
	return wall.Round(0), elapsed
}

// stepped returns by how much the clock was set since it showed zero at the monotonic time 0.
func stepped(zero, wall time.Time, elapsed time.Duration) time.Duration {
	return wall.Sub(zero.Add(elapsed))
}

// beyond reports whether a difference is more than the tolerance.
func (c *Comparison) beyond(d time.Duration) bool { return d.Abs() > c.cfg.Tolerance }

// Refusal returns why the node must refuse all requests at present; nil if it may serve. Refusal costs a look at the
// clock.
func (c *Comparison) Refusal() error {
	if c == nil {
		return nil
	}
	s := c.state.Load()
	wall, elapsed := c.now()
	switch {
	case s.verdict == differs:
		return errDiffers
	case elapsed < s.refuseUntil, elapsed-s.at < stepGrace && c.beyond(stepped(s.zero, wall, elapsed)):
		return errStepped
	default:
		return nil
	}
}

// Unready returns why no requests should be sent to the node at present; nil if they may. Besides Refusal, a node that
// has just started is not ready before its clock is compared, for startGrace at most.
func (c *Comparison) Unready() error {
	if err := c.Refusal(); err != nil || c == nil {
		return err
	}
	if _, elapsed := c.now(); elapsed < c.state.Load().startsUntil {
		return ErrUntrusted
	}
	return nil
}

// Untrusted returns ErrUntrusted unless the node may act by time at present: remove or record what has ended.
func (c *Comparison) Untrusted() error {
	if c == nil {
		return nil
	}
	p := c.state.Load().proof
	wall, elapsed := c.now()
	if p == nil || elapsed-p.at > trustFor || p.within+stepped(p.zero, wall, elapsed).Abs() > MaxApart {
		return ErrUntrusted
	}
	return nil
}

// IsUntrusted reports whether an error is ErrUntrusted.
func IsUntrusted(err error) bool { return errors.Is(err, ErrUntrusted) }

// Stamp implements store.Stamper.
func (c *Comparison) Stamp() (now time.Time, registerAgain bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, elapsed := c.now()
	c.began = elapsed
	if wall.After(c.newest) {
		c.newest = wall
	}
	c.noteStep(wall, elapsed, c.own.created, len(c.Nodes()) > 1)
	return wall, c.again
}

// noteStep notes whether the clock was set since the last call. own is the registration of this node; 0: there is none.
// Without other nodes, none relies on its stamps.
func (c *Comparison) noteStep(wall time.Time, elapsed time.Duration, own int64, others bool) {
	if stepped(c.zero, wall, elapsed).Abs() > slept && others {
		c.stale = own
	}
	c.zero = wall.Add(-elapsed)
	c.again = own != 0 && own == c.stale
}

// Compare implements store.Stamper.
func (c *Comparison) Compare(stamps []store.Stamp) {
	nodes := make([]store.Incarnation, len(stamps))
	own := int64(0) // identifies the registration of this node; 0: there is none
	for i := range stamps {
		if nodes[i] = stamps[i].Node; nodes[i] == c.cfg.Self {
			own = stamps[i].Created
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.state.Load()
	wall, elapsed := c.now()
	next := &state{zero: wall.Add(-elapsed), at: elapsed}
	next.refuseUntil, next.startsUntil = last.refuseUntil, last.startsUntil
	step := stepped(last.zero, wall, elapsed)
	if c.beyond(step) {
		c.cfg.Log.Warn().Stringer("by", step.Round(time.Millisecond)).
			Msg("the clock was set; the node compares it again with the clocks of the other nodes")
		next.refuseUntil = elapsed + stepGrace
		c.dating.set(elapsed + stepGrace)
		clear(c.evidence.nodes)
	}
	c.noteStep(wall, elapsed, own, len(stamps) > 1)
	c.evidence.learn(c.cfg.Self, stamps, c.began, elapsed)
	stands := last.proof
	// A node that still relies on this node's stamps of before a step counts as a node that may have left since.
	paused := c.nodes.Load() == nil || elapsed-c.read > trustFor || step.Abs() > slept
	if c.beyond(step) || step > slept {
		c.evidence.forgetReads()
		stands = nil // the proof is older than its monotonic time says
	}
	others := c.evidence.bounds(next.zero)
	if c.own.created != own {
		c.own = join{c.cfg.Self, own, elapsed}
	}
	if paused {
		c.since = elapsed // a node may have come and gone since the read before
	}
	c.read = c.began
	c.nodes.Store(&nodes)
	before := earlier(others, c.evidence.left(next.zero), c.own, c.since, elapsed)
	next.verdict = c.decide(others, wall, own != 0 && !c.again && before <= MaxApart)
	next.documents = c.date(next.verdict, others, elapsed)
	switch {
	case next.verdict == agrees:
		next.proof = &proof{max(before, majority(others, bounds.far)), next.zero, c.began}
	case own != 0 && !c.again && next.verdict == undecided && len(others) > 0 && tooWide(others):
		next.proof = stands
	}
	if next.verdict != undecided || len(others) < 2 {
		next.refuseUntil = 0
	}
	if next.verdict != undecided {
		next.startsUntil = 0
	}
	if next.verdict != last.verdict {
		c.log(next.verdict, others)
	}
	c.report(next.verdict, others)
	c.state.Store(next)
}

// Leave implements store.Stamper.
func (c *Comparison) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again = false
	next := *c.state.Load()
	next.proof = nil
	c.state.Store(&next)
}

// decide returns the verdict that follows from the other nodes' bounds, and for a lone node from its own past. A node
// does not agree unless it may: it is registered, so that no other nodes form a majority without it, and is near the
// nodes that may still act by an earlier majority.
func (c *Comparison) decide(others []bounds, wall time.Time, may bool) verdict {
	v := decide(others, c.cfg.Tolerance)
	switch {
	case v == agrees && !may:
		return undecided
	case len(others) > 0 && v == agrees:
		c.suspect = false
	case len(others) > 0:
		c.suspect = c.suspect || c.beyond(farthest(others))
	case c.suspect || c.newest.Sub(wall) > c.cfg.Tolerance:
		return undecided
	}
	return v
}

// farthest returns the greatest difference that is proven.
func farthest(others []bounds) (most time.Duration) {
	for _, b := range others {
		if d := b.differ(); d.Abs() > most.Abs() {
			most = d
		}
	}
	return most
}

// log writes a line about a new verdict. A verdict may be undecided for some seconds after a node has started: that is
// no reason for a warning.
func (c *Comparison) log(verdict verdict, others []bounds) {
	event, message := c.cfg.Log.Info(), "the clock agrees with the clocks of most nodes"
	switch {
	case verdict == differs:
		event, message = c.cfg.Log.Error(),
			"the clock differs from the clocks of most nodes: this node refuses all requests until the clock is right"
	case verdict == undecided:
		message = "no majority of nodes is known to agree with the clock: this node removes and records nothing by time"
		if c.suspect {
			event = c.cfg.Log.Warn()
		}
	}
	event.Int("other_nodes", len(others)).Stringer("another_is_ahead_by", farthest(others).Round(time.Millisecond)).
		Msg(message)
}

// report sets the metrics.
func (c *Comparison) report(now verdict, others []bounds) {
	for _, v := range []verdict{undecided, agrees, differs} {
		value := 0.0
		if v == now {
			value = 1
		}
		c.cfg.Metrics.ClockState.WithLabelValues(v.String()).Set(value)
	}
	c.cfg.Metrics.ClockDifference.Set(farthest(others).Seconds())
}
