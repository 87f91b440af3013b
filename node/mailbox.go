package node

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"licet"
)

const (
	shardCount = 64 // a power of two
	// foldCommands bounds the commands of one fold, so that none waits long
	// for its batch mates.
	foldCommands = 512
)

// shard holds the mailboxes of a part of all records.
type shard struct {
	mu    sync.Mutex
	boxes map[licet.Ref]*mailbox
}

// mailbox queues the commands for one record. It is in its shard's map exactly
// while a goroutine runs it; both fields are guarded by the shard's lock.
type mailbox struct {
	ref   licet.Ref
	queue []*call
}

// The states of a call. It is answered exactly once: either its mailbox wins
// the step to answered, or the waiting caller gives up and wins the step to
// abandoned, and then a mailbox never folds it again.
const (
	callWaiting int32 = iota
	callTaken
	callAnswered
	callAbandoned
)

// call is one command on its way through a mailbox.
type call struct {
	cmd      licet.Command
	deadline time.Time
	state    atomic.Int32
	done     chan struct{} // closed once result and err are set
	result   licet.Result
	err      error
}

func (c *call) answer(result licet.Result, err error) {
	if c.state.CompareAndSwap(callTaken, callAnswered) {
		c.result, c.err = result, err
		close(c.done)
	}
}

// Do runs a command on the record that ref names, and answers when its outcome
// is stored, or when ctx ends. A ctx that ends while the command still waits
// gives ErrUnavailable, and the command is never run; later it gives
// ErrOutcomeUnknown. ctx must carry a deadline.
func (n *Node) Do(ctx context.Context, ref licet.Ref, cmd licet.Command) (licet.Result, error) {
	deadline, _ := ctx.Deadline()
	c := newCall(cmd, deadline)
	if err := n.post(ref, c); err != nil {
		return licet.Result{}, err
	}
	return n.await(ctx, c)
}

func newCall(cmd licet.Command, deadline time.Time) *call {
	return &call{cmd: cmd, deadline: deadline, done: make(chan struct{})}
}

// await waits for a call's answer, until ctx ends.
func (n *Node) await(ctx context.Context, c *call) (licet.Result, error) {
	select {
	case <-c.done:
		return c.result, c.err
	case <-ctx.Done():
	}
	if c.state.CompareAndSwap(callWaiting, callAbandoned) {
		return licet.Result{}, licet.ErrUnavailable
	}
	if c.state.CompareAndSwap(callTaken, callAbandoned) {
		return licet.Result{}, licet.ErrOutcomeUnknown
	}
	<-c.done
	return c.result, c.err
}

// post puts a call into its record's mailbox and sees to it that one runs.
func (n *Node) post(ref licet.Ref, c *call) error {
	s := n.shardOf(ref)
	s.mu.Lock()
	defer s.mu.Unlock()
	if box, running := s.boxes[ref]; running {
		if len(box.queue) >= n.cfg.QueueLimit {
			return licet.ErrOverloaded
		}
		if n.isDraining() {
			return errDraining
		}
		box.queue = append(box.queue, c)
		return nil
	}
	if err := n.enter(); err != nil {
		return err
	}
	box := &mailbox{ref: ref, queue: []*call{c}}
	s.boxes[ref] = box
	go n.run(s, box)
	return nil
}

func (n *Node) shardOf(ref licet.Ref) *shard {
	return &n.shards[maphash.Comparable(n.seed, ref)%shardCount]
}

// run empties a mailbox, fold by fold, and removes it when nothing waits.
func (n *Node) run(s *shard, box *mailbox) {
	defer n.work.Done()
	n.cfg.Metrics.Mailboxes.Inc()
	defer n.cfg.Metrics.Mailboxes.Dec()
	for {
		s.mu.Lock()
		calls := box.take()
		if len(calls) == 0 && len(box.queue) == 0 {
			delete(s.boxes, box.ref)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if len(calls) > 0 {
			n.settle(box.ref, calls)
		}
	}
}

// take removes the calls of the next fold from the queue: as many as one
// transaction holds. Calls whose caller has given up are dropped here, before
// anything was done for them.
func (b *mailbox) take() []*call {
	var calls []*call
	devices := make(map[string]struct{})
	i := 0
	for ; i < len(b.queue) && len(calls) < foldCommands; i++ {
		c := b.queue[i]
		if id := c.cmd.DeviceID(); id != "" {
			if _, seen := devices[id]; !seen {
				if len(devices) == MaxTouchedDevices {
					break
				}
				devices[id] = struct{}{}
			}
		}
		if c.state.CompareAndSwap(callWaiting, callTaken) {
			calls = append(calls, c)
		}
	}
	b.queue = append(b.queue[:0], b.queue[i:]...)
	clear(b.queue[len(b.queue):cap(b.queue)])
	return calls
}

// turnContext lives as long as the most patient of the calls.
func turnContext(calls []*call) (context.Context, context.CancelFunc) {
	latest := calls[0].deadline
	for _, c := range calls[1:] {
		if c.deadline.After(latest) {
			latest = c.deadline
		}
	}
	return context.WithDeadline(context.Background(), latest)
}
