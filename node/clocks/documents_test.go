package clocks

import (
	"slices"
	"testing"
	"time"

	"licet/licensing"
)

// wantAhead demands of each node: a, it dates documents by another clock; o, by its own; d, it dates none; r, the node
// refuses all requests.
func (b *bench) wantAhead(when, states string) {
	b.t.Helper()
	got := ""
	for _, n := range b.nodes {
		switch clock := n.Documents(); {
		case n.gone:
			got += "-"
		case n.Refusal() != nil:
			got += "r"
		case unknown(n):
			got += "d"
		case clock != nil && clock.Ahead > MaxApart:
			got += "a"
		default:
			got += "o"
		}
	}
	if got != states {
		b.t.Errorf("%s: %s, want %s", when, got, states)
	}
}

// unknown reports whether a node dates no documents.
func unknown(n *benchNode) bool {
	clock := n.Documents()
	return clock != nil && *clock == *licensing.ClocksUnknown()
}

// wantEarliest demands that all nodes that serve date documents by the earliest of their clocks, at most three seconds
// earlier, and know how far the clocks are apart, at most six seconds more.
func (b *bench) wantEarliest(when string) {
	b.t.Helper()
	var all []time.Duration
	for _, n := range b.nodes {
		if n.Refusal() == nil {
			all = append(all, n.ahead)
		}
	}
	earliest, apart := slices.Min(all), slices.Max(all)-slices.Min(all)
	for i, n := range b.nodes {
		if n.Refusal() != nil {
			continue
		}
		clock := n.Documents()
		if clock == nil {
			clock = &licensing.DocumentClock{}
		}
		by := n.ahead - clock.Ahead
		if by < earliest-3*time.Second || by > earliest+MaxApart {
			b.t.Errorf("%s, node %d dates documents %v ahead of the true time, and the earliest clock is %v ahead",
				when, i, by, earliest)
		}
		if clock.Apart > apart+6*time.Second || clock.Apart < apart-2*MaxApart {
			b.t.Errorf("%s, node %d: the clocks are %v apart, not %v", when, i, apart, clock.Apart)
		}
	}
}

// TestDocuments: all nodes that serve date documents by the same clock, the earliest, whichever of them is right.
func TestDocuments(t *testing.T) {
	for _, c := range []struct {
		name  string
		ahead []time.Duration
		want  string
	}{
		{"alone", []time.Duration{9 * day}, "o"},
		{"two agree", []time.Duration{0, time.Second}, "oo"},
		{"two differ by seconds", []time.Duration{0, 8 * time.Second}, "oa"},
		{"two differ by minutes", []time.Duration{4 * time.Minute, 0}, "ao"},
		{"two differ", []time.Duration{0, -9 * day}, "ao"},
		{"one of three is ahead", []time.Duration{0, 9 * day, 0}, "oro"},
		{"three differ", []time.Duration{0, day, -day}, "aao"},
	} {
		b := newBench(t, c.ahead...)
		b.wantAhead(c.name+", not compared", "ddd"[:len(c.ahead)])
		b.rounds(enough + int(trustFor/every)) // a node that starts beside a wrong clock waits
		b.wantAhead(c.name, c.want)
		b.wantEarliest(c.name)
	}
	var none *Comparison
	if none.Documents() != nil {
		t.Error("without a comparison, the node does not date by its clock")
	}
}

// TestDocumentsBesideNewNode: a lone node whose clock was not ahead goes on beside a node that starts, although it
// can't compare that node's clock yet; the node that starts waits.
func TestDocumentsBesideNewNode(t *testing.T) {
	b := newBench(t, 0)
	b.rounds(enough)
	b.add(0)
	for range enough {
		b.rounds(1)
		if b.nodes[0].Documents() != nil {
			t.Error("the node does not date by its clock beside a node that starts")
		}
	}
	b.wantAhead("both are compared", "oo")
	b.nodes[1].gone = true
	b.rounds(enough)
	b.wantAhead("alone again", "o-")
}

// TestDocumentsAlone: a lone node whose clock was set back dates documents by its clock, since no other clock is proven
// to be behind. So does a node that was killed and starts again, once it is ready, beside its registration from before.
// A node that was proven to be ahead of another node goes on to date documents by the other clock once the other node
// has gone. After its own clock was set, it dates none until another node agrees.
func TestDocumentsAlone(t *testing.T) {
	b := newBench(t, 0)
	b.rounds(enough)
	b.nodes[0].ahead = -time.Hour
	b.rounds(1)
	b.wantAhead("set back", "o")
	b.want("set back", "u")

	b.nodes[0].silent = true
	b.add(-time.Hour)
	b.rounds(1)
	if n := b.nodes[1]; !unknown(n) || n.Unready() == nil {
		t.Errorf("beside the registration from before: %+v, ready %v", n.Documents(), n.Unready())
	}
	b.rounds(int(startGrace / every))
	if n := b.nodes[1]; n.Documents() != nil || n.Unready() != nil {
		t.Errorf("after the start: %+v, ready %v", n.Documents(), n.Unready())
	}

	b = newBench(t, -time.Hour, 0)
	b.rounds(enough)
	b.wantAhead("an hour apart", "oa")
	b.nodes[0].gone = true
	b.rounds(100)
	b.wantAhead("left by a node that was behind", "-a")
	if by := b.nodes[1].Documents().Ahead; by < time.Hour-MaxApart || by > time.Hour+MaxApart {
		t.Errorf("alone, the node dates documents by a clock that is %v behind its own", by)
	}
	b.nodes[1].ahead -= time.Hour // set right, or wrong
	b.rounds(100)
	b.wantAhead("set", "-d")
	b.want("set", "-u")
	b.add(-time.Hour)
	b.rounds(enough)
	b.wantAhead("beside another that agrees", "-oo")
}

// TestDocumentsAfterStep: a node whose clock was set dates no documents until the clock is compared anew.
func TestDocumentsAfterStep(t *testing.T) {
	b := newBench(t, 0, 0)
	b.rounds(enough)
	b.nodes[1].ahead = time.Hour
	if one, other := b.nodes[0].Documents(), b.nodes[1].Documents(); one != nil || !unknown(b.nodes[1]) {
		t.Errorf("at once: %+v %+v", one, other)
	}
	b.rounds(1)
	if got := b.nodes[1].Documents(); !unknown(b.nodes[1]) {
		t.Errorf("a second later, the node trusts a clock that was set: %+v", got)
	}
	b.rounds(enough)
	b.wantAhead("compared", "oa")
	b.nodes[1].ahead = 0
	b.rounds(enough)
	b.wantAhead("set right", "oo")
}
