package clocks

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"licet/node/store"
)

// TestBoundsHold: whatever the delays of two nodes' requests are, the true difference of their clocks lies within the
// bounds, and the bounds are about three seconds apart if both nodes' requests are quick.
func TestBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := func(name string, most time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, name))
		}
		slow := duration("slow", 8*time.Second)
		ahead := duration("ahead", 20*day) - 10*day
		// The other node makes each stamp after the one before was stored.
		var made, stored []time.Duration
		for at := duration("begin", 3*time.Second); at < 40*time.Second; {
			made = append(made, at)
			at += duration("on the way", slow)
			stored = append(stored, at)
			at += time.Second + duration("pause", slow)
		}
		zero := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		other := store.Incarnation{1}
		e := evidence{nodes: map[store.Incarnation]*witness{}}
		bounded := false
		for began := time.Duration(0); began < 40*time.Second; {
			read := began + duration("request", slow)
			ended := read + duration("answer", slow)
			version := 0
			for version < len(stored) && stored[version] <= read {
				version++
			}
			var stamps []store.Stamp
			if version > 0 {
				stamps = []store.Stamp{{Node: other, At: zero.Add(made[version-1] + ahead), Created: 7,
					Version: int64(version)}}
			}
			e.learn(store.Incarnation{9}, stamps, began, ended)
			for _, b := range e.bounds(zero) {
				if b.least > ahead || b.known && b.most < ahead {
					t.Fatalf("ahead by %v, and the bounds are %+v", ahead, b)
				}
				bounded = bounded || b.known
			}
			began = ended + time.Second
		}
		if slow < 2*time.Second && !bounded {
			t.Fatal("never bounded")
		}
	})
}

// TestBoundsOfQuickNodes are about three seconds apart.
func TestBoundsOfQuickNodes(t *testing.T) {
	zero := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e, self, other := evidence{nodes: map[store.Incarnation]*witness{}}, store.Incarnation{9}, store.Incarnation{1}
	at := func(second int) time.Duration { return time.Duration(second) * time.Second }
	round := func(second int, stamps ...store.Stamp) []bounds {
		e.learn(self, stamps, at(second), at(second)+10*time.Millisecond)
		return e.bounds(zero)
	}
	stamp := func(created, version int64, second int) store.Stamp {
		return store.Stamp{Node: other, At: zero.Add(at(second) - 500*time.Millisecond), Created: created,
			Version: version}
	}
	own := store.Stamp{Node: self, At: zero.Add(day), Created: 1, Version: 1}
	for second, known := range []bool{false, false, true, true, true} {
		got := round(second, own, stamp(5, int64(second+4), second))
		if len(got) != 1 || got[0].known != known || got[0].least > 0 || known && got[0].most < 0 {
			t.Fatalf("second %d: %+v", second, got)
		}
		if known && got[0].most-got[0].least > 3*time.Second {
			t.Errorf("second %d: the bounds are %v apart", second, got[0].most-got[0].least)
		}
	}
	before := round(5, stamp(5, 8, 4)) // it has stored nothing since
	if got := round(6, stamp(5, 8, 4)); got[0] != before[0] {
		t.Errorf("bounds of a node that is silent changed from %+v to %+v", before[0], got[0])
	}
	if got := round(7, stamp(6, 9, 7)); got[0].known {
		t.Errorf("it has registered again: %+v", got)
	}
	if got := round(8); len(got) != 0 {
		t.Errorf("it is gone: %+v", got)
	}
	for second := 9; second < 40; second++ {
		round(second, stamp(6, int64(second), second))
	}
	if n := len(e.nodes[other].seen); n > 3 {
		t.Errorf("%d sightings are kept", n)
	}
}
