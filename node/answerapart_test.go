package node_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/store"
	"licet/node/store/storetest"
)

// TestAnswersApart activates new devices, and bound devices of which the node is unsure: the read and the swap run side
// by side, and each answers its own calls, whatever happens to the other.
func TestAnswersApart(t *testing.T) {
	for _, c := range []struct {
		name                string
		panicSwap, panicGet bool
		remove              bool
		newErr, boundErr    error
	}{
		{name: "nothing wrong"},
		{name: "the swap panics", panicSwap: true, newErr: licensing.ErrInternal},
		{name: "the read panics", panicGet: true, boundErr: licensing.ErrInternal},
		{name: "both panic", panicSwap: true, panicGet: true, newErr: licensing.ErrInternal,
			boundErr: licensing.ErrInternal},
		{name: "what is read must change", remove: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var armed atomic.Bool
			var commits, loads atomic.Int32
			arrived, open := make(chan struct{}), make(chan struct{})
			gets := &storetest.Faulty{Store: nodetest.OpenStore(t), AfterLoad: func([]store.Snapshot) {
				if armed.Load() {
					loads.Add(1)
					if c.panicGet {
						panic("a bug")
					}
				}
			}}
			store := &hookedCommits{Store: gets, before: func() {}}
			n := nodetest.New(t, store)
			key := nodetest.Grant(t, n, 0)
			binds(names(20)...)(t, n, key)
			rivalReads(t, n, key)
			store.before = func() {
				if commits.Add(1) == 1 {
					close(arrived)
					<-open
				} else if c.panicSwap {
					panic("a bug")
				}
			}
			var group sync.WaitGroup
			group.Go(func() { nodetest.MustActivate(t, n, key, "in front") })
			<-arrived
			armed.Store(true)
			group.Go(func() {
				var err error
				if c.remove {
					_, err = remove(nodetest.Context(t), n, key, "device-0")
				} else {
					_, err = nodetest.Activate(nodetest.Context(t), n, key, "device-0")
				}
				if c.boundErr != nil || err != nil {
					nodetest.WantError(t, err, c.boundErr)
				}
			})
			group.Go(func() {
				_, err := nodetest.Activate(nodetest.Context(t), n, key, "new")
				if c.newErr != nil || err != nil {
					nodetest.WantError(t, err, c.newErr)
				}
			})
			n.AwaitQueued(licensing.LicenseRef(key), 2)
			close(open)
			group.Wait()
			armed.Store(false)
			if err := n.Drain(nodetest.Context(t)); err != nil {
				t.Error(err)
			}
			if want := map[bool]int32{false: 1, true: 2}[c.remove]; loads.Load() != want {
				t.Errorf("%d reads, want %d", loads.Load(), want)
			}
		})
	}
}
