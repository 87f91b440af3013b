package node

import (
	"licet/node/store"
	"time"
)

// contest is what a node knows of its swaps on a contended record.
type contest struct {
	losses int
	since  time.Time         // when they began to be counted
	writer store.Incarnation // who wrote last, as far as a read or a lost swap showed

	owner     store.Incarnation // whom the record is yielded to
	until     time.Time         // how long
	span      time.Duration
	busy      bool      // the owner has said that it had others' commands too
	moves     int       // how often in a row the owner has named another one
	unserved  bool      // the one before the owner has served none of a hop, and named the owner
	heldUntil time.Time // the record is not yielded before

	hosted     time.Time // when another node sent commands for it last
	redirected time.Time // since when others have sent them without a pause while it was yielded; zero: they have not
}

// yield sends the record's commands away for a while. Nodes that began to at the
// same time must not all try again at the same time.
func (c *contest) yield(to store.Incarnation, now time.Time, jitter func(time.Duration) time.Duration) {
	switch {
	case c.span == 0 || now.Sub(c.until) > c.span:
		c.span = yieldSpan
	default:
		c.span = min(2*c.span, yieldSpanMax)
	}
	c.owner, c.until, c.losses, c.busy, c.moves, c.unserved, c.redirected = to, now.Add(jitter(c.span)), 0, false, 0, false, time.Time{}
}

// stillBusy tells whether what the owner has said of its other commands is worth
// anything after the time for which the record was yielded: not for long.
func (c *contest) stillBusy(now time.Time) bool { return c.busy && now.Sub(c.until) <= c.span }

// hold makes the node swap for itself for a while.
func (c *contest) hold(now time.Time, span time.Duration) {
	c.until, c.span, c.losses, c.busy, c.moves, c.unserved = now, 0, 0, false, 0, false
	c.heldUntil = now.Add(span)
}
