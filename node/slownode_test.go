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
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// TestSlowNodeIsServed: a node whose way to the store is longer loses nearly all swaps of a license that a faster node
// writes all the time. Its callers are served all the same. The time by which nodes yield the license passes with the
// swaps, however long the machine takes for a swap.
func TestSlowNodeIsServed(t *testing.T) {
	for i := range 4 { // whichever node the license prefers
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c := newNodeGroup(t)
			c.standStill()
			ctx, cancel := context.WithCancel(nodetest.Context(t))
			end := c.now().Add(3 * time.Second)
			join := func(longer time.Duration) *service.Service {
				inner := nodetest.OpenStore(t)
				n := nodetest.New(t, &storetest.Faulty{Store: inner, OnCommit: func(store.Change) storetest.Fault {
					time.Sleep(longer)
					if c.pass(15 * time.Millisecond).After(end) {
						cancel()
					}
					return storetest.Fault{}
				}}, func(cfg *service.Config) {
					cfg.Peers, cfg.Self = c, inner.Incarnation()
					cfg.HopMargin = 20 * time.Millisecond
				})
				n.YieldByClock(c.now)
				c.mu.Lock()
				defer c.mu.Unlock()
				c.nodes[inner.Incarnation()] = n
				return n
			}
			fast, slow := join(0), join(10*time.Millisecond)
			key := nodetest.Grant(t, fast, 0)
			var group sync.WaitGroup
			for j := range 4 {
				group.Go(func() {
					for k := 0; ctx.Err() == nil; k++ {
						_, _ = nodetest.Activate(nodetest.Context(t), fast, key, fmt.Sprint("fast-", j, "-", k))
					}
				})
			}
			var served, refused atomic.Int32
			for j := range 4 {
				group.Go(func() {
					for k := 0; ctx.Err() == nil; k++ {
						switch _, err := nodetest.Activate(nodetest.Context(t), slow, key,
							fmt.Sprint("slow-", j, "-", k)); {
						case err == nil:
							served.Add(1)
						case errors.Is(err, licensing.ErrUnavailable):
							refused.Add(1)
						default:
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			t.Logf("%d served, %d refused", served.Load(), refused.Load())
			if refused.Load() > served.Load()/10 {
				t.Errorf("%d activations were served, and %d refused for lost swaps", served.Load(), refused.Load())
			}
		})
	}
}
