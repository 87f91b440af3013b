package clocks

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"licet/licensing"
)

// TestTrustAcrossChanges: nodes whose clocks differ start, leave and stall at any times. At no moment do two nodes act
// by time whose clocks differ by more than the guard allows.
func TestTrustAcrossChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		upTo := times(t)
		const span = 4 * trustFor
		gap := time.Second + upTo(4*time.Second)
		ahead := make([]time.Duration, rapid.IntRange(3, 6).Draw(t, "nodes"))
		for i := range ahead {
			ahead[i] = time.Duration(rapid.IntRange(0, 3).Draw(t, "clock"))*gap + upTo(200*time.Millisecond)
		}
		c := newCluster(ahead...)
		leaves := make([]time.Duration, len(ahead))
		for i, n := range c.nodes {
			leaves[i] = 2 * span
			if n.next = upTo(time.Second); rapid.Bool().Draw(t, "late") {
				n.next = upTo(span)
			}
			if i > 0 && rapid.Bool().Draw(t, "leaves") { // one stays
				leaves[i] = upTo(span)
			}
		}
		delay := func() time.Duration {
			if upTo(12) == 0 {
				return upTo(trustFor)
			}
			return upTo(100 * time.Millisecond)
		}
		for c.now < span+trustFor {
			c.step(delay)
			for i, n := range c.nodes {
				if c.now >= leaves[i] && !n.gone {
					n.Leave()
					n.gone = true
				}
			}
			if got := c.apart(); got >= licensing.LeaseGuard {
				t.Fatalf("after %v nodes act by time whose clocks differ by %v", c.now, got)
			}
		}
	})
}

// TestStartAfterLeave: of three nodes, the clock of the first is wrong. The third leaves, and the second can't read any
// more. A node with the wrong clock that starts then is a majority with the first, and knows nothing of the third. The
// node does not act by time before the proof of the second has ended.
func TestStartAfterLeave(t *testing.T) {
	b := newBench(t, licensing.LeaseGuard, 0, 0)
	b.rounds(enough + int(trustFor/every))
	b.want("at first", "rss")
	b.nodes[1].silent, b.nodes[2].gone = true, true
	b.add(licensing.LeaseGuard)
	b.rounds(enough)
	b.want("beside a proof", "us-u")
	b.rounds(int(trustFor / every))
	b.want("later", "su-s")
}

// TestReadAfterLongPause: a node that has not read for longer than a proof holds does not know which nodes were there
// meanwhile. It acts by time at once beside clocks that are right, and later beside a clock that is wrong.
func TestReadAfterLongPause(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		b := newBench(t, 0, 0, 0)
		b.rounds(enough)
		b.want("at first", "sss")
		b.nodes[0].silent = true
		if wrong {
			b.nodes[2].ahead = licensing.LeaseGuard
		}
		b.rounds(2 * int(trustFor/every))
		b.nodes[0].silent = false
		b.rounds(enough)
		if wrong {
			b.want("beside a wrong clock", "usr")
			b.rounds(int(trustFor / every))
			b.want("beside a wrong clock, later", "ssr")
		} else {
			b.want("beside right clocks", "sss")
		}
	}
}
