package node_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// errFull matches the refusals of a full license.
var errFull = &licensing.Error{Reason: licensing.ReasonDeviceLimitReached}

// trips counts a node's round trips to its store.
type trips struct{ loads, confirms, commits atomic.Int32 }

func (c *trips) count(db store.Store) *storetest.Faulty {
	return &storetest.Faulty{
		Store:     db,
		OnLoad:    func([]store.Want) error { c.loads.Add(1); return nil },
		OnConfirm: func(licensing.Ref) error { c.confirms.Add(1); return nil },
		OnCommit:  func(store.Change) storetest.Fault { c.commits.Add(1); return storetest.Fault{} },
	}
}

// made counts the round trips of a function.
type made struct{ loads, confirms, commits int32 }

// expect runs a function and checks its number of round trips.
func (c *trips) expect(t *testing.T, what string, want made, run func()) {
	t.Helper()
	c.loads.Store(0)
	c.confirms.Store(0)
	c.commits.Store(0)
	run()
	if got := (made{c.loads.Load(), c.confirms.Load(), c.commits.Load()}); got != want {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

func remove(
	ctx context.Context, n *service.Service, key licensing.LicenseKey, device string,
) (licensing.Result, error) {
	return n.RemoveDevice(ctx, licensing.RemoveDevice{Target: licensing.Target{Key: key}, Device: device})
}

// TestOneRoundTrip: on a remembered license, a command that changes something is one swap, and a command that changes
// nothing confirms the remembered value once.
func TestOneRoundTrip(t *testing.T) {
	var c trips
	n := nodetest.New(t, c.count(nodetest.OpenStore(t)))
	key := nodetest.Grant(t, n, 3)
	c.expect(t, "the first activation", made{loads: 1, commits: 1}, func() { nodetest.MustActivate(t, n, key, "a") })
	c.expect(t, "a new device", made{commits: 1}, func() { nodetest.MustActivate(t, n, key, "b") })
	c.expect(t, "a bound device", made{confirms: 1}, func() { nodetest.MustActivate(t, n, key, "a") })
	c.expect(t, "the last new device", made{commits: 1}, func() { nodetest.MustActivate(t, n, key, "c") })
	c.expect(t, "one too many", made{confirms: 1}, func() {
		_, err := nodetest.Activate(nodetest.Context(t), n, key, "d")
		nodetest.WantError(t, err, errFull)
	})
	c.expect(t, "the removal of a device that is not bound", made{confirms: 1}, func() {
		result, err := remove(nodetest.Context(t), n, key, "d")
		if err != nil || result.Removed {
			t.Errorf("got %+v, %v", result, err)
		}
	})
	c.expect(t, "a removal", made{commits: 1}, func() {
		if result, err := remove(nodetest.Context(t), n, key, "c"); err != nil || !result.Removed {
			t.Errorf("got %+v, %v", result, err)
		}
	})
}

// TestStaleMemory lets another node change a license that a node remembers. The memory of the node is wrong then, but
// none of its answers may be wrong.
func TestStaleMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		max    int
		before []string // bound through the node under test
		rival  func(t *testing.T, other *service.Service, key licensing.LicenseKey)
		device string
		err    error
		count  int
	}{
		{"bound, it thinks, but removed", 3, []string{"a", "b"}, removes("a"), "a", nil, 2},
		{"free, it thinks, but bound", 3, []string{"a"}, binds("b"), "b", nil, 2},
		{"full, it thinks, but freed", 1, []string{"a"}, removes("a"), "b", nil, 1},
		{"room, it thinks, but full", 2, []string{"a"}, binds("b"), "c", errFull, 2},
		{"inline, it thinks, but spilled", 0, []string{"a"}, binds(names(16)...), "b", nil, 18},
		{"inline, it thinks, but spilled, and bound there", 0, []string{"a"}, binds(names(17)...), "device-3", nil, 18},
		{"bound and spilled, it thinks, but removed", 0, append(names(18), "a"), removes("a"), "a", nil, 19},
		{"free and spilled, it thinks, but bound", 0, names(18), binds("a"), "a", nil, 19},
		{"room and spilled, it thinks, but full", 19, names(18), binds("a"), "b", errFull, 19},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, other := nodetest.New(t, nodetest.OpenStore(t)), nodetest.New(t, nodetest.OpenStore(t))
			key := nodetest.Grant(t, n, c.max)
			for _, device := range c.before {
				nodetest.MustActivate(t, n, key, device)
			}
			c.rival(t, other, key)
			result, err := nodetest.Activate(nodetest.Context(t), n, key, c.device)
			nodetest.WantError(t, err, c.err)
			if err == nil && result.License.CurrentDevices != c.count {
				t.Errorf("the answer says %d devices, want %d", result.License.CurrentDevices, c.count)
			}
			count, ids := nodetest.Devices(t, other, key)
			if count != c.count || len(ids) != c.count || ids[c.device] != (c.err == nil) {
				t.Errorf("current_devices %d, bound %v; want %d", count, ids, c.count)
			}
		})
	}
}

// TestUnknownDeviceOfAFullLicense: a full and spilled license has a device that a node does not know. The node must not
// refuse that device because of the device limit.
func TestUnknownDeviceOfAFullLicense(t *testing.T) {
	other := nodetest.New(t, nodetest.OpenStore(t))
	key := nodetest.Grant(t, other, 18)
	binds(names(18)...)(t, other, key)
	var c trips
	n := nodetest.New(t, c.count(nodetest.OpenStore(t)))
	_, err := nodetest.Activate(nodetest.Context(t), n, key, "one more")
	nodetest.WantError(t, err, errFull)
	c.expect(t, "a device that it takes for absent", made{loads: 1, confirms: 1},
		func() { nodetest.MustActivate(t, n, key, "device-3") })
	c.expect(t, "a bound device", made{loads: 1}, func() {
		_, err := nodetest.Activate(nodetest.Context(t), n, key, "one more")
		nodetest.WantError(t, err, errFull)
	})
}

// TestConfirmFails: a command whose confirmation fails gets an error, and no caller gets "outcome unknown".
func TestConfirmFails(t *testing.T) {
	store := nodetest.OpenStore(t)
	first := nodetest.New(t, store)
	key := nodetest.Grant(t, first, 0)
	nodetest.MustActivate(t, first, key, "a")
	n := nodetest.New(t,
		&storetest.Faulty{Store: store, OnConfirm: func(licensing.Ref) error { return licensing.ErrUnavailable }})
	_, err := nodetest.Activate(nodetest.Context(t), n, key, "a")
	nodetest.WantError(t, err, licensing.ErrUnavailable)
	nodetest.MustActivate(t, n, key, "b")
}

func binds(devices ...string) func(*testing.T, *service.Service, licensing.LicenseKey) {
	return func(t *testing.T, n *service.Service, key licensing.LicenseKey) {
		for _, device := range devices {
			nodetest.MustActivate(t, n, key, device)
		}
	}
}

func removes(device string) func(*testing.T, *service.Service, licensing.LicenseKey) {
	return func(t *testing.T, n *service.Service, key licensing.LicenseKey) {
		if result, err := remove(nodetest.Context(t), n, key, device); err != nil || !result.Removed {
			t.Fatalf("remove %s: %+v, %v", device, result, err)
		}
	}
}

func names(count int) []string {
	devices := make([]string, count)
	for i := range devices {
		devices[i] = fmt.Sprint("device-", i)
	}
	return devices
}

// rivalReads has another node write to a license with the devices device-0 to device-19. n learns of the write by a
// command on a device that n knows to be bound. This proves no guess of n wrong: n still assumes that new devices are
// absent, and is unsure of the bound devices.
func rivalReads(t *testing.T, n *service.Service, key licensing.LicenseKey) {
	t.Helper()
	nodetest.MustActivate(t, nodetest.New(t, nodetest.OpenStore(t)), key, "rival")
	nodetest.MustActivate(t, n, key, "device-19")
}

// TestSpilledFoldIsOneRound folds bound and new devices of a license with many. If the node knows the bound devices,
// the swap of the new devices confirms them. Otherwise a read answers the bound devices during the swap.
func TestSpilledFoldIsOneRound(t *testing.T) {
	for _, sure := range []bool{true, false} {
		t.Run(fmt.Sprint("sure ", sure), func(t *testing.T) {
			var c trips
			var gate atomic.Pointer[chan struct{}]
			arrived := make(chan struct{}, 100)
			db := c.count(nodetest.OpenStore(t))
			commit := db.OnCommit
			db.OnCommit = func(change store.Change) storetest.Fault {
				if hold := gate.Load(); hold != nil {
					arrived <- struct{}{}
					<-*hold
				}
				return commit(change)
			}
			n := nodetest.New(t, db)
			key := nodetest.Grant(t, n, 0)
			bound := names(40)
			binds(bound...)(t, n, key)
			want, reads := map[string]bool{"in front": true}, int32(0)
			if !sure {
				rivalReads(t, n, key)
				want["rival"], reads = true, 1
			}

			open := make(chan struct{})
			gate.Store(&open)
			var group sync.WaitGroup
			group.Go(func() { nodetest.MustActivate(t, n, key, "in front") })
			<-arrived
			c.expect(t, "after the one in front", made{loads: reads, commits: 2}, func() {
				for i, device := range bound {
					want[device] = true
					group.Go(func() { nodetest.MustActivate(t, n, key, device) })
					if i < 10 {
						device := fmt.Sprint("new-", i)
						want[device] = true
						group.Go(func() { nodetest.MustActivate(t, n, key, device) })
					}
				}
				n.AwaitQueued(licensing.LicenseRef(key), 50)
				close(open)
				group.Wait()
			})
			count, ids := nodetest.Devices(t, n, key)
			if count != len(want) || len(ids) != len(want) {
				t.Errorf("current_devices %d, %d bound; want %d", count, len(ids), len(want))
			}
		})
	}
}

// TestWrongGuesses activates all devices of a license on a node that knows none of them: each device is bound already,
// and stays bound once.
func TestWrongGuesses(t *testing.T) {
	first := nodetest.New(t, nodetest.OpenStore(t))
	key := nodetest.Grant(t, first, 0)
	binds(names(60)...)(t, first, key)
	var c trips
	n := nodetest.New(t, c.count(nodetest.OpenStore(t)))
	for _, device := range names(60) {
		if result := nodetest.MustActivate(t, n, key, device); result.License.CurrentDevices != 60 {
			t.Fatalf("%s: the answer says %d devices, want 60", device, result.License.CurrentDevices)
		}
	}
	if commits := c.commits.Load(); commits > 1 {
		t.Errorf("%d swaps on devices that were bound, want one at most: the first should have told the node", commits)
	}
	c.expect(t, "a new device", made{loads: 1, commits: 1}, func() { nodetest.MustActivate(t, n, key, "new") })
	if count, ids := nodetest.Devices(t, n, key); count != 61 || len(ids) != 61 {
		t.Errorf("current_devices %d, %d bound; want 61", count, len(ids))
	}
}

// TestRenameOfSpilled: a new name is stored in the key of its device.
func TestRenameOfSpilled(t *testing.T) {
	var clock nodetest.Clock
	n := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(&clock))
	key := nodetest.Grant(t, n, 0)
	binds(names(20)...)(t, n, key)
	clock.Advance(licensing.DefaultSeenStep)
	result, err := n.Activate(nodetest.Context(t),
		licensing.Activate{Target: licensing.Target{Key: key}, Device: "device-7", Name: "Desk", Named: true})
	if err != nil || result.Device.Name != "Desk" {
		t.Fatalf("got %+v, %v", result.Device, err)
	}
	view, err := nodetest.New(t, nodetest.OpenStore(t)).License(nodetest.Context(t), nodetest.Owner, key,
		store.DevicePage{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range view.Devices {
		if (d.ID == "device-7") != (d.Name == "Desk") {
			t.Errorf("stored: %+v", d)
		}
	}
}

// hookedCommits calls a hook before each Commit, in the goroutine of its caller.
type hookedCommits struct {
	store.Store
	before func()
}

func (s *hookedCommits) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	s.before()
	return s.Store.Commit(ctx, change)
}

// TestPanicBesideRead has a swap panic while a read answers other calls of the same turn. These calls get their
// answers, and no goroutine is left, which TestMain checks.
func TestPanicBesideRead(t *testing.T) {
	store := &hookedCommits{Store: nodetest.OpenStore(t), before: func() {}}
	n := nodetest.New(t, store)
	key := nodetest.Grant(t, n, 0)
	binds(names(20)...)(t, n, key)
	rivalReads(t, n, key)
	arrived, open := make(chan struct{}), make(chan struct{})
	var commits atomic.Int32
	store.before = func() {
		if commits.Add(1) > 1 {
			panic("a bug")
		}
		close(arrived)
		<-open
	}
	var group sync.WaitGroup
	group.Go(func() { nodetest.MustActivate(t, n, key, "in front") })
	<-arrived
	group.Go(func() { nodetest.MustActivate(t, n, key, "device-0") })
	group.Go(func() {
		_, err := nodetest.Activate(nodetest.Context(t), n, key, "new")
		nodetest.WantError(t, err, licensing.ErrInternal)
	})
	n.AwaitQueued(licensing.LicenseRef(key), 2)
	close(open)
	group.Wait()
	if err := n.Drain(nodetest.Context(t)); err != nil {
		t.Error(err)
	}
}

// TestChangeBesideSwap removes a bound device while a swap binds a new one. The read beside the swap can't answer the
// removal, so another swap follows.
func TestChangeBesideSwap(t *testing.T) {
	plain := nodetest.OpenStore(t) // whose memory both nodes share
	store, arrived, open, _ := gated(plain)
	n := nodetest.New(t, plain)
	key := nodetest.Grant(t, n, 0)
	binds(names(20)...)(t, n, key)
	rivalReads(t, n, key)
	n = nodetest.New(t, store)
	var group sync.WaitGroup
	group.Go(func() { nodetest.MustActivate(t, n, key, "in front") })
	<-arrived
	group.Go(func() { nodetest.MustActivate(t, n, key, "new") })
	group.Go(func() { removes("device-0")(t, n, key) })
	n.AwaitQueued(licensing.LicenseRef(key), 2)
	close(open)
	group.Wait()
	if count, ids := nodetest.Devices(t, n, key); count != 22 || len(ids) != 22 || ids["device-0"] || !ids["new"] {
		t.Errorf("current_devices %d, bound %v", count, ids)
	}
}

// TestManyPresent activates more devices than a request may read, of a license of which the node knows only which
// devices are bound.
func TestManyPresent(t *testing.T) {
	t.Parallel()
	first := nodetest.New(t, nodetest.OpenStore(t))
	key := nodetest.Grant(t, first, 0)
	var group sync.WaitGroup
	old := names(200)
	for _, device := range old {
		group.Go(func() { nodetest.MustActivate(t, first, key, device) })
	}
	group.Wait()

	plain := nodetest.OpenStore(t)
	db, gate, arrived := heldCommits(plain)
	n := nodetest.New(t, db)
	ref, bound := licensing.LicenseRef(key), len(old)
	for i := 0; plain.MaxDevicesPerCommit(ref) == store.MaxTouchedDevices; i++ {
		if i == 2000 {
			t.Fatal("the node does not come to know all devices")
		}
		nodetest.MustActivate(t, n, key, fmt.Sprint("new-", i))
		bound++
	}
	open := make(chan struct{})
	gate.Store(&open)
	group.Go(func() { nodetest.MustActivate(t, n, key, "in front") })
	<-arrived
	for _, device := range append([]string{"beside"}, old...) {
		group.Go(func() { nodetest.MustActivate(t, n, key, device) })
	}
	n.AwaitQueued(ref, 1+len(old))
	gate.Store(nil)
	close(open)
	group.Wait()
	if count, ids := nodetest.Devices(t, first, key); count != bound+2 || len(ids) != bound+2 {
		t.Errorf("current_devices %d, %d bound, want %d", count, len(ids), bound+2)
	}
}

// TestPauseIsBounded pauses after more tries than any caller makes.
func TestPauseIsBounded(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for try := range 1000 {
		node.Pause(ended, try)
	}
	if node.Pause(ended, 0) {
		t.Error("the pause reports time for another try although the time is up")
	}
	if !node.Pause(nodetest.Context(t), 1000) {
		t.Error("the pause reports no time for another try although there is time")
	}
}
