package node

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/licensing"
	"licet/node/store"
)

const (
	// foldCommands bounds the commands of one fold, so that no command waits long for the others.
	foldCommands = 512
	// maxCallTime bounds a call whose context has no deadline, such as those of work in the background.
	maxCallTime = 30 * time.Second
)

// mailbox queues the calls on one record. It is in its shard's map exactly while its turns run.
type mailbox struct {
	ref   licensing.Ref
	shard *shard
	out   bool // the mailbox is an outbox

	// Guarded by the shard's lock:
	queue   []*call
	running int // calls of the turn that is under way
	own     int // waiting and running calls that did not come by a hop

	taken turn // the turn that is under way or, in a new mailbox, the first turn; only the turn uses it

	// Of the latest turn, if it left calls waiting; guarded by the same lock.
	turnCalls int           // how many calls it had
	turnTook  time.Duration // 0: the turn left no calls
}

// Do runs a command on the record that ref names, and returns when the outcome is stored, or when ctx ends. If ctx ends
// while the command still waits, Do fails with ErrUnavailable and the command is never run; if ctx ends later, Do fails
// with ErrOutcomeUnknown. A ctx without a deadline ends after maxCallTime. Do refuses a command with ErrOverloaded, at
// once, if the node can't serve the command soon or before ctx ends.
func (n *Node) Do(ctx context.Context, ref licensing.Ref, cmd licensing.Command) (result licensing.Result, err error) {
	who := n.shareOf(ref, cmd)
	if err := n.admission.enter(ctx, who); err != nil {
		return licensing.Result{}, err
	}
	return n.doPlaced(ctx, who, ref, cmd)
}

// doPlaced runs a command that was let in, and gives the place back.
func (n *Node) doPlaced(
	ctx context.Context, who share, ref licensing.Ref, cmd licensing.Command,
) (result licensing.Result, err error) {
	c := newCommand(who, cmd)
	defer func() { n.admission.leave(c.takeShare(), err) }()
	return n.doCall(ctx, ref, c)
}

// doCall runs a call. The caller of a record that no other call waits for runs the first turn itself,
// since most licenses have one caller at a time; calls that have come meanwhile get a goroutine.
func (n *Node) doCall(ctx context.Context, ref licensing.Ref, c *call) (licensing.Result, error) {
	var bounded bool
	if c.deadline, bounded = ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, maxCallTime)
		defer cancel()
		c.deadline, _ = ctx.Deadline()
	}
	if span := n.cfg.Tracer.SpanFrom(ctx); span != nil {
		c.traced = &traced{span: span, since: time.Now()}
	}
	box, err := n.post(ref, c)
	if err != nil {
		return licensing.Result{}, err
	}
	if box != nil {
		if more := n.runTurn(ctx, box); more {
			n.runner.guard.Start("mailbox", func() { n.run(box) })
		}
	}
	if c.done == nil { // the turn above has answered the call
		return c.outcome.Result, c.outcome.Err
	}
	return n.await(ctx, c)
}

// post puts a call into its record's mailbox. If none is running, post returns a new mailbox, which the
// caller must run. The first turn of a new mailbox is the call alone.
func (n *Node) post(ref licensing.Ref, c *call) (*mailbox, error) {
	s := n.shardOf(ref)
	_, yields := n.placement.owner(ref)
	s.mu.Lock()
	defer s.mu.Unlock()
	if yields && mayHop(c.cmd) {
		c.mustWait()
		return nil, n.postOut(s, ref, c)
	}
	if box, running := s.boxes[ref]; running {
		c.mustWait()
		if c.kind == kindTask {
			return nil, n.queueFirst(box, c)
		}
		return nil, n.queue(box, c)
	}
	if err := n.StartWork(); err != nil {
		return nil, err
	}
	c.state.Store(callTaken)
	box := &mailbox{ref: ref, shard: s, taken: turn{c.kind, []*call{c}}, running: 1, own: 1}
	s.boxes[ref] = box
	return box, nil
}

// queue lets calls wait in a mailbox that is running, all of them or none. The caller holds the shard's lock.
func (n *Node) queue(box *mailbox, calls ...*call) error {
	if full := n.fullFor(box, calls...); full != nil {
		return refuse(full)
	}
	if n.Draining() {
		return errDraining
	}
	box.append(calls)
	return nil
}

// append lets calls wait behind all others.
func (b *mailbox) append(calls []*call) {
	b.queue = append(b.queue, calls...)
	b.own += countOwn(calls)
}

// fullFor decides whether calls, which have one deadline, may wait in a mailbox that is running. It returns nil if
// they may, else the counter of the refusal.
func (n *Node) fullFor(box *mailbox, calls ...*call) prometheus.Counter {
	switch {
	case len(box.queue)+len(calls) > n.cfg.QueueLimit:
		return n.admission.shed.mailbox
	case calls[0].hopped: // see enterHop
		return nil
	case !n.admission.mayJoin(box.own, share(calls[0].who.Load())):
		return n.admission.shed.share
	case box.wait() > 0 && box.wait() > time.Until(calls[0].deadline):
		return n.admission.shed.deadline
	}
	return nil
}

// wait returns how long the calls that wait will take, if the next turns are like the latest one.
func (b *mailbox) wait() time.Duration {
	if b.turnTook == 0 {
		return 0
	}
	return time.Duration(len(b.queue)/b.turnCalls) * b.turnTook
}

// run runs turns until nothing waits.
func (n *Node) run(box *mailbox) {
	for n.runTurn(context.Background(), box) {
	}
}

// runTurn runs one turn of a mailbox or an outbox, and reports whether calls wait for another turn. If none waits,
// runTurn removes the mailbox. ctx is the caller's if the turn is the first of a new mailbox; localTurn gives any
// other turn its deadline. After a panic, runTurn answers the calls that the turn took. If the turn took none, the same
// panic would end each later turn too, and runTurn answers all calls that wait.
func (n *Node) runTurn(ctx context.Context, box *mailbox) (more bool) {
	ended := n.runner.guard.Do("mailbox", func() {
		if box.out {
			n.hopTurn(box)
		} else {
			n.localTurn(ctx, box)
		}
	})
	if !ended {
		calls := box.taken.calls
		if calls == nil {
			calls = box.takeAll()
		}
		answerAll(calls, licensing.ErrInternal)
	}
	box.taken = turn{}
	return !n.retire(box)
}

// localTurn runs the calls of a mailbox's next turn on this node. Calls that are to hop after all go to
// the outbox.
func (n *Node) localTurn(ctx context.Context, box *mailbox) {
	t, left := box.taken, false
	if t.calls == nil { // else the first turn, which belongs to its caller
		if t, left = n.takeTurn(box); len(t.calls) == 0 {
			return
		}
		var cancel context.CancelFunc
		ctx, cancel = turnContext(ctx, t.calls)
		defer cancel()
	}
	n.traceWait(waitTaken, t.calls...)
	began := n.cfg.Clock()
	n.answerTurn(ctx, box.ref, t)
	n.moveOut(box.ref, t.calls)
	if t.kind != kindTask { // which says nothing of the calls that wait
		box.noteTurn(len(t.calls), left, n.cfg.Clock().Sub(began))
	}
}

// takeTurn takes the next turn of a mailbox, and reports whether other calls still wait.
func (n *Node) takeTurn(box *mailbox) (t turn, left bool) {
	box.shard.mu.Lock()
	defer box.shard.mu.Unlock()
	devices := store.MaxTouchedDevices
	if len(box.queue) > devices {
		devices = n.cfg.Records.MaxDevicesPerCommit(box.ref)
	}
	box.taken = box.take(devices)
	return box.taken, len(box.queue) > 0
}

// takeHop takes the calls of the next hop of an outbox.
func (b *mailbox) takeHop() []*call {
	b.shard.mu.Lock()
	defer b.shard.mu.Unlock()
	b.taken = b.take(MaxHop)
	return b.taken.calls
}

// takeAll takes all calls that wait, except the calls whose caller has given up.
func (b *mailbox) takeAll() []*call {
	b.shard.mu.Lock()
	defer b.shard.mu.Unlock()
	all := b.queue
	b.queue, b.running, b.own = nil, 0, 0
	for _, c := range all {
		c.state.CompareAndSwap(callWaiting, callTaken)
	}
	return all
}

// home returns the map that the mailbox is in while its turns run.
func (b *mailbox) home() map[licensing.Ref]*mailbox {
	if b.out {
		return b.shard.outboxes
	}
	return b.shard.boxes
}

// noteTurn keeps how long a turn took, if the turn left calls waiting: the next turns will be of about that size.
func (b *mailbox) noteTurn(calls int, left bool, took time.Duration) {
	if !left {
		took = 0
	}
	b.shard.mu.Lock()
	defer b.shard.mu.Unlock()
	b.turnCalls, b.turnTook = calls, took
}

// retire removes a mailbox if nothing waits in it, and reports whether it did.
func (n *Node) retire(box *mailbox) bool {
	box.shard.mu.Lock()
	defer box.shard.mu.Unlock()
	if len(box.queue) > 0 {
		return false
	}
	delete(box.home(), box.ref)
	n.EndWork()
	return true
}

// take removes the next turn from the queue: at most foldCommands commands, which touch at
// most so many devices. take drops calls whose caller has given up, before anything was done for them.
func (b *mailbox) take(maxDevices int) (t turn) {
	if len(b.queue) == 1 { // as of most turns
		c := b.queue[0]
		if !c.isOver() && c.state.CompareAndSwap(callWaiting, callTaken) {
			t = turn{c.kind, b.queue}
		}
		b.queue = nil
		b.running, b.own = len(t.calls), countOwn(t.calls)
		return t
	}
	devices := make(map[string]struct{})
	i := 0
	for ; i < len(b.queue) && len(t.calls) < foldCommands; i++ {
		c := b.queue[i]
		if c.isOver() {
			continue
		}
		if c.alone() && len(t.calls) > 0 {
			break
		}
		if id := c.deviceID(); id != "" {
			if _, seen := devices[id]; !seen {
				if len(devices) == maxDevices {
					break
				}
				devices[id] = struct{}{}
			}
		}
		if c.state.CompareAndSwap(callWaiting, callTaken) {
			t.kind, t.calls = c.kind, append(t.calls, c)
			if c.alone() {
				i++
				break
			}
		}
	}
	b.queue = append(b.queue[:0], b.queue[i:]...)
	clear(b.queue[len(b.queue):cap(b.queue)])
	b.running, b.own = len(t.calls), countOwn(t.calls)+countOwn(b.queue)
	return t
}
