package clocks

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// MaxApart is by how much a node's clock may be proven to differ at most from the clocks of a majority if the node acts
// by time. Any two majorities have a node in common, so two nodes that act by time differ by at most 2 × MaxApart. That
// is less than licensing.LeaseGuard: a lease goes to another device only once it has ended by every such clock.
const MaxApart = licensing.LeaseGuard/2 - 100*time.Millisecond

// verdict says how the clock of a node compares with the clocks of the other nodes.
type verdict int

const (
	undecided verdict = iota // no majority is known to agree with the node, or to differ from it
	agrees                   // a majority of the nodes, with this node, is proven to be within MaxApart of the node
	differs                  // the node differs from a majority, whose nodes agree with each other
)

// String returns the verdict as the metric labels it.
func (v verdict) String() string {
	return [...]string{"undecided", "agrees", "differs"}[v]
}

// bounds says how far another node's clock is ahead of this node's clock: between least and most.
type bounds struct {
	least, most time.Duration
	known       bool // both bounds are; else only least is
	join        join // of the other node
}

// differ returns by how much the other clock is proven to differ: positive if it is ahead, negative if it is behind,
// 0 if nothing is proven.
func (b bounds) differ() time.Duration {
	switch {
	case b.least > 0:
		return b.least
	case b.known && b.most < 0:
		return b.most
	default:
		return 0
	}
}

// near returns how far apart the clocks are at least; far returns how far apart they are at most.
func (b bounds) near() time.Duration { return b.differ().Abs() }

func (b bounds) far() time.Duration {
	if !b.known {
		return 2 * extreme
	}
	return max(b.least.Abs(), b.most.Abs())
}

// majority returns the smallest distance from this node's clock within which most clocks are, this node's own included.
func majority(others []bounds, distance func(bounds) time.Duration) time.Duration {
	all := []time.Duration{0}
	for _, b := range others {
		all = append(all, distance(b))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// earlier returns the smallest distance from this node's clock within which half of the clocks were, or more, of each
// set of nodes that the cluster may have had less than trustFor before a monotonic time, this node's own clock
// included. A node that has not read since then may still act by time as a majority of the earlier set has allowed: a
// majority and half of the nodes have a node in common. own is the join of this node. gone are the nodes that have left
// since then. It is unknown which of them left first: so these sets have all that are far, and none that is near.
//
// This node has known which nodes leave since a monotonic time. For trustFor after that time it does not know all of
// these sets. So each node that was registered at that time counts: only such a node can still act by time as a set has
// allowed that this node does not know.
func earlier(others, gone []bounds, own join, since, now time.Duration) (within time.Duration) {
	for _, b := range others {
		if now-since < trustFor && b.join.known <= since {
			within = max(within, b.far())
		}
	}
	nodes := append(slices.Clone(others), bounds{known: true, join: own})
	for _, b := range gone {
		if b.far() > MaxApart {
			nodes = append(nodes, b)
		}
	}
	slices.SortFunc(nodes, func(a, b bounds) int { return cmp.Compare(a.join.created, b.join.created) })
	before := make(map[store.Incarnation]time.Duration) // a node that has registered again counts once
	half := func() time.Duration { return slices.Sorted(maps.Values(before))[(len(before)-1)/2] }
	for _, b := range nodes {
		if len(before) > 0 && now-b.join.known < trustFor {
			within = max(within, half())
		}
		before[b.join.node] = max(before[b.join.node], b.far())
	}
	if len(nodes) > len(others)+1 {
		within = max(within, half())
	}
	return within
}

// tooWide reports whether narrower bounds could prove that a majority is within MaxApart.
func tooWide(others []bounds) bool { return majority(others, bounds.near) <= MaxApart }

// decide returns the verdict on a node's clock, from the bounds of all other nodes.
//
// The node agrees if a majority is proven to be within MaxApart. The node differs from a majority whose clocks are each
// proven to differ by more than the tolerance from the node's, and not from each other: their bounds, each widened by
// half of the tolerance, overlap. Intervals that overlap in pairs have a point in common. So the largest set of such
// clocks belongs to the point that most of the widened intervals cover (Marzullo's algorithm, which NTP uses too), and
// one such point is the beginning of an interval.
func decide(others []bounds, tolerance time.Duration) verdict {
	var apart []bounds
	for _, b := range others {
		if b.known && b.near() > tolerance {
			apart = append(apart, b)
		}
	}
	for _, first := range apart {
		at, alike := first.least-tolerance/2, 0
		for _, b := range apart {
			if b.least-tolerance/2 <= at && at <= b.most+tolerance/2 {
				alike++
			}
		}
		if alike > (len(others)+1)/2 {
			return differs
		}
	}
	if majority(others, bounds.far) <= MaxApart {
		return agrees
	}
	return undecided
}
