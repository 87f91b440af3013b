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

// MaxCachedKeys bounds the memory of keys, and that of texts that are none.
const MaxCachedKeys = maxCachedKeys

// Remembered tells how many keys are remembered, and how many texts that are none.
func (n *Node) Remembered() (keys, unknown int) {
	n.keys.mu.RLock()
	defer n.keys.mu.RUnlock()
	return len(n.keys.keys), len(n.keys.unknown)
}

// StoreSeen stores at once when devices were seen.
func (n *Node) StoreSeen() { n.storeSeen() }
