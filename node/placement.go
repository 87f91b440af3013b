package node

import (
	"sync"
	"sync/atomic"
	"time"

	"licet/internal/backoff"
	"licet/licensing"
	"licet/node/store"
)

const (
	// yieldAfter is how many swaps a node must lose within lossWindow before it yields a license. Two nodes that
	// write now and then lose a swap to each other now and then; two nodes that write all the time lose one swap in
	// two.
	yieldAfter = 3
	lossWindow = time.Second
	// yieldSpan is how long a node yields a license before it tries again to swap the license itself. As long as the
	// try shows that nothing has changed, the span doubles.
	yieldSpan    = time.Second
	yieldSpanMax = 16 * time.Second
	// hostPatience replaces yieldAfter while other nodes send commands on the license. They try now and then to swap
	// the license themselves, which costs this node some losses.
	hostPatience = 4 * yieldAfter
	// keepSpan is how long a node swaps a license itself, whatever it loses, after the owner has not served the
	// node's commands. tieSpan is the same after a tie, in which other nodes are to yield to this one. Both are a
	// few times as long as a hop takes: by then the other nodes yield, or another node writes the license.
	keepSpan = time.Second
	tieSpan  = keepSpan / 4
	// redirectSpan is how long a node that yields to a lower node may be sent commands until that counts as a
	// circle: a few times as long as a hop takes.
	redirectSpan = 500 * time.Millisecond
	// maxMoves is how often in a row an owner may name another owner until that counts as a circle too, for hops
	// that take longer than redirectSpan.
	maxMoves = 8
	// maxContentions bounds the licenses that a node remembers as contended. The node swaps any further license
	// itself.
	maxContentions = 4096
	// sweepEvery is how often the node forgets the licenses that no other node writes any more.
	sweepEvery = 10 * time.Second
)

// placement decides which node writes a license that several nodes write at the same time. Then most swaps are lost,
// and a lost swap costs as much as a swap that lands. So a node that keeps losing yields the license: for a while, it
// sends the license's commands to the node that wrote the license last, the owner. Only speed depends on placement:
// every node may be wrong at any time.
//
// A node that yields a license still runs the commands that other nodes send, and answers the name of its own owner.
// The other nodes send their next commands to that owner, so chains get shorter. Two nodes that yield to each other
// would contend as before, each with the other's commands: the node with the higher incarnation stops yielding as soon
// as it learns of the tie, and holds the license for a while. In any longer circle some node yields to a lower node
// too. If that node is sent commands for longer than it takes to inform all senders, or is itself sent from owner to
// owner, it stops yielding in the same way, so circles end.
type placement struct {
	peers      Peers // nil: every node writes for itself
	self       store.Incarnation
	yieldAfter int
	clock      func() time.Time // monotonic, unlike the node's own
	jitter     func(time.Duration) time.Duration

	count atomic.Int32 // of contentions, to be read without the lock
	mu    sync.Mutex
	// Guarded by mu:
	contentions map[licensing.Ref]*contention
	lastSweep   time.Time
}

func newPlacement(cfg *Config) *placement {
	p := &placement{
		peers: cfg.Peers, self: cfg.Self, yieldAfter: cfg.YieldAfter, clock: time.Now, jitter: around,
		contentions: make(map[licensing.Ref]*contention), lastSweep: time.Now(),
	}
	if p.yieldAfter == 0 {
		p.yieldAfter = yieldAfter
	}
	return p
}

// around returns a random time of three to five quarters of d.
func around(d time.Duration) time.Duration { return backoff.Around(d, 4) }

// off reports whether there is no other node to yield to.
func (p *placement) off() bool { return p.peers == nil }

// owner returns the node that a record's commands are sent to at present. For a record without contention, as nearly
// all are, owner costs next to nothing.
func (p *placement) owner(ref licensing.Ref) (to store.Incarnation, yields bool) {
	if p.count.Load() == 0 {
		return store.Incarnation{}, false
	}
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(now)
	c := p.contentions[ref]
	if c == nil {
		return store.Incarnation{}, false
	}
	if now.Before(c.until) {
		return c.owner, true
	}
	if !c.stillBusy(now) {
		return store.Incarnation{}, false
	}
	// A swap here would only lose, or make the owner lose.
	c.busy, c.until = false, now.Add(p.jitter(c.span))
	return c.owner, true
}

// lost notes a swap that was lost to a writer, zero if the writer is not known. lost reports whether the node yields
// the license.
func (p *placement) lost(ref licensing.Ref, writer store.Incarnation) (yields bool) {
	if p.off() || ref.Kind != licensing.KindLicense || writer == p.self {
		return false
	}
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.contentionFor(ref, now)
	if c == nil {
		return false
	}
	if now.Before(c.until) {
		return true // commands that came by a hop have lost the swap
	}
	if writer.IsZero() {
		writer = c.writer
	}
	c.writer = writer
	if now.Sub(c.since) > lossWindow {
		c.since, c.losses = now, 0
	}
	c.losses++
	if writer.IsZero() || now.Before(c.keepUntil) || c.losses < p.patience(c, now) {
		return false
	}
	c.yield(writer, now, p.jitter)
	return true
}

// patience returns how many losses make the node yield. Soon after the license was yielded, the first loss shows that
// nothing has changed.
func (p *placement) patience(c *contention, now time.Time) int {
	if now.Sub(c.hosted) <= lossWindow {
		return hostPatience
	}
	if c.span > 0 && now.Sub(c.until) <= c.span {
		return 1
	}
	return p.yieldAfter
}

// sawWriter notes the last writer of a license, as a read has shown it. The writer matters only after losses that did
// not show it.
func (p *placement) sawWriter(ref licensing.Ref, writer store.Incarnation) {
	if p.count.Load() == 0 || writer == p.self {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.contentions[ref]; c != nil {
		c.writer = writer
	}
}

// served notes that another node has served commands, whether it had other commands on the license too, and the owner
// that it yields the license to itself; zero if it does not.
func (p *placement) served(ref licensing.Ref, by, yieldsTo store.Incarnation, busy bool) {
	if yieldsTo == by {
		yieldsTo = store.Incarnation{}
	}
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.contentions[ref]
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
			c.keep(now, tieSpan)
		}
	case by.Below(p.self):
		c.keep(now, tieSpan)
	}
}

// servedNone notes that another node has taken commands and could serve none of them. lostTo is the node to which that
// node has lost its swaps; it becomes the next owner. If there is no next owner, or if it serves no commands either,
// the other nodes may be cut off from the store while this node is not: then this node swaps the license itself.
func (p *placement) servedNone(ref licensing.Ref, by, lostTo store.Incarnation) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.contentions[ref]
	switch {
	case c == nil || c.owner != by:
	case c.unserved, lostTo.IsZero(), lostTo == p.self, lostTo == by:
		c.keep(now, keepSpan)
	case now.Before(c.until):
		c.owner, c.unserved = lostTo, true
	}
}

// notTaken notes that another node can't be reached, refuses commands, or has left their outcome open.
func (p *placement) notTaken(ref licensing.Ref, by store.Incarnation) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.contentions[ref]; c != nil && c.owner == by {
		c.keep(now, keepSpan)
	}
}

// ownerFor returns where another node, which has sent commands here, sends the next ones: to this node's owner or, if
// the commands were not served, to the last writer. It returns zero if there is neither.
func (p *placement) ownerFor(ref licensing.Ref, served bool) store.Incarnation {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch c := p.contentions[ref]; {
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

// received notes that another node has sent commands on a license.
func (p *placement) received(ref licensing.Ref, from store.Incarnation) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.contentionFor(ref, now)
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
		c.keep(now, tieSpan)
	}
}

// contentionFor returns what the node knows of a license's contention, which may be nothing yet. It returns nil if the
// node remembers too many licenses.
func (p *placement) contentionFor(ref licensing.Ref, now time.Time) *contention {
	p.sweep(now)
	c := p.contentions[ref]
	if c == nil {
		if len(p.contentions) >= maxContentions {
			return nil
		}
		c = &contention{since: now}
		p.contentions[ref] = c
		p.count.Store(int32(len(p.contentions)))
	}
	return c
}

// sweep forgets, now and then, the contentions that are over. The caller holds the lock.
func (p *placement) sweep(now time.Time) {
	if now.Sub(p.lastSweep) < sweepEvery {
		return
	}
	p.lastSweep = now
	for ref, c := range p.contentions {
		if now.Sub(c.since) > lossWindow && now.Sub(c.hosted) > lossWindow && now.After(c.keepUntil) &&
			now.Sub(c.until) > c.span {
			delete(p.contentions, ref)
		}
	}
	p.count.Store(int32(len(p.contentions)))
}
