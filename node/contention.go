package node

import (
	"time"

	"licet/node/store"
)

// contention is what a node knows of the swaps of a license that other nodes write too.
type contention struct {
	losses int               // lost swaps since the time below
	since  time.Time         // when the node began to count the losses
	writer store.Incarnation // the last writer, as far as a read or a lost swap showed

	owner     store.Incarnation // the node that the license is yielded to
	until     time.Time         // when the license stops being yielded
	span      time.Duration     // for how long the license was yielded last; 0: the next loss counts as the first
	busy      bool              // the owner also had commands of other nodes
	moves     int               // how often in a row the owner has named another owner
	unserved  bool              // the owner before this one has served no command of a hop, and named this owner
	keepUntil time.Time         // the node does not yield the license before this time

	hosted time.Time // when another node sent commands on the license last
	// redirected is the start of the current run of hops to the license while this node yields it; zero: no run.
	redirected time.Time
}

// yield sends the license's commands to another node for a while. Nodes that begin to yield at the same time must not
// all try again at the same time.
func (c *contention) yield(to store.Incarnation, now time.Time, jitter func(time.Duration) time.Duration) {
	switch {
	case c.span == 0 || now.Sub(c.until) > c.span:
		c.span = yieldSpan
	default:
		c.span = min(2*c.span, yieldSpanMax)
	}
	c.owner, c.until, c.losses = to, now.Add(jitter(c.span)), 0
	c.busy, c.moves, c.unserved, c.redirected = false, 0, false, time.Time{}
}

// stillBusy reports whether the owner most likely has other nodes' commands still, after the time for which the
// license was yielded.
func (c *contention) stillBusy(now time.Time) bool { return c.busy && now.Sub(c.until) <= c.span }

// keep makes the node swap the license itself for a while.
func (c *contention) keep(now time.Time, span time.Duration) {
	c.until, c.span, c.losses, c.busy, c.moves, c.unserved = now, 0, 0, false, 0, false
	c.keepUntil = now.Add(span)
}
