package clocks

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"licet/licensing"
	"licet/metrics"
	"licet/node/store"
)

// cluster is some nodes whose requests to one store take time.
type cluster struct {
	now     time.Duration // true time
	nodes   []*clusterNode
	created int64 // registrations
}

type clusterNode struct {
	*Comparison
	ahead  time.Duration // of the true time
	stamp  store.Stamp   // as it is stored; version 0: not yet
	made   time.Time     // the stamp that is on its way
	read   []store.Stamp // the answer that is on its way
	next   time.Duration // when the next part of the request happens
	begins bool          // the next part is the beginning
	reads  bool          // the request stores nothing
	gone   bool
	ends   time.Duration // when the registration ends unless a stamp comes before
}

func newCluster(ahead ...time.Duration) *cluster {
	c := &cluster{}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, by := range ahead {
		n := &clusterNode{ahead: by, begins: true}
		n.stamp = store.Stamp{Node: store.Incarnation{byte(i + 1)}}
		n.Comparison = New(Config{Self: n.stamp.Node, Log: zerolog.Nop(),
			Metrics: metrics.New(prometheus.NewRegistry(), "", "", ""),
			Clock:   func() (time.Time, time.Duration) { return start.Add(c.now + n.ahead), c.now }})
		c.nodes = append(c.nodes, n)
	}
	return c
}

// step lets the next part of a request happen: its beginning, its execution in the store or its answer. Each way takes
// as long as delay returns. step returns the node whose request is answered; nil: none is.
func (c *cluster) step(delay func() time.Duration) (answered *clusterNode) {
	var n *clusterNode
	for _, other := range c.nodes {
		if !other.gone && (n == nil || other.next < n.next) {
			n = other
		}
	}
	c.now = n.next
	for _, other := range c.nodes {
		if other.stamp.Version > 0 && !other.gone && c.now > other.ends {
			other.stamp.Version = 0
		}
	}
	switch {
	case n.begins:
		n.made, n.reads = n.Stamp()
		if n.begins = false; n.reads {
			n.Leave()
			n.stamp.Version = 0 // the registration ends
		}
	case n.read == nil:
		if n.stamp.Version == 0 && !n.reads {
			c.created++
			n.stamp.Created = c.created
		}
		if !n.reads {
			n.stamp.At, n.stamp.Version = n.made, n.stamp.Version+1
			n.ends = c.now + outlives
		}
		for _, other := range c.nodes {
			if other.stamp.Version > 0 && !other.gone {
				n.read = append(n.read, other.stamp)
			}
		}
	default:
		n.Compare(n.read)
		n.read, n.begins, n.next = nil, true, c.now+every
		return n
	}
	n.next = c.now + delay()
	return nil
}

// apart returns by how much the clocks of the nodes differ that act by time.
func (c *cluster) apart() time.Duration {
	var least, most time.Duration
	first := true
	for _, n := range c.nodes {
		if n.Untrusted() != nil {
			continue
		}
		if first {
			least, most, first = n.ahead, n.ahead, false
		}
		least, most = min(least, n.ahead), max(most, n.ahead)
	}
	return most - least
}

// times returns a function that returns durations below a bound, each as likely.
func times(t *rapid.T) func(below time.Duration) time.Duration {
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	return func(below time.Duration) time.Duration { return time.Duration(random.Int64N(int64(below))) }
}

// TestTrustedNodesDifferByLessThanGuard: whatever the clocks and the delays of requests are, two nodes that act by time
// at the same moment differ by less than the guard of leases. Each node's clock is ahead of the clock of the node
// before, so that the nodes between two nodes can agree with both. Nodes start one after the other. The clock of one of
// two nodes is set meanwhile.
func TestTrustedNodesDifferByLessThanGuard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		upTo := times(t)
		gap, slow := time.Second+upTo(2*time.Second), upTo(1+upTo(1+upTo(5*time.Second)))
		ahead := make([]time.Duration, rapid.IntRange(2, 4).Draw(t, "nodes"))
		for i := range ahead {
			ahead[i] = time.Duration(i)*gap + upTo(200*time.Millisecond)
		}
		c := newCluster(ahead...)
		start := time.Duration(0)
		for _, n := range c.nodes {
			n.next = start
			start += trustFor + upTo(3*time.Second)
		}
		set, by := time.Hour, time.Duration(0)
		if len(ahead) == 2 {
			set, by = upTo(start), upTo(20*time.Second)-10*time.Second
		}
		for c.now < start {
			c.step(func() time.Duration { return upTo(1 + slow) })
			if c.now >= set {
				c.nodes[0].ahead += by
				set = time.Hour
			}
			if got := c.apart(); got >= licensing.LeaseGuard {
				t.Fatalf("after %v nodes act by time whose clocks differ by %v", c.now, got)
			}
		}
	})
}

// TestTrustAcrossJoins: nodes whose clocks differ start at any times, and stall for seconds. Once all have been there
// for a while, one of them leaves. At no moment do two nodes act by time whose clocks differ by more than the guard
// allows.
func TestTrustAcrossJoins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		upTo := times(t)
		gap := time.Second + upTo(4*time.Second)
		ahead := make([]time.Duration, rapid.IntRange(2, 5).Draw(t, "nodes"))
		for i := range ahead {
			ahead[i] = time.Duration(rapid.IntRange(0, 3).Draw(t, "clock"))*gap + upTo(200*time.Millisecond)
		}
		c := newCluster(ahead...)
		last := time.Duration(0)
		for _, n := range c.nodes {
			n.next = upTo(8 * time.Second)
			last = max(last, n.next)
		}
		leaves := last + 2*trustFor + upTo(3*time.Second)
		delay := func() time.Duration {
			if upTo(10) == 0 {
				return upTo(4 * time.Second)
			}
			return upTo(200 * time.Millisecond)
		}
		for c.now < leaves+trustFor {
			c.step(delay)
			if n := c.nodes[0]; c.now >= leaves && !n.gone {
				n.Leave()
				n.gone = true
			}
			if got := c.apart(); got >= licensing.LeaseGuard {
				t.Fatalf("after %v nodes act by time whose clocks differ by %v", c.now, got)
			}
		}
	})
}

// TestTrustAcrossSteps: nodes whose clocks differ have been there for a while. Then the clock of one of them is set,
// once or twice, while requests of the others stall. At no moment do two nodes act by time whose clocks differ by more
// than the guard allows: one by the stamps of before the step, the other by the stamps of after it.
func TestTrustAcrossSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		upTo := times(t)
		c := newCluster(time.Second+upTo(2*time.Second), 0, -upTo(8*time.Second))
		for _, n := range c.nodes {
			n.next = upTo(500 * time.Millisecond)
		}
		set, happened := 2*trustFor+upTo(3*time.Second), false
		again := set + upTo(2*trustFor) // or not, once the test is over
		delay := func() time.Duration {
			if happened && upTo(4) == 0 {
				return upTo(5 * time.Second)
			}
			return upTo(50 * time.Millisecond)
		}
		for c.now < set+2*trustFor {
			c.step(delay)
			if c.now >= set && !happened {
				c.nodes[1].ahead -= upTo(8 * time.Second)
				happened = true
			}
			if c.now >= again {
				c.nodes[1].ahead -= upTo(3 * time.Second)
				again = time.Hour
			}
			if got := c.apart(); got >= licensing.LeaseGuard {
				t.Fatalf("after %v nodes act by time whose clocks differ by %v", c.now, got)
			}
		}
	})
}

// outlives is how long a registration outlives its last stamp at least.
const outlives = trustFor + 700*time.Millisecond

// TestTrustAcrossLeaves: nodes whose clocks differ have been there for a while. Then two of them leave at once, or
// stall until their registrations have ended and come back, while requests of the others stall. At no moment do two
// nodes act by time whose clocks differ by more than the guard allows.
func TestTrustAcrossLeaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		upTo := times(t)
		gap := time.Second + upTo(4*time.Second)
		ahead := make([]time.Duration, rapid.IntRange(3, 6).Draw(t, "nodes"))
		for i := range ahead {
			ahead[i] = time.Duration(rapid.IntRange(0, 3).Draw(t, "clock"))*gap + upTo(200*time.Millisecond)
		}
		c := newCluster(ahead...)
		for _, n := range c.nodes {
			n.next = upTo(2 * time.Second)
		}
		leave, happened := rapid.Bool().Draw(t, "leave"), false
		happens := 2*trustFor + upTo(3*time.Second)
		delay := func() time.Duration {
			if c.now >= happens && upTo(4) == 0 {
				return upTo(4 * time.Second)
			}
			return upTo(100 * time.Millisecond)
		}
		for c.now < happens+3*trustFor {
			c.step(delay)
			if c.now >= happens && !happened {
				for _, n := range c.nodes[:2] {
					if n.next += outlives + upTo(trustFor); leave {
						n.Leave()
						n.gone = true
					}
				}
				happened = true
			}
			if got := c.apart(); got >= licensing.LeaseGuard {
				t.Fatalf("after %v nodes act by time whose clocks differ by %v", c.now, got)
			}
		}
	})
}

// TestNodesThatStartTogether: a node with a wrong clock that starts first stops acting by time before the others begin.
func TestNodesThatStartTogether(t *testing.T) {
	for wrong := range 3 {
		ahead := make([]time.Duration, 3)
		ahead[wrong] = licensing.LeaseGuard
		c := newCluster(ahead...)
		for c.now < time.Minute {
			c.step(func() time.Duration { return 100 * time.Millisecond })
			if got := c.apart(); got != 0 {
				t.Fatalf("node %d is wrong: after %v nodes act by time whose clocks differ by %v", wrong, c.now, got)
			}
		}
		if c.nodes[wrong].Untrusted() == nil || c.nodes[(wrong+1)%3].Untrusted() != nil {
			t.Errorf("node %d is wrong, and in the end not the only node that does not act by time", wrong)
		}
	}
}

// TestTrustOnSlowStore: if the clocks are right, no node loses its trust while requests take up to 900 ms.
func TestTrustOnSlowStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		upTo := times(t)
		ahead := make([]time.Duration, rapid.IntRange(2, 5).Draw(t, "nodes"))
		for i := range ahead {
			ahead[i] = upTo(100 * time.Millisecond)
		}
		c := newCluster(ahead...)
		for c.now < 40*time.Second {
			n := c.step(func() time.Duration { return upTo(450 * time.Millisecond) })
			if n != nil && c.now > 6*time.Second && n.Untrusted() != nil {
				t.Fatalf("after %v node %s does not act by time", c.now, fmt.Sprint(n.stamp.Node))
			}
		}
	})
}

// TestNodesThatJoin: beside a lone node that has not read for seconds, two nodes that start agree with each other, and
// do not act by time before the proof of the lone node has ended. If its clock is right, they do so as soon as they
// have bounds.
func TestNodesThatJoin(t *testing.T) {
	for _, right := range []bool{false, true} {
		b := newBench(t, licensing.LeaseGuard)
		if right {
			b.nodes[0].ahead = 0
		}
		b.rounds(enough)
		b.want("alone", "s")
		b.nodes[0].silent = !right
		b.add(0)
		b.add(0)
		b.rounds(enough)
		if right {
			b.want("beside a clock that is right", "sss")
			continue
		}
		b.want("beside a proof", "suu")
		b.rounds(int(trustFor / every))
		b.want("beside a wrong clock", "uss")
	}
}

// TestTrustWhileNodeJoins: a lone node whose clock is right acts by time all the while a second node joins, and while
// that node restarts. A node that joins with a clock that is proven to differ ends that at once.
func TestTrustWhileNodeJoins(t *testing.T) {
	b := newBench(t, 0)
	b.rounds(enough)
	joined := "s"
	for restart := range 3 {
		b.add(0)
		for range enough {
			b.rounds(1)
			if b.nodes[0].Untrusted() != nil {
				t.Errorf("restart %d: the first node does not act by time", restart)
			}
		}
		b.want("beside the other node", joined+"s")
		last := b.nodes[len(b.nodes)-1]
		last.Leave()
		last.gone = true
		joined += "-"
		b.rounds(1 + restart*int(trustFor/every))
	}
	b.add(day)
	b.rounds(2)
	b.want("beside a clock that is ahead", "u---u")
}

// TestNodesThatLeave: once two of five nodes have left, two nodes with wrong clocks are a majority beside a node that
// can't read any more. They do not act by time before the proof of that node has ended.
func TestNodesThatLeave(t *testing.T) {
	b := newBench(t, 0, 0, 0, licensing.LeaseGuard, licensing.LeaseGuard)
	b.rounds(enough + int(trustFor/every))
	b.want("all five", "sssrr")
	b.nodes[0].silent, b.nodes[1].gone, b.nodes[2].gone = true, true, true
	b.rounds(enough)
	b.want("beside a proof", "s--uu")
	b.rounds(int(trustFor / every))
	b.want("later", "u--ss")
}

// TestUnregistered: a node that can't register does not act by time, since other nodes form majorities without it.
// Neither does a node whose registration is about to end.
func TestUnregistered(t *testing.T) {
	for _, others := range []int{0, 2} {
		b := newBench(t, make([]time.Duration, others)...)
		last := b.add(0)
		last.unregistered = true
		b.rounds(2 * enough)
		if last.Untrusted() == nil || last.Refusal() != nil {
			t.Errorf("beside %d nodes: %v, %v", others, last.Untrusted(), last.Refusal())
		}
		last.unregistered = false
		b.rounds(enough)
		if last.Untrusted() != nil {
			t.Errorf("registered beside %d nodes: %v", others, last.Untrusted())
		}
		last.Leave()
		if last.Untrusted() == nil || last.Refusal() != nil || last.Unready() != nil {
			t.Errorf("leaving %d nodes: %v", others, last.Untrusted())
		}
		b.rounds(1)
		if last.Untrusted() != nil {
			t.Errorf("registered again beside %d nodes: %v", others, last.Untrusted())
		}
	}
}

// TestProofOfSlowRead: a proof counts from the beginning of its read, since a node may have joined during the read.
func TestProofOfSlowRead(t *testing.T) {
	b := newBench(t, 0)
	n := b.nodes[0]
	n.stamp.At, _ = n.Stamp()
	n.stamp.Version = 1
	const read = 2 * time.Second
	b.elapsed += read
	n.Compare([]store.Stamp{n.stamp})
	b.elapsed += trustFor - read
	b.want("six seconds after the read began", "s")
	b.elapsed++
	b.want("later", "u")
}
