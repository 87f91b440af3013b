package node_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// answers counts the outcomes of calls.
type answers struct {
	mu sync.Mutex
	by map[licensing.Reason]int
	ok map[string]licensing.Result
}

func (a *answers) add(device string, result licensing.Result, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.ok[device] = result
		return
	}
	var refusal *licensing.Error
	if !errors.As(err, &refusal) {
		refusal = licensing.ErrInternal
	}
	a.by[refusal.Reason]++
}

// storm activates many devices at once, over any number of nodes.
func storm(ctx context.Context, nodes []*service.Service, key licensing.LicenseKey, count int) *answers {
	a := &answers{by: map[licensing.Reason]int{}, ok: map[string]licensing.Result{}}
	var group sync.WaitGroup
	for i := range count {
		group.Go(func() {
			device := fmt.Sprintf("device-%d", i)
			result, err := nodetest.Activate(ctx, nodes[i%len(nodes)], key, device)
			a.add(device, result, err)
		})
	}
	group.Wait()
	return a
}

func TestNeverOverBound(t *testing.T) {
	for _, c := range []struct{ nodes, slots, calls int }{{1, 3, 400}, {2, 3, 400}, {3, 40, 300}} {
		t.Run(fmt.Sprintf("%d nodes, %d slots", c.nodes, c.slots), func(t *testing.T) {
			var nodes []*service.Service
			for range c.nodes {
				nodes = append(nodes, nodetest.New(t, nodetest.OpenStore(t)))
			}
			key := nodetest.Grant(t, nodes[0], c.slots)
			a := storm(nodetest.Context(t), nodes, key, c.calls)
			if len(a.ok) != c.slots || a.by[licensing.ReasonDeviceLimitReached] != c.calls-c.slots {
				t.Errorf("%d bound, refusals %v; want %d bound and the rest refused", len(a.ok), a.by, c.slots)
			}
			count, ids := nodetest.Devices(t, nodes[0], key)
			if count != c.slots {
				t.Errorf("current_devices is %d, want %d", count, c.slots)
			}
			counts := map[int]bool{}
			for device, result := range a.ok {
				if !ids[device] {
					t.Errorf("the activation of %s was acknowledged, but the device is not bound", device)
				}
				counts[result.License.CurrentDevices] = true
			}
			if len(counts) != c.slots {
				t.Errorf("the answers carry the counts %v, want each of 1 to %d once", counts, c.slots)
			}
		})
	}
}

func TestSameDeviceManyTimes(t *testing.T) {
	nodes := []*service.Service{nodetest.New(t, nodetest.OpenStore(t)), nodetest.New(t, nodetest.OpenStore(t))}
	key := nodetest.Grant(t, nodes[0], 1)
	var group sync.WaitGroup
	var first sync.Map
	for i := range 200 {
		group.Go(func() {
			result, err := nodetest.Activate(nodetest.Context(t), nodes[i%2], key, "one")
			if err != nil {
				t.Errorf("activate: %v", err)
				return
			}
			first.Store(result.License.ActivatedAt, true)
		})
	}
	group.Wait()
	distinct := 0
	first.Range(func(any, any) bool { distinct++; return true })
	if distinct != 1 {
		t.Errorf("%d different activated_at, want 1", distinct)
	}
}

// gated returns a store that holds commits back until open is closed, and counts commits.
func gated(db store.Store) (*storetest.Faulty, chan struct{}, chan struct{}, *atomic.Int32) {
	arrived, open, count := make(chan struct{}, 1000), make(chan struct{}), &atomic.Int32{}
	return &storetest.Faulty{Store: db, OnCommit: func(store.Change) storetest.Fault {
		count.Add(1)
		arrived <- struct{}{}
		<-open
		return storetest.Fault{}
	}}, arrived, open, count
}

// TestWaitingCommandsFold: all commands that pile up behind one swap are in the next swap.
func TestWaitingCommandsFold(t *testing.T) {
	key := nodetest.Grant(t, nodetest.New(t, nodetest.OpenStore(t)), 0)
	db, arrived, open, commits := gated(nodetest.OpenStore(t))
	n := nodetest.New(t, db)
	ctx := nodetest.Context(t)
	var group sync.WaitGroup
	group.Go(func() { _, err := nodetest.Activate(ctx, n, key, "first"); nodetest.WantError(t, err, nil) })
	<-arrived
	const waiting = store.MaxTouchedDevices
	for i := range waiting {
		group.Go(func() {
			_, err := nodetest.Activate(ctx, n, key, fmt.Sprint("waiting-", i))
			nodetest.WantError(t, err, nil)
		})
	}
	n.AwaitQueued(licensing.LicenseRef(key), waiting)
	close(open)
	group.Wait()
	if got := commits.Load(); got != 2 {
		t.Errorf("%d swaps, want 2", got)
	}
	if count, _ := nodetest.Devices(t, n, key); count != waiting+1 {
		t.Errorf("current_devices is %d, want %d", count, waiting+1)
	}
}

// TestLargeFold lets more commands pile up behind one swap than a transaction usually may touch devices. If the store
// knows all devices of the license, all commands are in the next swap. If another node writes then, the commands are in
// several swaps, and each device is bound once.
func TestLargeFold(t *testing.T) {
	for _, rival := range []bool{false, true} {
		t.Run(fmt.Sprint("rival ", rival), func(t *testing.T) {
			var gate atomic.Pointer[chan struct{}]
			var commits atomic.Int32
			arrived := make(chan struct{}, 1000)
			n := nodetest.New(t, &storetest.Faulty{Store: nodetest.OpenStore(t),
				OnCommit: func(store.Change) storetest.Fault {
					commits.Add(1)
					if hold := gate.Load(); hold != nil {
						arrived <- struct{}{}
						<-*hold
					}
					return storetest.Fault{}
				}})
			key := nodetest.Grant(t, n, 0)
			binds(names(20)...)(t, n, key)
			want := 20

			first, second := make(chan struct{}), make(chan struct{})
			gate.Store(&first)
			commits.Store(0)
			var group sync.WaitGroup
			start := func(device string) {
				want++
				group.Go(func() { nodetest.MustActivate(t, n, key, device) })
			}
			start("in front")
			<-arrived
			const waiting = 2*store.MaxTouchedDevices + 10
			for i := range waiting {
				start(fmt.Sprint("waiting-", i))
			}
			n.AwaitQueued(licensing.LicenseRef(key), waiting)
			gate.Store(&second)
			close(first)
			<-arrived // the swap of all waiting commands
			if rival {
				binds("rival", "waiting-7")(t, nodetest.New(t, nodetest.OpenStore(t)), key)
				want++
			}
			gate.Store(nil)
			close(second)
			group.Wait()
			if got := commits.Load(); got != 2 && !rival {
				t.Errorf("%d swaps, want 2", got)
			}
			if count, ids := nodetest.Devices(t, n, key); count != want || len(ids) != want {
				t.Errorf("current_devices is %d, %d bound, want %d", count, len(ids), want)
			}
		})
	}
}

// TestFullMailbox: a full mailbox refuses the next command, and runs the commands that wait.
func TestFullMailbox(t *testing.T) {
	key := nodetest.Grant(t, nodetest.New(t, nodetest.OpenStore(t)), 0)
	store, arrived, open, _ := gated(nodetest.OpenStore(t))
	n := nodetest.New(t, store, func(c *service.Config) { c.QueueLimit = 2 })
	ctx := nodetest.Context(t)
	var group sync.WaitGroup
	group.Go(func() { _, err := nodetest.Activate(ctx, n, key, "running"); nodetest.WantError(t, err, nil) })
	<-arrived
	for i := range 2 {
		group.Go(func() {
			_, err := nodetest.Activate(ctx, n, key, fmt.Sprint("waiting-", i))
			nodetest.WantError(t, err, nil)
		})
	}
	n.AwaitQueued(licensing.LicenseRef(key), 2)
	_, err := nodetest.Activate(ctx, n, key, "too many")
	nodetest.WantError(t, err, licensing.ErrOverloaded)
	close(open)
	group.Wait()
	if _, ids := nodetest.Devices(t, n, key); ids["too many"] || len(ids) != 3 {
		t.Errorf("bound: %v", ids)
	}
}

// roomless is a store that panics in MaxDevicesPerCommit.
type roomless struct {
	store.Store
	panics atomic.Bool
}

func (s *roomless) MaxDevicesPerCommit(ref licensing.Ref) int {
	if s.panics.Load() {
		panic("a bug")
	}
	return s.Store.MaxDevicesPerCommit(ref)
}

// TestTurnPanics: a panic before a turn takes a command fails all commands that wait for the
// license, and the license can be used afterward.
func TestTurnPanics(t *testing.T) {
	t.Parallel()
	inner := &roomless{Store: nodetest.OpenStore(t)}
	key := nodetest.Grant(t, nodetest.New(t, nodetest.OpenStore(t)), 0)
	db, arrived, open, _ := gated(inner)
	n := nodetest.New(t, db)
	ctx := nodetest.Context(t)
	var group sync.WaitGroup
	group.Go(func() { _, err := nodetest.Activate(ctx, n, key, "first"); nodetest.WantError(t, err, nil) })
	<-arrived
	const waiting = store.MaxTouchedDevices + 1
	for i := range waiting {
		group.Go(func() {
			_, err := nodetest.Activate(ctx, n, key, fmt.Sprint("waiting-", i))
			nodetest.WantError(t, err, licensing.ErrInternal)
		})
	}
	n.AwaitQueued(licensing.LicenseRef(key), waiting)
	inner.panics.Store(true)
	close(open)
	group.Wait()
	inner.panics.Store(false)
	_, err := nodetest.Activate(ctx, n, key, "last")
	nodetest.WantError(t, err, nil)
	if count, _ := nodetest.Devices(t, n, key); count != 2 {
		t.Errorf("current_devices is %d", count)
	}
}
