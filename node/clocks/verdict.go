package clocks

import "time"

// verdict says how the clock of a node compares with the clocks of the other nodes.
type verdict int

const (
	undecided verdict = iota // no majority is known to agree with the node, or to differ from it
	agrees                   // a majority of the nodes, with this node, agrees
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
}

// maxWidth bounds how far the bounds of a node with a vote lie apart. Wider bounds say too little: nodes record an end
// two minutes after it, which allows for clocks that are wrong by one minute.
const maxWidth = 30 * time.Second

// hasVote reports whether b bounds a clock from both sides, and tightly enough.
func (b bounds) hasVote() bool { return b.known && b.most-b.least <= maxWidth }

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

// decide returns the verdict on a node's clock, from the bounds of all other nodes.
//
// Two clocks agree unless their bounds prove that they differ by more than the tolerance: if their bounds, each widened
// by half of the tolerance, overlap. Intervals that overlap in pairs have a point in common. So the largest set of
// clocks that agree with each other belongs to the point that most of the widened intervals cover (Marzullo's
// algorithm, which NTP uses too), and one such point is the beginning of an interval.
func decide(others []bounds, tolerance time.Duration) verdict {
	half := tolerance / 2
	majority := (len(others)+1)/2 + 1
	points := []time.Duration{-half} // of this node, whose bounds are 0 and 0
	for _, b := range others {
		if b.hasVote() {
			points = append(points, b.least-half)
		}
	}
	for _, at := range points {
		agree, apart := 0, 0
		if -half <= at && at <= half {
			agree++
		}
		for _, b := range others {
			if !b.hasVote() || at < b.least-half || b.most+half < at {
				continue
			}
			agree++
			if d := b.differ(); d > tolerance || d < -tolerance {
				apart++
			}
		}
		switch {
		case agree >= majority && -half <= at && at <= half:
			return agrees
		case apart >= majority:
			return differs
		}
	}
	return undecided
}
