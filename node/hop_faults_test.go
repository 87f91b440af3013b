package node_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// TestOwnerCutOffFromTheStore: an owner takes hops but can't serve them, since its connection to the store is cut.
// Other nodes do not send it hop after hop.
func TestOwnerCutOffFromTheStore(t *testing.T) {
	t.Parallel()
	c := newNodeGroup(t)
	var cut atomic.Bool
	inner := nodetest.OpenStore(t)
	faulty := &cutOff{Store: inner, cut: &cut}
	owner := nodetest.New(t, faulty, func(cfg *service.Config) {
		cfg.Peers, cfg.Self = c, inner.Incarnation()
		cfg.HopMargin = 20 * time.Millisecond
	})
	c.nodes[inner.Incarnation()] = owner
	other, _ := c.join(eager)
	key := nodetest.Grant(t, owner, 0)
	yields(t, c, other, owner, key)
	cut.Store(true)
	before := c.hops.Load()
	slow, unknown := 0, 0
	for i := range 8 {
		// The owner has commands of its own all the time.
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		var group sync.WaitGroup
		group.Go(func() { _, _ = nodetest.Activate(ctx, owner, key, fmt.Sprint("own-", i)) })
		time.Sleep(5 * time.Millisecond)
		began := time.Now()
		_, err := nodetest.Activate(ctx, other, key, fmt.Sprint("a-", i))
		if time.Since(began) > 300*time.Millisecond {
			slow++
		}
		if errors.Is(err, licensing.ErrOutcomeUnknown) {
			unknown++
		}
		group.Wait()
		cancel()
	}
	t.Logf("%d hops, %d slow, %d unknown", c.hops.Load()-before, slow, unknown)
	if got := c.hops.Load() - before; got > 2 {
		t.Errorf("%d hops to an owner that can serve no command, %d callers waited long, "+
			"%d got \"outcome unknown\"", got, slow, unknown)
	}
}

type cutOff struct {
	store.Store
	cut *atomic.Bool
}

func (s *cutOff) Load(ctx context.Context, want ...store.Want) ([]store.Snapshot, error) {
	if s.cut.Load() {
		<-ctx.Done()
		return nil, licensing.ErrUnavailable
	}
	return s.Store.Load(ctx, want...)
}

func (s *cutOff) Confirm(ctx context.Context, ref licensing.Ref, token store.Token) (bool, error) {
	if s.cut.Load() {
		<-ctx.Done()
		return false, licensing.ErrUnavailable
	}
	return s.Store.Confirm(ctx, ref, token)
}

func (s *cutOff) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if s.cut.Load() {
		<-ctx.Done()
		return store.Outcome{}, licensing.ErrOutcomeUnknown
	}
	return s.Store.Commit(ctx, change)
}

// TestShortCallsPause: a node runs calls of a yielded license that have too little time to hop, with a few tries and
// with pauses, like all other calls.
func TestShortCallsPause(t *testing.T) {
	c := newNodeGroup(t)
	owner, _ := c.join()
	inner := nodetest.OpenStore(t)
	var losing atomic.Bool
	var commits atomic.Int32
	store := &storetest.Faulty{Store: inner, OnCommit: func(store.Change) storetest.Fault {
		if losing.Load() {
			commits.Add(1)
			// A rival is always first.
			_, _ = nodetest.Activate(nodetest.Context(t), owner, losingKey, fmt.Sprint("rival-", commits.Load()))
		}
		return storetest.Fault{}
	}}
	other := nodetest.New(t, store, func(cfg *service.Config) {
		cfg.Peers, cfg.Self = c, inner.Incarnation()
		cfg.YieldAfter = 1
		cfg.HopMargin = 250 * time.Millisecond
	})
	c.nodes[inner.Incarnation()] = other
	losingKey = nodetest.Grant(t, owner, 0)
	yields(t, c, other, owner, losingKey)
	losing.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), 900*time.Millisecond)
	defer cancel()
	_, err := nodetest.Activate(ctx, other, losingKey, "short")
	t.Logf("%d swaps: %v", commits.Load(), err)
	if got := commits.Load(); got > 2*12 {
		t.Errorf("%d swaps were tried, all lost, for one command", got)
	}
}

var losingKey licensing.LicenseKey

// TestEmptyHop: a hop without commands is refused, and not a panic.
func TestEmptyHop(t *testing.T) {
	key := nodetest.Grant(t, nodetest.New(t, nodetest.OpenStore(t)), 0)
	store, arrived, open, _ := gated(nodetest.OpenStore(t))
	n := nodetest.New(t, store)
	var group sync.WaitGroup
	group.Go(func() { nodetest.MustActivate(t, n, key, "in front") })
	<-arrived
	func() {
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("panics: %v", p)
			}
		}()
		_, _ = n.Execute(node.Hop{License: key.ID(), Over: time.Now().Add(time.Second)})
	}()
	close(open)
	group.Wait()
}

// TestBadKeyHop: a hop for an id that is no license's is refused.
func TestBadKeyHop(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	forged := nodetest.Grant(t, n, 1).ID()
	forged[0] ^= 1
	for _, id := range []licensing.LicenseID{{}, {1, 2, 3}, {15: 0xff}, forged} {
		_, err := n.Execute(node.Hop{License: id, Over: time.Now().Add(time.Second), Commands: []licensing.Command{
			licensing.Activate{Target: licensing.Target{Key: id.Key("LIC")}, Device: "d"},
		}})
		nodetest.WantError(t, err, node.ErrNotTaken)
	}
}

// TestDeadlinesOfAHopAreApart: a caller with much time left does not get "outcome unknown" because another caller of
// the same hop had little time.
func TestDeadlinesOfAHopAreApart(t *testing.T) {
	c := newNodeGroup(t)
	inner := nodetest.OpenStore(t)
	var slow atomic.Bool
	owner := nodetest.New(t, &storetest.Faulty{Store: inner, OnCommit: func(store.Change) storetest.Fault {
		if slow.Load() {
			time.Sleep(700 * time.Millisecond)
		}
		return storetest.Fault{}
	}}, func(cfg *service.Config) {
		cfg.Peers, cfg.Self = c, inner.Incarnation()
		cfg.HopMargin = 20 * time.Millisecond
	})
	c.nodes[inner.Incarnation()] = owner
	other, _ := c.join(eager)
	key := nodetest.Grant(t, owner, 0)
	yields(t, c, other, owner, key)
	slow.Store(true)
	var group sync.WaitGroup
	group.Go(func() { nodetest.MustActivate(t, other, key, "first") }) // the outbox waits for it
	time.Sleep(50 * time.Millisecond)
	short, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	group.Go(func() { _, _ = nodetest.Activate(short, other, key, "hurried") })
	group.Go(func() {
		began := time.Now()
		if _, err := nodetest.Activate(nodetest.Context(t), other, key, "patient"); err != nil {
			t.Errorf("an answer after %v, of 30 s: %v", time.Since(began), err)
		}
	})
	group.Wait()
}
