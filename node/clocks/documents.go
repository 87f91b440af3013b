package clocks

import (
	"time"

	"licet/licensing"
)

// dating says how the node dates documents, as far as comparisons have shown.
type dating struct {
	clock *licensing.DocumentClock
	// doubtUntil: the node dates nothing until this monotonic time, unless its clock is compared before: the node has
	// started, or its clock was set.
	doubtUntil time.Duration
}

// set notes that the node's clock was set. If clocks were apart before, nothing is known of them now.
func (d *dating) set(doubtUntil time.Duration) {
	d.doubtUntil = doubtUntil
	if d.clock != nil {
		d.clock = licensing.ClocksUnknown()
	}
}

// Documents returns how the node dates documents. Unlike Untrusted, Documents lets two nodes that differ go on.
func (c *Comparison) Documents() *licensing.DocumentClock {
	if c == nil {
		return nil
	}
	s := c.state.Load()
	if wall, elapsed := c.now(); c.beyond(stepped(s.zero, wall, elapsed)) {
		return licensing.ClocksUnknown()
	}
	return s.documents
}

// date notes what a comparison with a verdict says of the earliest and the latest clock, and returns how the node dates
// documents at a monotonic time. What was proven before counts while the bounds of another node say nothing, as after
// that node's start, or are too wide, and once the other nodes have gone after they differed.
func (c *Comparison) date(v verdict, others []bounds, elapsed time.Duration) *licensing.DocumentClock {
	clock, compared := spread(others)
	differ := c.beyond(farthest(others))
	switch d := &c.dating; {
	case v == agrees, len(others) == 0 && !c.suspect:
		*d = dating{}
	case len(others) > 0 && compared && (differ || clock.Apart <= 2*MaxApart):
		*d = dating{clock: &clock}
	case differ:
		if d.clock != nil {
			clock.Ahead, clock.Apart = max(d.clock.Ahead, clock.Ahead), max(d.clock.Apart, clock.Apart)
		}
		d.clock = &clock
	}
	if elapsed < c.dating.doubtUntil {
		return licensing.ClocksUnknown()
	}
	return c.dating.clock
}

// spread returns the upper bounds of how far this node's clock is ahead of the earliest clock, and of the distance
// between the earliest and the latest clock, this node's own included. compared reports whether all bounds are known.
func spread(others []bounds) (clock licensing.DocumentClock, compared bool) {
	compared = true
	latest := time.Duration(0)
	for _, b := range others {
		if !b.known {
			compared = false
			latest = max(latest, b.least)
			continue
		}
		clock.Ahead, latest = max(clock.Ahead, -b.least), max(latest, b.most)
	}
	clock.Apart = clock.Ahead + latest
	return clock, compared
}
