package node

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// contestedRef is the license that these tests contend for.
var contestedRef = licensing.LicenseRef("LIC-00000-00000-00000-00000-00000")

// testPlacement is the placement of a node whose incarnation is a number, with a
// time of its own.
type testPlacement struct {
	*placement
	now time.Time
}

// incarnation returns the node that contestedRef ranks as number, of 1 to 255; zero for 0.
func incarnation(number byte) store.Incarnation {
	if number == 0 {
		return store.Incarnation{}
	}
	all := make([]store.Incarnation, 255)
	for i := range all {
		all[i] = store.Incarnation{byte(i + 1)}
	}
	slices.SortFunc(all, func(a, b store.Incarnation) int {
		if outranks(contestedRef, a, b) {
			return 1
		}
		return -1
	})
	return all[number-1]
}

func newTestPlacement(self byte) *testPlacement {
	p := &testPlacement{now: time.Now()}
	p.placement = newPlacement(&Config{Self: incarnation(self), Peers: struct{ Peers }{}})
	p.clock = func() time.Time { return p.now }
	p.swept = p.now
	p.jitter = func(d time.Duration) time.Duration { return d }
	return p
}

func (p *testPlacement) pass(d time.Duration) { p.now = p.now.Add(d) }

// loses loses swaps to a writer and tells whether the last one made it yield.
func (p *testPlacement) loses(times int, to byte) bool {
	yields := false
	for range times {
		yields = p.lost(contestedRef, incarnation(to))
	}
	return yields
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
	if to, yields := p.owner(licensing.LicenseRef("another")); yields {
		t.Errorf("another license is yielded to %v", to)
	}
}

// Losses that are far apart, to oneself, or of other records than licenses are
// none.
func TestYieldsToNobody(t *testing.T) {
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
	if p.loses(10*yieldAfter, 3) {
		t.Error("yields to a node of a lower rank")
	}
	if !p.loses(1, 7) {
		t.Error("does not yield to the node of a higher rank that wins at last")
	}
	off := newTestPlacement(5)
	off.peers = nil
	if off.loses(10, 7) {
		t.Error("yields although there is no way to the others")
	}
}

// TestYieldCools: a record is yielded for a while, which doubles as long as it
// is lost again at once, and begins anew after a while without.
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
		t.Error("one loss is enough long after")
	}
	p.pass(lossWindow + time.Millisecond)
	if !p.loses(yieldAfter, 7) {
		t.Error("does not yield anew")
	}
	p.pass(yieldSpan)
	p.wantOwner(t, 0)
}

// TestBlindLosses: a swap may not tell to whom it was lost; a read told before.
func TestBlindLosses(t *testing.T) {
	p := newTestPlacement(5)
	if p.loses(2*yieldAfter, 0) {
		t.Error("yields to nobody")
	}
	p.sawWriter(contestedRef, incarnation(5))
	if p.loses(1, 0) {
		t.Error("yields to itself")
	}
	p.sawWriter(contestedRef, incarnation(7))
	if !p.loses(1, 0) {
		t.Error("does not yield to who was seen")
	}
	p.wantOwner(t, 7)
}

// TestYieldsToTheOwnersOwner: the owner's answer names the node that the owner yields to.
func TestYieldsToTheOwnersOwner(t *testing.T) {
	p := newTestPlacement(5)
	p.loses(yieldAfter, 7)
	for _, x := range []struct{ by, yieldsTo, want byte }{
		{7, 0, 7}, // the owner yields to nobody
		{8, 9, 7}, // another node's answer
		{7, 5, 7}, // no node of a higher rank does that
		{7, 3, 7},
		{7, 9, 9},
	} {
		p.served(contestedRef, incarnation(x.by), incarnation(x.yieldsTo))
		p.wantOwner(t, x.want)
	}
}

// TestNoCircles: whichever nodes lose to whichever others, the nodes that a license is yielded along end at
// a node that writes the license.
func TestNoCircles(t *testing.T) {
	const nodes = 7
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		ref := licensing.LicenseRef(licensing.LicenseKey(binary.BigEndian.AppendUint64(nil, random.Uint64())))
		all := make(map[store.Incarnation]*testPlacement)
		var names []store.Incarnation
		for range nodes {
			p := newTestPlacement(1)
			binary.BigEndian.PutUint64(p.self[:], random.Uint64())
			all[p.self], names = p, append(names, p.self)
		}
		for range 200 {
			p := all[names[random.IntN(nodes)]]
			p.lost(ref, names[random.IntN(nodes)])
			if to, yields := p.owner(ref); yields {
				further, _ := all[to].owner(ref)
				p.served(ref, to, further)
			}
		}
		yielding := 0
		for _, p := range all {
			at, steps := p.self, 0
			for to, yields := p.owner(ref); yields; to, yields = all[at].owner(ref) {
				if at, steps = to, steps+1; steps > nodes {
					t.Fatal("nodes yield to each other in a circle")
				}
			}
			yielding += min(steps, 1)
		}
		if yielding == 0 {
			t.Error("no node yields")
		}
	}
}

// TestRanksDiffer: nodes that contend for many licenses divide them.
func TestRanksDiffer(t *testing.T) {
	const licenses = 1000
	highest := 0
	for i := range licenses {
		if outranks(licensing.LicenseRef(licensing.LicenseKey(binary.BigEndian.AppendUint64(nil, uint64(i)))), store.Incarnation{1}, store.Incarnation{2}) {
			highest++
		}
	}
	if highest < licenses*4/10 || highest > licenses*6/10 {
		t.Errorf("one of two nodes has the higher rank for %d of %d licenses", highest, licenses)
	}
}

// TestNotServed: a node that serves no commands, or leaves their outcome open, is sent none for a while.
func TestNotServed(t *testing.T) {
	p := newTestPlacement(5)
	p.loses(yieldAfter, 7)
	p.notServed(contestedRef, incarnation(8)) // somebody else's news
	p.wantOwner(t, 7)
	p.notServed(contestedRef, incarnation(7))
	p.wantOwner(t, 0)
	if p.loses(10*yieldAfter, 7) {
		t.Error("it is sent commands again at once")
	}
}

// TestContentionsAreBounded and forgotten.
func TestContentionsAreBounded(t *testing.T) {
	p := newTestPlacement(5)
	for i := range maxContentions + 100 {
		ref := licensing.LicenseRef(licensing.LicenseKey(string(rune(i + 1000))))
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
	p.lost(licensing.LicenseRef("another"), incarnation(7))
	if len(p.contentions) != 1 {
		t.Errorf("%d contentions are left", len(p.contentions))
	}
}
