package node

import (
	"hash/maphash"
	"sync"

	"licet/licensing"
)

const shardCount = 64 // a power of two

// mailboxes finds the mailbox of a record among all mailboxes of a node.
type mailboxes struct {
	seed   maphash.Seed
	shards [shardCount]shard
}

// shard contains the mailboxes of some of the records.
type shard struct {
	mu       sync.Mutex
	boxes    map[licensing.Ref]*mailbox
	outboxes map[licensing.Ref]*mailbox // of licenses that are yielded, see outbox.go
}

// init makes the mailboxes ready for use.
func (m *mailboxes) init() {
	m.seed = maphash.MakeSeed()
	for i := range m.shards {
		m.shards[i].boxes = make(map[licensing.Ref]*mailbox)
		m.shards[i].outboxes = make(map[licensing.Ref]*mailbox)
	}
}

func (m *mailboxes) shardOf(ref licensing.Ref) *shard {
	return &m.shards[maphash.Comparable(m.seed, ref)%shardCount]
}

// countMailboxes returns how many records have calls waiting or running.
func (m *mailboxes) countMailboxes() float64 {
	return m.sumShards(func(boxes map[licensing.Ref]*mailbox) int { return len(boxes) })
}

// countWaiting returns how many calls wait in all mailboxes.
func (m *mailboxes) countWaiting() float64 {
	return m.sumShards(func(boxes map[licensing.Ref]*mailbox) (waiting int) {
		for _, box := range boxes {
			waiting += len(box.queue)
		}
		return waiting
	})
}

func (m *mailboxes) sumShards(count func(map[licensing.Ref]*mailbox) int) float64 {
	sum := 0
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		sum += count(s.boxes) + count(s.outboxes)
		s.mu.Unlock()
	}
	return float64(sum)
}
