package node

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/node/store"
)

const (
	// yieldAfter is how many swaps a node must lose within lossWindow before it yields a record. Two nodes
	// that write now and then lose a swap to each other now and then; two nodes that write all the time
	// lose one swap in two.
	yieldAfter = 3
	lossWindow = time.Second
	// yieldSpan is how long a node yields a record before it tries again to swap the record itself. As
	// long as the try shows that nothing has changed, the span doubles.
	yieldSpan    = time.Second
	yieldSpanMax = 16 * time.Second
	// holdSpan is how long a node swaps a record itself, whatever it loses, after the owner of the record
	// has not served the node's commands. After that time the owner serves them again, or another node
	// writes the record.
	holdSpan = time.Second
	// maxContentions bounds the records that a node remembers as contended. It swaps any further record
	// itself.
	maxContentions = 4096
	// sweepEvery is how often the node forgets the records that no other node writes any more.
	sweepEvery = 10 * time.Second
)

// placement decides which node writes a license that several nodes write at the same time. Then most swaps
// are lost, and a lost swap costs as much as a swap that lands. So a node that keeps losing swaps of a license
// yields the license: for a while it sends the license's commands to the node that wins the swaps, the
// owner. Only speed depends on placement; each node may be wrong at any time.
//
// Each license ranks the nodes, by a hash of the license and the node's incarnation. A node yields only to
// a node of a higher rank. So however late nodes learn of each other, they can't yield in a circle, and the
// highest of the nodes that write a license never yields it. Ranks differ from license to license, so
// contended licenses spread over the nodes.
//
// A node that yields a license runs the commands that another node sends it all the same, and answers the
// name of the owner, where the other node sends the next commands.
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
	swept       time.Time
}

func newPlacement(cfg *Config) *placement {
	p := &placement{
		peers: cfg.Peers, self: cfg.Self, yieldAfter: cfg.YieldAfter, clock: time.Now, jitter: around,
		contentions: make(map[licensing.Ref]*contention), swept: time.Now(),
	}
	if p.yieldAfter == 0 {
		p.yieldAfter = yieldAfter
	}
	return p
}

// around returns a random time of three to five quarters of d.
func around(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2) }

// mayYield reports whether a node may yield a record to another node.
func (p *placement) mayYield(ref licensing.Ref, to store.Incarnation) bool {
	return p.peers != nil && ref.Kind == licensing.KindLicense && !to.IsZero() && to != p.self && outranks(ref, to, p.self)
}

// outranks reports whether a license ranks a node above another one. Nodes of all builds must agree, so the
// hash never changes.
func outranks(ref licensing.Ref, a, b store.Incarnation) bool {
	rank := func(node store.Incarnation) [sha256.Size]byte {
		return sha256.Sum256(append([]byte(ref.ID), node[:]...))
	}
	ofA, ofB := rank(a), rank(b)
	return bytes.Compare(ofA[:], ofB[:]) > 0
}

// owner returns the node that a record's commands are sent to at present. For a record without contention,
// as nearly all are, owner costs next to nothing.
func (p *placement) owner(ref licensing.Ref) (to store.Incarnation, yields bool) {
	if p.count.Load() == 0 {
		return store.Incarnation{}, false
	}
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(now)
	if c := p.contentions[ref]; c != nil && now.Before(c.until) {
		return c.owner, true
	}
	return store.Incarnation{}, false
}

// lost notes a swap that was lost to a writer, zero if the writer is not known. lost reports whether the
// node yields the record.
func (p *placement) lost(ref licensing.Ref, writer store.Incarnation) (yields bool) {
	if p.peers == nil || ref.Kind != licensing.KindLicense || writer == p.self {
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
	if !writer.IsZero() {
		c.writer = writer
	}
	if now.Sub(c.since) > lossWindow {
		c.since, c.losses = now, 0
	}
	c.losses++
	// Soon after the record was yielded, one loss shows that nothing has changed.
	enough := c.losses >= p.yieldAfter || c.justYielded(now)
	if !enough || now.Before(c.heldUntil) || !p.mayYield(ref, c.writer) {
		return false
	}
	c.yield(c.writer, now, p.jitter)
	return true
}

// sawWriter notes the last writer of a record, as a read has shown it. The writer matters only after
// losses that did not show it.
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

// served notes that a node has served commands, and the owner that it yields the record to itself; zero if
// it does not.
func (p *placement) served(ref licensing.Ref, by, yieldsTo store.Incarnation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.contentions[ref]; c != nil && c.owner == by && p.mayYield(ref, yieldsTo) {
		c.owner = yieldsTo
	}
}

// notServed notes that a node can't be reached, does not take commands, could serve none of them (its way
// to the store may be cut, and this node's is not), or has left their outcome open.
func (p *placement) notServed(ref licensing.Ref, by store.Incarnation) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.contentions[ref]; c != nil && c.owner == by {
		c.hold(now)
	}
}

// contentionFor returns what the node knows of a record's contention, which may be nothing yet. It returns
// nil if the node remembers too many records.
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

// sweep forgets, now and then, the contentions that are over. The lock is held.
func (p *placement) sweep(now time.Time) {
	if now.Sub(p.swept) < sweepEvery {
		return
	}
	p.swept = now
	for ref, c := range p.contentions {
		if c.isOver(now) {
			delete(p.contentions, ref)
		}
	}
	p.count.Store(int32(len(p.contentions)))
}
