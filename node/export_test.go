package node

import (
	"runtime"

	"licet"
)

// AwaitQueued returns when so many commands wait in a record's mailbox.
func (n *Node) AwaitQueued(ref licet.Ref, count int) {
	s := n.shardOf(ref)
	for {
		s.mu.Lock()
		box := s.boxes[ref]
		queued := box != nil && len(box.queue) == count
		s.mu.Unlock()
		if queued {
			return
		}
		runtime.Gosched()
	}
}
