package node

import (
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// contestedRef is the license that these tests contend for.
var contestedRef = licensing.LicenseID{1}.Ref()

// testPlacement is the placement of a node whose incarnation is a number, with a clock of its own.
type testPlacement struct {
	*placement
	now time.Time
}

func incarnation(number byte) store.Incarnation { return store.Incarnation{number} }

func newTestPlacement(self byte) *testPlacement {
	p := &testPlacement{now: time.Now()}
	p.placement = newPlacement(&Config{Self: incarnation(self), Peers: struct{ Peers }{}})
	p.clock = func() time.Time { return p.now }
	p.lastSweep = p.now
	p.jitter = func(d time.Duration) time.Duration { return d }
	return p
}

func (p *testPlacement) pass(d time.Duration) { p.now = p.now.Add(d) }

// loses notes swaps that were lost to a writer, and reports whether the placement yields after the last one.
func (p *testPlacement) loses(times int, to byte) bool {
	yields := false
	for range times {
		yields = p.lost(contestedRef, incarnation(to))
	}
	return yields
}

// receives notes commands of another node and serves them. It returns the node to which the sender should send more.
func (p *testPlacement) receives(from store.Incarnation) store.Incarnation {
	p.received(contestedRef, from)
	return p.ownerFor(contestedRef, true)
}

func (p *testPlacement) wantOwner(t *testing.T, want byte) {
	t.Helper()
	to, yields := p.owner(contestedRef)
	if yields != (want != 0) || to != incarnation(want) {
		t.Errorf("yields %v to %v, want %d", yields, to, want)
	}
}

func TestYieldsAfterLosses(t *testing.T) {
	p := newTestPlacement(5)
	p.wantOwner(t, 0)
	if p.loses(yieldAfter-1, 7) {
		t.Error("yields too soon")
	}
	p.wantOwner(t, 0)
	if !p.loses(1, 7) {
		t.Error("does not yield")
	}
	p.wantOwner(t, 7)
	if to, yields := p.owner(licensing.LicenseID{2}.Ref()); yields {
		t.Errorf("another license is yielded to %v", to)
	}
}

// Losses do not count if they are far apart, to the node itself, or of a record that is no license.
func TestNodeThatNeverYields(t *testing.T) {
	p := newTestPlacement(5)
	for range 10 * yieldAfter {
		p.loses(1, 7)
		p.pass(lossWindow/2 + time.Millisecond)
	}
	p.wantOwner(t, 0)
	p.pass(time.Hour)
	if p.loses(10, 5) {
		t.Error("yields to itself")
	}
	if yields := p.lost(licensing.OrderRef(licensing.Owner{}, "1"), incarnation(7)); yields {
		t.Error("yields an order")
	}
	off := newTestPlacement(5)
	off.peers = nil
	if off.loses(10, 7) {
		t.Error("yields although it can reach no other node")
	}
}

// TestYieldCools: a node yields a record for a time. The time doubles with each loss right after it, and is short again
// after a time without a loss.
func TestYieldCools(t *testing.T) {
	p := newTestPlacement(5)
	p.loses(yieldAfter, 7)
	for span := yieldSpan; span < 4*yieldSpanMax; span *= 2 {
		span := min(span, yieldSpanMax)
		p.pass(span - time.Millisecond)
		p.wantOwner(t, 7)
		p.pass(time.Millisecond)
		p.wantOwner(t, 0)
		if !p.loses(1, 7) {
			t.Fatalf("after %v the first loss is not enough", span)
		}
	}
	p.pass(3 * yieldSpanMax)
	if p.loses(1, 7) {
		t.Error("long after, one loss is enough")
	}
	p.pass(lossWindow + time.Millisecond)
	if !p.loses(yieldAfter, 7) {
		t.Error("does not yield anew")
	}
	p.pass(yieldSpan)
	p.wantOwner(t, 0)
}

// TestYieldLasts: as long as the owner also has commands of other nodes, this node tries no swap itself.
func TestYieldLasts(t *testing.T) {
	p := newTestPlacement(5)
	p.loses(yieldAfter, 7)
	for range 10 {
		p.served(contestedRef, incarnation(7), store.Incarnation{}, true)
		p.pass(yieldSpan)
		p.wantOwner(t, 7)
	}
	p.served(contestedRef, incarnation(7), store.Incarnation{}, false)
	p.pass(yieldSpan)
	p.wantOwner(t, 0)
}

// TestHosts: a node that others send commands to does not yield soon.
func TestHosts(t *testing.T) {
	p := newTestPlacement(5)
	p.received(contestedRef, incarnation(2))
	if p.loses(hostPatience-1, 7) {
		t.Error("yields too soon")
	}
	if !p.loses(1, 7) {
		t.Error("never yields")
	}
	p.pass(time.Minute)
	if !p.loses(yieldAfter, 3) {
		t.Error("does not yield although no node sends it commands any more")
	}
}

// TestLossWithoutAKnownWriter: if a lost swap does not name the winner, an earlier read does.
func TestLossWithoutAKnownWriter(t *testing.T) {
	p := newTestPlacement(5)
	if p.loses(2*yieldAfter, 0) {
		t.Error("yields to an unknown node")
	}
	p.sawWriter(contestedRef, incarnation(5))
	if p.loses(1, 0) {
		t.Error("yields to itself")
	}
	p.sawWriter(contestedRef, incarnation(7))
	if !p.loses(1, 0) {
		t.Error("does not yield to the writer that a read has shown")
	}
	p.wantOwner(t, 7)
}

// TestLowerNodeOfATieYields: of two nodes that yield to each other, the lower node goes on yielding.
func TestLowerNodeOfATieYields(t *testing.T) {
	low, high := newTestPlacement(3), newTestPlacement(9)
	low.loses(yieldAfter, 9)
	high.loses(yieldAfter, 3)
	if hint := low.receives(incarnation(9)); hint != incarnation(9) {
		t.Errorf("the lower node names %v as the owner", hint)
	}
	low.wantOwner(t, 9)
	if hint := high.receives(incarnation(3)); !hint.IsZero() {
		t.Errorf("the higher node names %v as the owner", hint)
	}
	high.wantOwner(t, 0)
	if high.loses(10*hostPatience, 3) {
		t.Error("the higher node yields again at once")
	}
	high.pass(keepSpan + lossWindow)
	if !high.loses(yieldAfter, 3) {
		t.Error("the higher node never yields again")
	}
}

// TestTieWithOneSender: the lower node of a tie goes on yielding, even if only one of the two nodes is sent commands.
func TestTieWithOneSender(t *testing.T) {
	high := newTestPlacement(9)
	high.loses(yieldAfter, 3)
	high.served(contestedRef, incarnation(3), incarnation(9), false)
	high.wantOwner(t, 0)
	low := newTestPlacement(3)
	low.loses(yieldAfter, 9)
	low.served(contestedRef, incarnation(9), incarnation(3), false)
	low.wantOwner(t, 9)
}

// TestChainsGetShorter: a node that yields to a lower node does not stop yielding because a third node sends commands:
// the answer names the owner to the third node.
func TestChainsGetShorter(t *testing.T) {
	p := newTestPlacement(5)
	p.loses(yieldAfter, 3)
	for range 10 {
		if hint := p.receives(incarnation(9)); hint != incarnation(3) {
			t.Fatalf("tells others to go to %v", hint)
		}
		p.pass(redirectSpan / 20)
	}
	p.wantOwner(t, 3)
	// Another node, which did not know the owner, long after.
	p.served(contestedRef, incarnation(3), store.Incarnation{}, true)
	p.pass(yieldSpan)
	if hint := p.receives(incarnation(8)); hint != incarnation(3) {
		t.Errorf("tells others to go to %v", hint)
	}
	p.wantOwner(t, 3)
}

// TestLeadsToTheWriter: a node that can't serve the commands of other nodes names the node to which it lost swaps,
// which may serve them.
func TestLeadsToTheWriter(t *testing.T) {
	p := newTestPlacement(5)
	if hint := p.ownerFor(contestedRef, false); !hint.IsZero() {
		t.Errorf("the node names %v as the owner of a license that it does not know", hint)
	}
	p.received(contestedRef, incarnation(2))
	p.loses(1, 7)
	if hint := p.ownerFor(contestedRef, true); !hint.IsZero() {
		t.Errorf("the node serves, and names %v as the owner", hint)
	}
	if hint := p.ownerFor(contestedRef, false); hint != incarnation(7) {
		t.Errorf("the node names %v as the owner", hint)
	}
	p.loses(1, 0) // to an unknown writer
	if hint := p.ownerFor(contestedRef, false); hint != incarnation(7) {
		t.Errorf("the node names %v as the owner", hint)
	}
	p.loses(hostPatience, 3)
	if hint := p.ownerFor(contestedRef, false); hint != incarnation(3) {
		t.Errorf("the node yields, and names %v as the owner", hint)
	}
}

// TestServedNone: a node that can serve no command names the node to try next. If that node can't serve any either,
// commands stay here for a while.
func TestServedNone(t *testing.T) {
	p := newTestPlacement(5)
	f := func(by, lostTo, want byte) {
		t.Helper()
		p.servedNone(contestedRef, incarnation(by), incarnation(lostTo))
		p.wantOwner(t, want)
	}
	again := func() {
		p.pass(3 * yieldSpanMax)
		p.loses(yieldAfter, 7)
	}
	f(7, 3, 0) // of a license that it knows nothing of
	again()
	f(8, 3, 7) // news about another node
	f(7, 3, 3)
	f(3, 7, 0)
	if p.loses(10*yieldAfter, 7) {
		t.Error("the other node gets commands again at once")
	}
	again()
	f(7, 3, 3)
	p.served(contestedRef, incarnation(3), store.Incarnation{}, false)
	f(3, 8, 8) // it served before
	again()
	f(7, 0, 0)
	again()
	f(7, 5, 0) // to this node
	again()
	f(7, 7, 0)
}

// TestCirclesAtOnceEnd: circles also end if all nodes yield at the same time, however long hops take.
func TestCirclesAtOnceEnd(t *testing.T) {
	for nodes := 3; nodes <= 7; nodes++ {
		for hop := 20 * time.Millisecond; hop < yieldSpan; hop += 20 * time.Millisecond {
			// A redirect does not count after the time for which the node yields.
			rounds := int(max(2*redirectSpan/hop, 2*maxMoves)) + 2
			if !circleEnds(nodes, rounds, hop) {
				t.Errorf("%d nodes, hops of %v: no node writes after %d of them", nodes, hop, rounds)
			}
		}
	}
}

// circleEnds lets nodes yield to each other in a circle, and hop at the same time. It reports whether some node stops
// yielding.
func circleEnds(nodes, rounds int, hop time.Duration) bool {
	list := make([]*testPlacement, nodes)
	for i := range list {
		list[i] = newTestPlacement(byte(i + 1))
		list[i].loses(yieldAfter, byte((i+1)%nodes+1))
	}
	for range rounds {
		to, hint := make([]store.Incarnation, nodes), make([]store.Incarnation, nodes)
		for i, p := range list {
			var yields bool
			if to[i], yields = p.owner(contestedRef); !yields {
				return true
			}
		}
		for i, p := range list {
			list[to[i][0]-1].received(contestedRef, p.self)
		}
		for _, p := range list {
			p.pass(hop)
		}
		for i := range list {
			hint[i] = list[to[i][0]-1].ownerFor(contestedRef, true)
		}
		for i, p := range list {
			p.served(contestedRef, to[i], hint[i], true)
		}
	}
	return false
}

// TestCirclesEnd: in any circle of yielding nodes, in any order of messages, one node finally writes for all.
func TestCirclesEnd(t *testing.T) {
	const nodes = 6
	for start := range 200 {
		var list [nodes]*testPlacement
		for i := range list {
			list[i] = newTestPlacement(byte(i + 1))
		}
		// Every node yields to another one; start encodes which.
		for i, p := range list {
			to := (i + 1 + start/(i+1)%(nodes-1)) % nodes
			p.loses(yieldAfter, byte(to+1))
		}
		for range 4 * nodes {
			for _, p := range list {
				if to, yields := p.owner(contestedRef); yields {
					p.served(contestedRef, to, list[to[0]-1].receives(p.self), true)
				}
			}
		}
		writers := 0
		for _, p := range list {
			to, yields := p.owner(contestedRef)
			if !yields {
				writers++
				continue
			}
			if _, further := list[to[0]-1].owner(contestedRef); further {
				t.Errorf("start %d: %v yields to %v, which yields too", start, p.self, to)
			}
		}
		if writers == 0 {
			t.Errorf("start %d: no node writes", start)
		}
	}
}

// TestNotTaken: a node that does not take commands, or leaves their outcome open, gets no commands for a while.
func TestNotTaken(t *testing.T) {
	p := newTestPlacement(5)
	p.loses(yieldAfter, 7)
	p.notTaken(contestedRef, incarnation(8)) // news about another node
	p.wantOwner(t, 7)
	p.notTaken(contestedRef, incarnation(7))
	p.wantOwner(t, 0)
	if p.loses(10*yieldAfter, 7) {
		t.Error("the other node gets commands again at once")
	}
}

// TestContentionsAreBounded: the placement keeps a bounded number of contentions, and forgets them after a while.
func TestContentionsAreBounded(t *testing.T) {
	p := newTestPlacement(5)
	for i := range maxContentions + 100 {
		ref := licensing.LicenseID{3, 0, byte(i), byte(i >> 8)}.Ref()
		p.lost(ref, incarnation(7))
	}
	if n := len(p.contentions); n != maxContentions {
		t.Errorf("%d contentions", n)
	}
	p.pass(sweepEvery)
	p.loses(1, 7)
	if n, count := len(p.contentions), p.count.Load(); n != 1 || count != 1 {
		t.Errorf("%d contentions are left, %d by the counter", n, count)
	}
	p.loses(yieldAfter, 7)
	p.pass(sweepEvery)
	p.lost(licensing.LicenseID{2}.Ref(), incarnation(7))
	if len(p.contentions) != 1 {
		t.Errorf("%d contentions are left", len(p.contentions))
	}
}
