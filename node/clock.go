package node

import (
	"time"

	"licet/licensing"
	"licet/node/clocks"
)

// clock tells the time of a node, and whether the node may act by it.
type clock struct {
	now   func() time.Time
	peers *clocks.Comparison // of now with the other nodes' clocks; nil: the node trusts now
}

// Now returns the time as records keep it: UTC, in whole milliseconds.
func (c *clock) Now() time.Time { return c.now().UTC().Truncate(time.Millisecond) }

// turnTime is the time for commands of a turn, and whether the node may act by it. One verdict holds for a fold and for
// the search before it: a node that acts by time in the fold, and did not in the search, would refuse devices of a
// license whose lapsed leases it has not looked for.
type turnTime struct {
	now        time.Time
	clocks     *clocks.Comparison
	asked      bool // most commands need no verdict
	actsByTime bool
	behind     time.Duration // see licensing.Record
}

// timeOfTurn returns the time for the commands of a turn. It fails if the node must refuse every request because of its
// clock: commands wait for their turn, and the clock may be set meanwhile.
func (c *clock) timeOfTurn() (turnTime, error) {
	now := c.Now() // before the check, which notices a step since the last comparison
	return turnTime{now: now, clocks: c.peers}, c.peers.Refusal()
}

// note notes in a record whether the node may act by the time, or else by how much its clock may be behind.
func (t *turnTime) note(record *licensing.Record) {
	if !t.asked {
		t.asked = true
		if t.actsByTime = t.clocks.Untrusted() == nil; !t.actsByTime {
			t.behind = t.clocks.Documents().Behind()
		}
	}
	record.ActsByTime, record.Behind = t.actsByTime, t.behind
}

// noteFor calls note if the command, or its growth, depends on the clock. The growth of an activation depends on it if
// the activation takes the slot of an inactive device.
func (t *turnTime) noteFor(cmd licensing.Command, record *licensing.Record) {
	if record.NeedsClock(cmd) {
		t.note(record)
	}
}

// RefuseByClock fails if the node must refuse every request because of its clock, see package clocks. It costs a look
// at the clock.
func (c *clock) RefuseByClock() error { return c.peers.Refusal() }

// UnreadyByClock fails if no requests should be sent to the node because of its clock, see package clocks.
func (c *clock) UnreadyByClock() error { return c.peers.Unready() }

// ActsByTime fails unless the node may end something because of its clock at present, see package clocks.
func (c *clock) ActsByTime() error { return c.peers.Untrusted() }

// LeaseTime returns the time by which leases have lapsed for a look-up; the zero time if the node must not act by its
// clock: then only those have lapsed that had ended by their license's LeaseClock.
func (c *clock) LeaseTime() time.Time {
	now := c.Now() // before the check, as for timeOfTurn
	if c.ActsByTime() != nil {
		return time.Time{}
	}
	return now
}

// DocumentClock says how the node dates documents, see package clocks.
func (c *clock) DocumentClock() *licensing.DocumentClock { return c.peers.Documents() }
