package node

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/node/store"
)

const (
	// yieldAfter is how many swaps must be lost within lossWindow until a
	// record's commands are sent to who wins them. Two nodes that write now and
	// then lose one to each other now and then; those that write all the time
	// lose one in two.
	yieldAfter = 3
	lossWindow = time.Second
	// yieldSpan is how long commands are sent away before it is tried again to
	// swap them here. While that shows that nothing has changed, it doubles.
	yieldSpan    = time.Second
	yieldSpanMax = 16 * time.Second
	// hostPatience is how many losses a node takes, instead of yieldAfter, that
	// others have sent commands for the record within lossWindow. Others try now and
	// then whether they can swap for themselves, and that costs it some.
	hostPatience = 4 * yieldAfter
	// holdSpan is how long a node swaps for itself, whatever it loses, where the
	// one it yielded to did not take its commands, and tieSpan where it is to be the
	// one others yield to: a few times as long as a hop takes. By then they do, or
	// somebody else writes.
	holdSpan = time.Second
	tieSpan  = holdSpan / 4
	// redirectSpan is how long a node that yields to a lower one may be sent
	// commands until that is taken for a circle: a few times as long as a hop takes.
	redirectSpan = 500 * time.Millisecond
	// maxMoves is how often a node may be told to go elsewhere, and never find who
	// swaps for itself, until that is taken for a circle too. That is for hops that
	// take longer than redirectSpan.
	maxMoves = 8
	// maxContests bounds the records that are contended for at a time. What comes
	// beyond is swapped where it came to.
	maxContests = 4096
	// contestsSwept is how often records are forgotten that nobody contends for.
	contestsSwept = 10 * time.Second
)

// placement decides which node writes a record that several nodes write at the
// same time. Then most swaps are lost, and each that is lost has cost as much as
// one that lands. So a node that keeps losing sends the commands that wait for
// the record to the node that wrote it last, for a while. Nothing but speed
// depends on who writes: every node may be wrong about it at any time.
//
// Who yields, and is sent commands by another, runs them all the same, and tells
// the sender whom it yields to itself, so that chains get shorter. Two that yield
// to each other would contend as before, each with the other's commands: the
// higher one stops as soon as it learns of it, and holds the record for a while.
// In any longer circle there is a node that yields to a lower one too. If it is
// sent commands for longer than it takes to tell all senders, or is itself told
// time and again to go elsewhere, it stops likewise, so circles end.
type placement struct {
	peers      Peers // nil: every node writes for itself
	self       store.Incarnation
	yieldAfter int
	clock      func() time.Time // monotonic, unlike the node's own
	jitter     func(time.Duration) time.Duration

	count atomic.Int32 // contests, to be looked at without the lock
	mu    sync.Mutex
	// Guarded by mu:
	contests map[licensing.Ref]*contest
	swept    time.Time
}

func newPlacement(cfg *Config) *placement {
	p := &placement{
		peers: cfg.Peers, self: cfg.Self, yieldAfter: cfg.YieldAfter, clock: time.Now, jitter: around,
		contests: make(map[licensing.Ref]*contest), swept: time.Now(),
	}
	if p.yieldAfter == 0 {
		p.yieldAfter = yieldAfter
	}
	return p
}

// around is a time of three to five quarters of another one.
func around(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2) }

// off reports whether there is nobody to yield to.
func (p *placement) off() bool { return p.peers == nil }

// owner tells whom a record's commands are to be sent to at present. For a
// record that nobody contends for, as nearly all are, it costs next to nothing.
func (p *placement) owner(ref licensing.Ref) (to store.Incarnation, yields bool) {
	if p.count.Load() == 0 {
		return store.Incarnation{}, false
	}
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(now)
	c := p.contests[ref]
	if c == nil {
		return store.Incarnation{}, false
	}
	if now.Before(c.until) {
		return c.owner, true
	}
	if !c.stillBusy(now) {
		return store.Incarnation{}, false
	}
	// To try to swap here would only lose, or make the owner lose.
	c.busy, c.until = false, now.Add(p.jitter(c.span))
	return c.owner, true
}

// lost notes that a swap was lost to a writer, zero where that is not known. It
// tells whether what waits for the record is to be sent away now.
func (p *placement) lost(ref licensing.Ref, writer store.Incarnation) (yields bool) {
	if p.off() || ref.Kind != licensing.KindLicense || writer == p.self {
		return false
	}
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.contestFor(ref, now)
	if c == nil {
		return false
	}
	if now.Before(c.until) {
		return true // commands that came by a hop have lost it
	}
	if writer.IsZero() {
		writer = c.writer
	}
	c.writer = writer
	if now.Sub(c.since) > lossWindow {
		c.since, c.losses = now, 0
	}
	c.losses++
	if writer.IsZero() || now.Before(c.heldUntil) || c.losses < p.patience(c, now) {
		return false
	}
	c.yield(writer, now, p.jitter)
	return true
}

// patience is how many losses a contest takes. Soon after a record was yielded,
// the first one says that nothing has changed.
func (p *placement) patience(c *contest, now time.Time) int {
	if now.Sub(c.hosted) <= lossWindow {
		return hostPatience
	}
	if c.span > 0 && now.Sub(c.until) <= c.span {
		return 1
	}
	return p.yieldAfter
}

// sawWriter notes who wrote a record last, as a read has shown it. It matters
// only where swaps were lost that did not tell.
func (p *placement) sawWriter(ref licensing.Ref, writer store.Incarnation) {
	if p.count.Load() == 0 || writer == p.self {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.contests[ref]; c != nil {
		c.writer = writer
	}
}

// taken notes that another node has run commands, whether it had others too, and
// whom it would send its own to.
func (p *placement) taken(ref licensing.Ref, by, yieldsTo store.Incarnation, busy bool) {
	if yieldsTo == by {
		yieldsTo = store.Incarnation{}
	}
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.contests[ref]
	if c == nil || c.owner != by || !now.Before(c.until) {
		return
	}
	c.busy, c.unserved = c.busy || busy, false
	switch {
	case yieldsTo.IsZero():
		c.moves = 0
	case yieldsTo != p.self:
		c.owner = yieldsTo
		if c.moves++; c.moves > maxMoves && c.owner.Below(p.self) {
			c.hold(now, tieSpan)
		}
	case by.Below(p.self):
		c.hold(now, tieSpan)
	}
}

// servedNone notes that another node has taken commands and could serve none, and
// whom it has lost them to. That one is tried next. If it serves none either, or
// nobody is named, then their way to the store may be cut, and that of this node is
// not.
func (p *placement) servedNone(ref licensing.Ref, by, lostTo store.Incarnation) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.contests[ref]
	switch {
	case c == nil || c.owner != by:
	case c.unserved, lostTo.IsZero(), lostTo == p.self, lostTo == by:
		c.hold(now, holdSpan)
	case now.Before(c.until):
		c.owner, c.unserved = lostTo, true
	}
}

// notTaken notes that another node can't be reached, does not want commands, or
// has left open what became of them.
func (p *placement) notTaken(ref licensing.Ref, by store.Incarnation) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.contests[ref]; c != nil && c.owner == by {
		c.hold(now, holdSpan)
	}
}

// leadsTo gives who is to be sent the commands that another node has sent here:
// whom the record is yielded to, or, where they were not served, who was seen to
// write it instead. It is zero where that is nobody.
func (p *placement) leadsTo(ref licensing.Ref, served bool) store.Incarnation {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch c := p.contests[ref]; {
	case c == nil:
		return store.Incarnation{}
	case now.Before(c.until), c.stillBusy(now):
		return c.owner
	case !served:
		return c.writer
	default:
		return store.Incarnation{}
	}
}

// received notes that another node has sent commands.
func (p *placement) received(ref licensing.Ref, from store.Incarnation) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.contestFor(ref, now)
	if c == nil {
		return
	}
	last := c.hosted
	c.hosted = now
	if !now.Before(c.until) && !c.stillBusy(now) {
		return
	}
	if c.redirected.IsZero() || now.Sub(last) > redirectSpan {
		c.redirected = now
	}
	if c.owner.Below(p.self) && (c.owner == from || now.Sub(c.redirected) > redirectSpan) {
		c.hold(now, tieSpan)
	}
}

// contestFor finds a record's contest, or makes one; nil where there are too
// many.
func (p *placement) contestFor(ref licensing.Ref, now time.Time) *contest {
	p.sweep(now)
	c := p.contests[ref]
	if c == nil {
		if len(p.contests) >= maxContests {
			return nil
		}
		c = &contest{since: now}
		p.contests[ref] = c
		p.count.Store(int32(len(p.contests)))
	}
	return c
}

// sweep forgets the contests that are over, now and then. The lock is held.
func (p *placement) sweep(now time.Time) {
	if now.Sub(p.swept) < contestsSwept {
		return
	}
	p.swept = now
	for ref, c := range p.contests {
		if now.Sub(c.since) > lossWindow && now.Sub(c.hosted) > lossWindow && now.After(c.heldUntil) && now.Sub(c.until) > c.span {
			delete(p.contests, ref)
		}
	}
	p.count.Store(int32(len(p.contests)))
}
