package node_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// deadlines is a store that notes the deadline of each commit.
type deadlines struct {
	store.Store
	arrived chan struct{} // closed when the first commit has come
	first   chan struct{} // holds the first commit back until it is closed
	mu      sync.Mutex
	of      []time.Time
}

func (s *deadlines) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	until, _ := ctx.Deadline()
	s.mu.Lock()
	s.of = append(s.of, until)
	n := len(s.of)
	s.mu.Unlock()
	if n == 1 {
		close(s.arrived)
		<-s.first
	}
	return s.Store.Commit(ctx, change)
}

// TestSwapsOfHopsEnd: the store waits for a free request, and sends a swap in doubt again, until the context of the
// turn ends. The context of a turn with a command of a hop ends when the hop is over, or earlier.
func TestSwapsOfHopsEnd(t *testing.T) {
	plain := nodetest.OpenStore(t)
	key := nodetest.Grant(t, nodetest.New(t, plain), 0)
	store := &deadlines{Store: plain, arrived: make(chan struct{}), first: make(chan struct{})}
	n := nodetest.New(t, store)
	ref := licensing.LicenseRef(key)
	var group sync.WaitGroup
	group.Go(func() { nodetest.MustActivate(t, n, key, "in front") })
	<-store.arrived
	group.Go(func() { nodetest.MustActivate(t, n, key, "own, patient") })
	n.AwaitQueued(ref, 1)
	over := time.Now().Add(10 * time.Second) // long before the turn of the other commands would end
	group.Go(func() {
		_, _ = n.Execute(node.Hop{License: key.ID(), Over: over, Commands: []licensing.Command{
			licensing.Activate{Target: licensing.Target{Key: key}, Device: "by a hop"},
		}})
	})
	n.AwaitQueued(ref, 2)
	close(store.first)
	group.Wait()
	if late := store.of[1].Sub(over); late > 0 {
		t.Errorf("the swap may be sent until %v after the hop is over", late)
	}
}
