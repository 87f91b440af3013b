package node

import (
	"time"

	"licet/node/store"
)

// contention is what a node knows of the swaps of a record that other nodes write too.
type contention struct {
	losses int               // lost swaps since the time below
	since  time.Time         // when the node began to count the losses
	writer store.Incarnation // the last writer, as far as a read or a lost swap showed

	owner     store.Incarnation // the node that the record is yielded to
	until     time.Time         // when the record stops being yielded
	span      time.Duration     // for how long the record was yielded last; 0: the next loss counts as the first
	heldUntil time.Time         // the record is not yielded before
}

// yield sends the record's commands to another node for a while. Nodes that begin to yield at the same time
// must not all try again at the same time.
func (c *contention) yield(to store.Incarnation, now time.Time, jitter func(time.Duration) time.Duration) {
	if c.justYielded(now) {
		c.span = min(2*c.span, yieldSpanMax)
	} else {
		c.span = yieldSpan
	}
	c.owner, c.until, c.losses = to, now.Add(jitter(c.span)), 0
}

// justYielded reports whether the record was yielded until a short time ago.
func (c *contention) justYielded(now time.Time) bool { return c.span > 0 && now.Sub(c.until) <= c.span }

// hold makes the node swap for itself for a while.
func (c *contention) hold(now time.Time) {
	c.until, c.span, c.losses = now, 0, 0
	c.heldUntil = now.Add(holdSpan)
}

// isOver reports whether the contention has no effect any more.
func (c *contention) isOver(now time.Time) bool {
	return now.Sub(c.since) > lossWindow && now.After(c.heldUntil) && now.Sub(c.until) > c.span
}
