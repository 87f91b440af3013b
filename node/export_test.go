package node

import (
	"context"
	"math"
	"runtime"
	"time"

	"licet/licensing"
	"licet/metrics"
)

// AwaitQueued returns when exactly count commands wait in a record's mailbox.
func (n *Node) AwaitQueued(ref licensing.Ref, count int) { n.awaitQueued(ref, count, false) }

// AwaitQueuedOut returns when exactly count commands wait in a license's outbox.
func (n *Node) AwaitQueuedOut(ref licensing.Ref, count int) { n.awaitQueued(ref, count, true) }

func (n *Node) awaitQueued(ref licensing.Ref, count int, out bool) {
	s := n.shardOf(ref)
	boxes := s.boxes
	if out {
		boxes = s.outboxes
	}
	for {
		s.mu.Lock()
		box := boxes[ref]
		queued := box != nil && len(box.queue) == count
		s.mu.Unlock()
		if queued {
			return
		}
		runtime.Gosched()
	}
}

// Pause waits a while after a lost swap.
func Pause(ctx context.Context, try int) bool { return pause(ctx, try) }

// StoreSeen stores the times at which devices were seen, without waiting for the next round.
func (n *Node) StoreSeen() { n.storeSeen() }

// YieldByClock sets the clock by which the node yields licenses. The node must not have got any command.
func (n *Node) YieldByClock(clock func() time.Time) { n.placement.clock = clock }

// Admit makes the node assume that the store serves serving commands at once and rate commands a second, and let in up
// to limit commands, until the node measures its rate again. With a clock that stands still it never does.
func (n *Node) Admit(serving, limit int, rate float64) {
	n.admission.serving = int64(serving)
	n.admission.limit.Store(int64(limit))
	n.admission.rate.bits.Store(math.Float64bits(rate))
	n.admission.rate.slow.Store(math.Float64bits(rate))
}

// UnderWay returns how many commands and reads the node has let in.
func (n *Node) UnderWay() int { return int(n.admission.underWay.Load()) }

// Admission is the admission of a node, without a node.
type Admission struct{ admission *admission }

// NewAdmission makes an Admission with the default delay.
func NewAdmission(clock func() time.Time, m *metrics.Metrics) *Admission {
	return &Admission{newAdmission(&Config{Clock: clock, Metrics: m, QueueDelay: defaultQueueDelay})}
}

// Enter lets a command of an owner in, or refuses it.
func (a *Admission) Enter(ctx context.Context, owner licensing.Owner) error {
	return a.admission.enter(ctx, a.admission.shares.of(owner))
}

// Leave ends a command of an owner.
func (a *Admission) Leave(owner licensing.Owner, err error) {
	a.admission.leave(a.admission.shares.of(owner), err)
}

// SetLimit sets how many commands may be under way.
func (a *Admission) SetLimit(limit int) { a.admission.limit.Store(int64(limit)) }

// Under returns how many commands all shares have under way, by either row.
func (a *Admission) Under() [2]int { return a.admission.shares.sums() }

// SharesUnder returns how many commands all shares have under way, by either row, and
// how many that came by a hop.
func (n *Node) SharesUnder() (own, hopped [2]int) {
	return n.admission.shares.sums(), n.admission.hopShare.sums()
}

func (s *shares) sums() (sums [2]int) {
	for row := range s.rows {
		for i := range s.rows[row] {
			sums[row] += int(s.rows[row][i].Load())
		}
	}
	return sums
}

// Limit is how many commands may be under way.
func (a *Admission) Limit() int { return int(a.admission.limit.Load()) }

// NoteSeen notes that a device was seen.
func (n *Node) NoteSeen(key licensing.LicenseKey, device string, at time.Time) {
	n.seen.mu.Lock()
	defer n.seen.mu.Unlock()
	n.seen.add(key, &licensing.Device{ID: device, LastSeenAt: at})
}

// Hopped returns how many commands that came by a hop are under way.
func (n *Node) Hopped() int { return int(n.admission.hopped.Load()) }

// BusyCommands is the number of commands, for each thread, from which a node is busy.
const BusyCommands = busyCommands
