package clocks

import (
	"testing"
	"time"
)

// wantAhead demands of each node: a, its clock may be ahead; o, it is not; r, the node refuses all requests.
func (b *bench) wantAhead(when, states string) {
	b.t.Helper()
	got := ""
	for _, n := range b.nodes {
		switch {
		case n.gone:
			got += "-"
		case n.Refusal() != nil:
			got += "r"
		case n.Ahead():
			got += "a"
		default:
			got += "o"
		}
	}
	if got != states {
		b.t.Errorf("%s: %s, want %s", when, got, states)
	}
}

// TestAhead: of nodes without a majority that agrees, only the node whose clock is behind the others knows that its
// clock is not ahead.
func TestAhead(t *testing.T) {
	for _, c := range []struct {
		name  string
		ahead []time.Duration
		want  string
	}{
		{"alone", []time.Duration{9 * day}, "o"},
		{"two agree", []time.Duration{0, time.Second}, "oo"},
		{"two differ by seconds", []time.Duration{0, 8 * time.Second}, "oa"},
		{"two differ", []time.Duration{0, -9 * day}, "ao"},
		{"one of three is ahead", []time.Duration{0, 9 * day, 0}, "oro"},
		{"three differ", []time.Duration{0, day, -day}, "aao"},
	} {
		b := newBench(t, c.ahead...)
		b.wantAhead(c.name+", not compared", "aaa"[:len(c.ahead)])
		b.rounds(enough)
		b.wantAhead(c.name, c.want)
	}
	var none *Comparison
	if none.Ahead() {
		t.Error("nil is ahead")
	}
}

// TestAheadBesideNewNode: a lone node whose clock was not ahead goes on beside a node that starts, although it can't
// compare that node's clock yet; the node that starts waits.
func TestAheadBesideNewNode(t *testing.T) {
	b := newBench(t, 0)
	b.rounds(enough)
	b.add(0)
	for range enough {
		b.rounds(1)
		if b.nodes[0].Ahead() {
			t.Error("the node counts as ahead beside a node that starts")
		}
	}
	b.wantAhead("both are compared", "oo")
	b.nodes[1].gone = true
	b.rounds(enough)
	b.wantAhead("alone again", "o-")
}

// TestAheadAlone: a lone node whose clock was set back makes receipts, since no other clock is proven to be behind. So
// does a node that was killed and starts again, once it is ready, beside its registration from before. A node that was
// proven to be ahead of another node still counts as ahead once the other node has gone, until another node agrees.
func TestAheadAlone(t *testing.T) {
	b := newBench(t, 0)
	b.rounds(enough)
	b.nodes[0].ahead = -time.Hour
	b.rounds(1)
	b.wantAhead("set back", "o")
	b.want("set back", "u")

	b.nodes[0].silent = true
	b.add(-time.Hour)
	b.rounds(1)
	if n := b.nodes[1]; !n.Ahead() || n.Unready() == nil {
		t.Errorf("beside the registration from before: ahead %v, ready %v", n.Ahead(), n.Unready())
	}
	b.rounds(int(startGrace / every))
	if n := b.nodes[1]; n.Ahead() || n.Unready() != nil {
		t.Errorf("after the start: ahead %v, ready %v", n.Ahead(), n.Unready())
	}

	b = newBench(t, -time.Hour, 0)
	b.rounds(enough)
	b.wantAhead("an hour apart", "oa")
	b.nodes[0].gone = true
	b.rounds(100)
	b.wantAhead("left by a node that was behind", "-a")
	b.nodes[1].ahead -= time.Hour // set right, or wrong
	b.rounds(100)
	b.wantAhead("set", "-a")
	b.want("set", "-u")
	b.add(-time.Hour)
	b.rounds(enough)
	b.wantAhead("beside another that agrees", "-oo")
}

// TestAheadAfterStep: a clock that was set may be ahead until it is compared anew.
func TestAheadAfterStep(t *testing.T) {
	b := newBench(t, 0, 0)
	b.rounds(enough)
	b.nodes[1].ahead = time.Hour
	if b.nodes[0].Ahead() || !b.nodes[1].Ahead() {
		t.Errorf("at once: %v %v", b.nodes[0].Ahead(), b.nodes[1].Ahead())
	}
	b.rounds(1)
	if !b.nodes[1].Ahead() {
		t.Error("a second later, the node trusts a clock that was set")
	}
	b.rounds(enough)
	b.wantAhead("compared", "oa")
	b.nodes[1].ahead = 0
	b.rounds(enough)
	b.wantAhead("set right", "oo")
}
