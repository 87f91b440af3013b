package clocks

import "time"

// ahead says whether the clock may be ahead of another node's clock by more than the tolerance.
type ahead struct {
	// proven: the clock was ahead of another node's clock, and has not been compared again since.
	proven bool
	// doubtUntil: the clock counts as ahead until this monotonic time, unless it is compared before: the node has
	// started, or the clock was set.
	doubtUntil time.Duration
}

// Ahead reports whether the clock may be ahead of another node's clock, so that no document may have its time. A clock
// that is behind does no such harm. Unlike Untrusted, of two nodes that differ, Ahead refuses one.
func (c *Comparison) Ahead() bool {
	if c == nil {
		return false
	}
	s := c.state.Load()
	wall, elapsed := c.now()
	return s.ahead || c.beyond(stepped(s.zero, wall, elapsed))
}

// mayBeAhead notes what a comparison with a verdict says, and reports whether the clock may be ahead at a monotonic
// time. While the bounds of another node say nothing, as after that node's start, and once the other nodes have gone
// after they differed, what was proven before counts.
func (c *Comparison) mayBeAhead(v verdict, others []bounds, elapsed time.Duration) bool {
	behind, compared := false, len(others) > 0 || !c.suspect
	for _, b := range others {
		behind = behind || b.known && b.most < -c.cfg.Tolerance
		compared = compared && b.known && b.least >= -MaxApart
	}
	switch {
	case v == agrees:
		c.ahead = ahead{}
	case behind:
		c.ahead.proven = true
	case compared:
		c.ahead = ahead{}
	}
	return c.ahead.proven || elapsed < c.ahead.doubtUntil
}
