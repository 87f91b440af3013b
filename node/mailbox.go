package node

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/licensing"
	"licet/node/store"
)

const (
	shardCount = 64 // a power of two
	// foldCommands bounds the commands of one fold, so that none waits long
	// for its batch mates.
	foldCommands = 512
)

// shard holds the mailboxes of a part of all records.
type shard struct {
	mu       sync.Mutex
	boxes    map[licensing.Ref]*mailbox
	outboxes map[licensing.Ref]*mailbox // for licenses that are yielded, see outbox.go
}

// mailbox queues the commands for one record. It is in its shard's map exactly
// while somebody runs it.
type mailbox struct {
	ref   licensing.Ref
	shard *shard
	out   bool // it is an outbox

	// Guarded by the shard's lock:
	queue   []*call
	running int // calls of the turn that is under way
	own     int // of those that wait and those that run: what did not come by a hop

	taken []*call // by the turn that is under way; only that turn uses it

	// Of the latest turn, if it left something waiting; guarded likewise.
	turnHeld int           // calls in it
	turnTook time.Duration // 0: it left nothing
}

// Do runs a command on the record that ref names, and answers when its outcome
// is stored, or when ctx ends. A ctx that ends while the command still waits
// gives ErrUnavailable, and the command is never run; later it gives
// ErrOutcomeUnknown. ctx must carry a deadline. What can't be served soon, or
// not before ctx ends, is refused at once with ErrOverloaded.
func (n *Node) Do(ctx context.Context, ref licensing.Ref, cmd licensing.Command) (result licensing.Result, err error) {
	who := n.shareOf(ref, cmd)
	if err := n.admission.enter(ctx, who); err != nil {
		return licensing.Result{}, err
	}
	return n.doPlaced(ctx, who, ref, cmd)
}

// doPlaced runs a command that was let in, and gives back its place.
func (n *Node) doPlaced(ctx context.Context, who share, ref licensing.Ref, cmd licensing.Command) (result licensing.Result, err error) {
	c := newCall(who, &call{cmd: cmd})
	defer func() { n.admission.leave(c.gone(), err) }()
	return n.doCall(ctx, ref, c)
}

func (n *Node) doCall(ctx context.Context, ref licensing.Ref, c *call) (licensing.Result, error) {
	c.deadline, _ = ctx.Deadline()
	if span := n.cfg.Tracer.SpanFrom(ctx); span != nil {
		c.traced = &traced{span: span, since: time.Now()}
	}
	box, err := n.post(ref, c)
	if err != nil {
		return licensing.Result{}, err
	}
	if box == nil {
		return n.await(ctx, c)
	}
	n.runFirst(ctx, box, c)
	return c.result, c.err
}

// post puts a call into its record's mailbox. Where none is running it gives
// one, which the caller must run, beginning with this call.
func (n *Node) post(ref licensing.Ref, c *call) (*mailbox, error) {
	s := n.shardOf(ref)
	_, yields := n.placement.owner(ref)
	s.mu.Lock()
	defer s.mu.Unlock()
	if yields && mayHop(c.cmd) {
		c.done = make(chan struct{})
		return nil, n.postOut(s, ref, c)
	}
	if box, running := s.boxes[ref]; running {
		c.done = make(chan struct{})
		if c.work != nil {
			return nil, n.queueFirst(box, c)
		}
		return nil, n.queue(box, c)
	}
	if err := n.enter(); err != nil {
		return nil, err
	}
	box := &mailbox{ref: ref, shard: s, running: 1, own: 1}
	s.boxes[ref] = box
	c.state.Store(callTaken)
	return box, nil
}

// queue lets calls wait in a mailbox that is running, all of them or none. The
// shard's lock is held.
func (n *Node) queue(box *mailbox, calls ...*call) error {
	if full := n.fullFor(box, calls...); full != nil {
		return refuse(full)
	}
	if n.isDraining() {
		return errDraining
	}
	box.append(calls)
	return nil
}

// append lets calls wait.
func (b *mailbox) append(calls []*call) {
	b.queue = append(b.queue, calls...)
	b.own += countOwn(calls)
}

// fullFor decides whether calls, which have one deadline, may wait in a mailbox
// that is running: nil, or what their refusal is counted by.
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

// wait is how long those who wait already will take, as far as the latest turn
// tells.
func (b *mailbox) wait() time.Duration {
	if b.turnTook == 0 {
		return 0
	}
	return time.Duration(len(b.queue)/b.turnHeld) * b.turnTook
}

func (n *Node) shardOf(ref licensing.Ref) *shard {
	return &n.shards[maphash.Comparable(n.seed, ref)%shardCount]
}

// countMailboxes tells how many records have commands waiting or running.
func (n *Node) countMailboxes() float64 {
	return n.sumShards(func(boxes map[licensing.Ref]*mailbox) int { return len(boxes) })
}

// countWaiting tells how many commands wait in all mailboxes.
func (n *Node) countWaiting() float64 {
	return n.sumShards(func(boxes map[licensing.Ref]*mailbox) (waiting int) {
		for _, box := range boxes {
			waiting += len(box.queue)
		}
		return waiting
	})
}

func (n *Node) sumShards(count func(map[licensing.Ref]*mailbox) int) float64 {
	sum := 0
	for i := range n.shards {
		s := &n.shards[i]
		s.mu.Lock()
		sum += count(s.boxes) + count(s.outboxes)
		s.mu.Unlock()
	}
	return float64(sum)
}

// runFirst takes a mailbox that was idle through its first turn. It runs in the
// caller of that turn's only call, since most licenses are asked for by one
// caller at a time; who has come meanwhile gets a goroutine.
func (n *Node) runFirst(ctx context.Context, box *mailbox, c *call) {
	n.settle(ctx, box.ref, []*call{c})
	if !n.retire(box) {
		n.guard.Start("mailbox", func() { n.run(box) })
	}
}

// run empties a mailbox, fold by fold, and removes it when nothing waits.
func (n *Node) run(box *mailbox) {
	for {
		n.inTurn(box, func() {
			calls, left := box.takeTurn(n.roomFor(box))
			if len(calls) == 0 {
				return
			}
			n.traceWait(waitTaken, calls...)
			began := n.cfg.Clock()
			n.settleCalls(box.ref, calls)
			if calls[0].work == nil { // which tells nothing of those that wait
				box.noteTurn(len(calls), left, n.cfg.Clock().Sub(began))
			}
		})
		if n.retire(box) {
			return
		}
	}
}

// inTurn runs one turn of a mailbox or an outbox. After a panic, inTurn answers the calls that the
// turn took. If the turn took none, the same panic would end each later turn too, and inTurn
// answers all calls that wait.
func (n *Node) inTurn(box *mailbox, turn func()) {
	box.taken = nil
	if n.guard.Do("mailbox", turn) {
		return
	}
	if box.taken == nil {
		box.taken = box.takeAll()
	}
	answerAll(box.taken, licensing.ErrInternal)
}

// takeTurn takes the calls of the next turn, and reports whether it left others.
func (b *mailbox) takeTurn(room int) (calls []*call, left bool) {
	b.shard.mu.Lock()
	defer b.shard.mu.Unlock()
	b.taken = b.take(room)
	return b.taken, len(b.queue) > 0
}

// takeAll takes all calls that wait, except those whose caller has given up.
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

// home is the map that the mailbox is in while it runs.
func (b *mailbox) home() map[licensing.Ref]*mailbox {
	if b.out {
		return b.shard.outboxes
	}
	return b.shard.boxes
}

// noteTurn keeps how long a turn took that left something waiting: those that
// wait then will get turns of about that size.
func (b *mailbox) noteTurn(held int, left bool, took time.Duration) {
	if !left {
		took = 0
	}
	b.shard.mu.Lock()
	defer b.shard.mu.Unlock()
	b.turnHeld, b.turnTook = held, took
}

// retire removes a mailbox in which nothing waits.
func (n *Node) retire(box *mailbox) bool {
	box.shard.mu.Lock()
	defer box.shard.mu.Unlock()
	if len(box.queue) > 0 {
		return false
	}
	delete(box.home(), box.ref)
	n.work.Done()
	return true
}

// settleCalls settles a turn within the time of the most patient of its calls, and
// moves those to the outbox that are to hop after all.
func (n *Node) settleCalls(ref licensing.Ref, calls []*call) {
	ctx, cancel := turnContext(calls)
	defer cancel()
	n.settle(ctx, ref, calls)
	n.moveAway(ref, calls)
}

// roomFor is how many devices the next fold may touch.
func (n *Node) roomFor(box *mailbox) int {
	box.shard.mu.Lock()
	waiting := len(box.queue)
	box.shard.mu.Unlock()
	if waiting <= store.MaxTouchedDevices {
		return store.MaxTouchedDevices
	}
	return n.cfg.Records.MaxDevicesPerCommit(box.ref)
}

// take removes the calls of the next fold from the queue: as many as one
// transaction has room for. Calls whose caller has given up are dropped here,
// before anything was done for them.
func (b *mailbox) take(room int) []*call {
	var calls []*call
	devices := make(map[string]struct{})
	i := 0
	for ; i < len(b.queue) && len(calls) < foldCommands; i++ {
		c := b.queue[i]
		if c.isOver() {
			continue
		}
		if c.alone() && len(calls) > 0 {
			break
		}
		if id := c.deviceID(); id != "" {
			if _, seen := devices[id]; !seen {
				if len(devices) == room {
					break
				}
				devices[id] = struct{}{}
			}
		}
		if c.state.CompareAndSwap(callWaiting, callTaken) {
			calls = append(calls, c)
			if c.alone() {
				i++
				break
			}
		}
	}
	b.queue = append(b.queue[:0], b.queue[i:]...)
	clear(b.queue[len(b.queue):cap(b.queue)])
	b.running, b.own = len(calls), countOwn(calls)+countOwn(b.queue)
	return calls
}
