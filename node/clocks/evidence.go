package clocks

import (
	"slices"
	"time"

	"licet/node/store"
)

// evidence contains what the stamps of the other nodes prove. Times without a date are monotonic: they count from the
// start of the process. So a step of the node's own clock changes no evidence, only what the evidence proves.
type evidence struct {
	nodes map[store.Incarnation]*witness
	gone  []*witness // nodes that were registered within trustFor, with their last bounds
}

// witness is what one other node's stamps prove. The newest stamp was made between the monotonic times after and
// before.
type witness struct {
	join
	version       int64
	stamp         time.Time
	after, before time.Duration
	bounded       bool          // after is known
	left          time.Duration // when this node knew that the other node is gone; monotonic
	// seen tells for older versions when the last read that returned the version began, the newest version last.
	// Only the newest version below the current version minus one is needed, and all versions above that.
	seen []sighting
}

// join is the beginning of a node's registration.
type join struct {
	node    store.Incarnation
	created int64         // registrations that began later have higher numbers
	known   time.Duration // when this node knew of the registration; monotonic
}

type sighting struct {
	version int64
	began   time.Duration
}

// learn takes in the stamps that a read has returned, which began and ended at two monotonic times. A node without a
// stamp now is gone, and so is a node that has registered again.
func (e *evidence) learn(self store.Incarnation, stamps []store.Stamp, began, ended time.Duration) {
	present := make(map[store.Incarnation]bool, len(stamps))
	for _, s := range stamps {
		if s.Node == self {
			continue
		}
		present[s.Node] = true
		w := e.nodes[s.Node]
		if w == nil || w.created != s.Created {
			e.leave(w, ended)
			w = &witness{join: join{s.Node, s.Created, ended}}
			e.nodes[s.Node] = w
		}
		if w.version != s.Version {
			w.version, w.stamp, w.before = s.Version, s.At, ended
			w.after, w.bounded = w.lastBelow(s.Version - 1)
		}
		w.sawAt(s.Version, began)
	}
	for node, w := range e.nodes {
		if !present[node] {
			e.leave(w, ended)
			delete(e.nodes, node)
		}
	}
	e.gone = slices.DeleteFunc(e.gone, func(w *witness) bool { return ended-w.left > trustFor })
}

// leave notes that a node is gone at a monotonic time.
func (e *evidence) leave(w *witness, at time.Duration) {
	if w != nil {
		gone := *w
		gone.left, gone.seen = at, nil
		e.gone = append(e.gone, &gone)
	}
}

// forgetReads forgets when reads began. A read that began before the machine slept began earlier than its monotonic
// time says, so stamps that were made after that read prove nothing of the other clock being behind.
func (e *evidence) forgetReads() {
	for _, w := range e.nodes {
		w.seen, w.bounded = nil, false
	}
}

// lastBelow returns when the last read began that returned a version below the given one.
func (w *witness) lastBelow(version int64) (began time.Duration, found bool) {
	for _, s := range slices.Backward(w.seen) {
		if s.version < version {
			return s.began, true
		}
	}
	return 0, false
}

// sawAt notes a read that returned a version, and forgets versions that are not needed any more.
func (w *witness) sawAt(version int64, began time.Duration) {
	if last := len(w.seen) - 1; last >= 0 && w.seen[last].version == version {
		w.seen[last].began = began
		return
	}
	w.seen = append(w.seen, sighting{version, began})
	for len(w.seen) > 1 && w.seen[1].version < version-1 {
		w.seen = w.seen[1:]
	}
}

// extreme bounds bounds, so that they can be added and subtracted.
const extreme = 100 * 365 * 24 * time.Hour

// bounds returns the bounds of all other nodes' clocks, for a clock of this node that shows zero at the monotonic
// time 0.
func (e *evidence) bounds(zero time.Time) []bounds {
	list := make([]bounds, 0, len(e.nodes))
	for _, w := range e.nodes {
		list = append(list, w.bounds(zero))
	}
	return list
}

// left returns the bounds of the clocks of the nodes that are gone, for the same clock.
func (e *evidence) left(zero time.Time) (list []bounds) {
	for _, w := range e.gone {
		list = append(list, w.bounds(zero))
	}
	return list
}

func (w *witness) bounds(zero time.Time) bounds {
	between := func(at time.Duration) time.Duration {
		return min(max(w.stamp.Sub(zero.Add(at)), -extreme), extreme)
	}
	b := bounds{least: between(w.before), known: w.bounded, join: w.join}
	if w.bounded {
		b.most = between(w.after)
	}
	return b
}
