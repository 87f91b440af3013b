package peer_test

import (
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"licet/metrics/guard"
	"licet/node/peer"
)

// TestCloseInUse: after Close, a sender no longer starts a list of the nodes.
func TestCloseInUse(t *testing.T) {
	ring := newRing(t)
	for range 100 {
		r := &registry{}
		c, err := peer.NewClient(ring, r.list, guard.New(nil, zerolog.Nop()))
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() { _ = c.Reach(testContext(t), self) })
		}
		c.Close()
		r.mu.Lock()
		before := r.lists
		r.mu.Unlock()
		group.Wait()
		if err := c.Reach(testContext(t), self); err == nil || r.lists != before {
			t.Fatalf("%v, and the nodes were listed %d times and then %d", err, before, r.lists)
		}
	}
}
