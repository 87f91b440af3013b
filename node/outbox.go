package node

import (
	"context"
	"slices"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// An outbox queues the commands on a license that is yielded, as a mailbox queues the commands on any other record.
// The mailbox and the outbox of a license run side by side: commands that came by a hop go to the mailbox, which
// never waits for another node.

// postOut puts a call into its license's outbox. The caller holds the shard's lock.
func (n *Node) postOut(s *shard, ref licensing.Ref, c *call) error {
	if box, running := s.outboxes[ref]; running {
		return n.queue(box, c)
	}
	return n.open(&mailbox{ref: ref, shard: s, out: true}, c)
}

// open starts a mailbox or an outbox with these calls, in a goroutine of its own. The caller holds the shard's lock.
func (n *Node) open(box *mailbox, calls ...*call) error {
	if err := n.StartWork(); err != nil {
		return err
	}
	box.append(calls)
	box.home()[box.ref] = box
	n.runner.guard.Start("mailbox", func() { n.run(box) })
	return nil
}

// hopTurn sends the calls of an outbox's next turn to the node that owns the license. Once the license
// is not yielded any more, the calls go to the mailbox.
func (n *Node) hopTurn(box *mailbox) {
	calls := box.takeHop()
	if len(calls) == 0 {
		return
	}
	n.traceWait(waitTaken, calls...)
	if to, yields := n.placement.owner(box.ref); yields {
		n.hop(box.ref, calls, to)
	} else {
		n.bringBack(box.ref, calls)
	}
}

// hop sends calls to the node that owns their license, and waits for their answers. If the answers take long, hop
// asks the other node for a sign of life. If the other node is dead or stopped, this node stops yielding the license,
// so that later calls don't wait for the other node. If the other node is only slow, later calls wait as they would
// there.
func (n *Node) hop(ref licensing.Ref, calls []*call, to store.Incarnation) {
	done := make(chan struct{})
	// The outbox has kept a draining node from ending till now.
	n.runner.guard.StartIn(&n.work, "hop", func() {
		defer close(done)
		n.answering(calls, func() {
			ctx, cancel := turnContext(context.Background(), calls)
			defer cancel()
			n.bringBack(ref, n.forward(ctx, ref, calls, to))
		})
	})
	patience := 2 * n.cfg.HopMargin
	for {
		timer := time.NewTimer(patience)
		select {
		case <-done:
			timer.Stop()
			return
		case <-timer.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err := n.cfg.Peers.Reach(ctx, to)
		cancel()
		if err != nil {
			n.placement.notTaken(ref, to)
			return
		}
	}
}

// sendAway marks the calls of a turn that go to the outbox after the turn, and returns the calls that
// this node runs: calls that came by a hop themselves, calls that may not hop, and calls with too
// little time left: forward would send these back at once, to lose the next swap without a pause.
func (s *runner) sendAway(calls []*call) (rest []*call) {
	soon := time.Now().Add(s.leastLeft())
	for _, c := range calls {
		if c.hopped || !mayHop(c.cmd) || c.deadline.Before(soon) {
			rest = append(rest, c)
		} else {
			c.leaving = true
		}
	}
	return rest
}

// moveOut moves the calls of an ended turn to the outbox, if sendAway has marked them and they have no answer yet.
func (n *Node) moveOut(ref licensing.Ref, calls []*call) {
	if !slices.ContainsFunc(calls, func(c *call) bool { return c.leaving }) {
		return
	}
	var refused []*call
	s := n.shardOf(ref)
	s.mu.Lock()
	for _, c := range calls {
		if !c.leaving {
			continue
		}
		c.leaving = false
		c.waitsAgain()
		if !c.state.CompareAndSwap(callTaken, callWaiting) {
			continue // the caller has given up, or the turn has panicked
		}
		c.mustWait()
		box := s.outboxes[ref]
		full := box != nil && n.fullFor(box, c) != nil // which refuses nothing: the call is run here
		if (full || n.postOut(s, ref, c) != nil) && c.state.CompareAndSwap(callWaiting, callTaken) {
			refused = append(refused, c)
		}
	}
	s.mu.Unlock()
	n.bringBack(ref, refused)
}

// bringBack moves calls of the outbox to the mailbox. The node let them in before, so nothing refuses them any more.
func (n *Node) bringBack(ref licensing.Ref, calls []*call) {
	calls = slices.DeleteFunc(calls, func(c *call) bool {
		c.waitsAgain()
		return !c.state.CompareAndSwap(callTaken, callWaiting)
	})
	if len(calls) == 0 {
		return
	}
	s := n.shardOf(ref)
	s.mu.Lock()
	defer s.mu.Unlock()
	if box, running := s.boxes[ref]; running {
		box.append(calls)
		return
	}
	n.work.Add(1) // the outbox, or the turn, has kept a draining node from ending till now
	box := &mailbox{ref: ref, shard: s}
	box.append(calls)
	s.boxes[ref] = box
	n.runner.guard.Start("mailbox", func() { n.run(box) })
}
