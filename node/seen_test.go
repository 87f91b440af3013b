package node_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// seenAt returns the stored time at which a device was last seen.
func seenAt(t *testing.T, n *service.Service, key licensing.LicenseKey, device string) time.Time {
	t.Helper()
	view, err := n.License(nodetest.Context(t), nodetest.Owner, key, store.DevicePage{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range view.Devices {
		if d.ID == device {
			return d.LastSeenAt
		}
	}
	return time.Time{}
}

// TestSeen: reads answer activations of bound devices. The node stores later when these devices were seen, for devices
// in the record of the license and in keys of their own.
func TestSeen(t *testing.T) {
	for _, spilled := range []bool{false, true} {
		t.Run(fmt.Sprint("spilled ", spilled), func(t *testing.T) {
			var c trips
			now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
			n := nodetest.New(t, c.count(nodetest.OpenStore(t)),
				func(cfg *service.Config) { cfg.Clock = func() time.Time { return now } })
			key := nodetest.Grant(t, n, 0)
			all := names(2)
			if spilled {
				all = names(20)
			}
			binds(all...)(t, n, key)
			now = now.Add(licensing.DefaultSeenStep)
			c.expect(t, "bound devices, after a while", made{confirms: 3}, func() {
				nodetest.MustActivate(t, n, key, "device-0")
				nodetest.MustActivate(t, n, key, "device-1")
				nodetest.MustActivate(t, n, key, "device-1")
			})
			if spilled {
				if _, err := remove(nodetest.Context(t), nodetest.New(t, nodetest.OpenStore(t)), key,
					"device-1"); err != nil {
					t.Fatal(err)
				}
			}
			c.commits.Store(0)
			n.StoreSeen()
			if commits := c.commits.Load(); commits == 0 || commits > 2 {
				t.Errorf("%d swaps stored when devices were seen, want one, or one more after a loss", commits)
			}
			if got := seenAt(t, n, key, "device-0"); !got.Equal(now) {
				t.Errorf("device-0 was seen at %v, want %v", got, now)
			}
			if got := seenAt(t, n, key, "device-1"); spilled != got.IsZero() {
				t.Errorf("device-1 was seen at %v; removed: %v", got, spilled)
			}
			if count, ids := nodetest.Devices(t, n, key); count != len(ids) {
				t.Errorf("current_devices is %d, bound %d", count, len(ids))
			}
			c.expect(t, "nothing more to store", made{}, n.StoreSeen)
		})
	}
}

// TestSeenLeavesRoom: storing when the devices of one license were seen never fills the mailbox of the license.
func TestSeenLeavesRoom(t *testing.T) {
	key := nodetest.Grant(t, nodetest.New(t, nodetest.OpenStore(t)), 0)
	arrived, open := make(chan struct{}, 100), make(chan struct{})
	db := &storetest.Faulty{Store: nodetest.OpenStore(t), OnLoad: func([]store.Want) error {
		arrived <- struct{}{}
		<-open
		return nil
	}}
	const limit = 2 * store.MaxTouchedDevices
	n := nodetest.New(t, db, func(c *service.Config) { c.QueueLimit = limit })
	for _, device := range names(2 * limit) {
		n.NoteSeen(key, device, time.Now())
	}
	var group sync.WaitGroup
	group.Go(n.StoreSeen)
	<-arrived
	group.Go(func() { nodetest.MustActivate(t, n, key, "waited for") })
	n.AwaitQueued(licensing.LicenseRef(key), 1)
	close(open)
	group.Wait()
	if count, ids := nodetest.Devices(t, n, key); count != 1 || !ids["waited for"] {
		t.Errorf("current_devices %d, bound %v", count, ids)
	}
}

// TestSeenUnreachable: if the store can't be reached, the node discards most times at which devices were seen without a
// try, so that neither a stop nor the next round waits.
func TestSeenUnreachable(t *testing.T) {
	var loads atomic.Int32
	db := &storetest.Faulty{Store: nodetest.OpenStore(t), OnLoad: func([]store.Want) error {
		loads.Add(1)
		return licensing.ErrUnavailable
	}}
	n := nodetest.New(t, db)
	const licenses = 1000
	for i := range licenses {
		entropy := [keyring.LicenseKeyEntropy]byte{byte(i), byte(i >> 8)}
		key := nodetest.LicenseKeys.Mint("LIC", nodetest.Owner, entropy)
		n.NoteSeen(key, "a", time.Now())
	}
	n.StoreSeen()
	if got := loads.Load(); got == 0 || got > licenses/4 {
		t.Errorf("%d licenses were tried, of %d", got, licenses)
	}
}

// seenBeside stores when devices were seen, and activates others at just that moment. seenBeside returns
// the answer of each activation.
func seenBeside(
	t *testing.T, key licensing.LicenseKey, n *service.Service, gate *atomic.Pointer[chan struct{}],
	arrived chan struct{}, seen, activated []string, at time.Time,
) map[string]error {
	t.Helper()
	for _, device := range seen {
		n.NoteSeen(key, device, at)
	}
	open := make(chan struct{})
	gate.Store(&open)
	var group sync.WaitGroup
	group.Go(n.StoreSeen)
	<-arrived // one swap for all of them
	ref := licensing.LicenseRef(key)
	var mu sync.Mutex
	answers := make(map[string]error)
	for _, device := range activated {
		group.Go(func() {
			_, err := nodetest.Activate(nodetest.Context(t), n, key, device)
			mu.Lock()
			defer mu.Unlock()
			answers[device] = err
		})
	}
	n.AwaitQueued(ref, len(activated))
	gate.Store(nil)
	close(open)
	group.Wait()
	return answers
}

// heldCommits holds commits back while there is a gate.
func heldCommits(db store.Store) (held *storetest.Faulty, gate *atomic.Pointer[chan struct{}], arrived chan struct{}) {
	gate, arrived = &atomic.Pointer[chan struct{}]{}, make(chan struct{}, 1000)
	return &storetest.Faulty{Store: db, OnCommit: func(store.Change) storetest.Fault {
		if hold := gate.Load(); hold != nil {
			arrived <- struct{}{}
			<-*hold
		}
		return storetest.Fault{}
	}}, gate, arrived
}

// TestSeenProvesNothing: a successful write of last_seen proves nothing about other devices. Another node has removed a
// device that this node still remembers, while this node stores last_seen of other devices in the background.
func TestSeenProvesNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		device string
		rival  func(*testing.T, *service.Service, licensing.LicenseKey)
		err    error
	}{
		{"a device that was removed", "device-2", removes("device-2"), nil},
		{"a slot that was freed", "new", removes("device-2"), nil},
		{"a slot that was taken", "new", func(t *testing.T, n *service.Service, key licensing.LicenseKey) {
			removes("device-2")(t, n, key)
			nodetest.MustActivate(t, n, key, "rival")
		}, errFull},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, gate, arrived := heldCommits(nodetest.OpenStore(t))
			n, other := nodetest.New(t, store), nodetest.New(t, nodetest.OpenStore(t))
			key := nodetest.Grant(t, n, 18)
			binds(names(18)...)(t, n, key)
			c.rival(t, other, key)
			later := time.Now().Add(2 * licensing.DefaultSeenStep)
			answers := seenBeside(t, key, n, gate, arrived, []string{"device-5", "device-6", "device-7"},
				[]string{c.device}, later)
			nodetest.WantError(t, answers[c.device], c.err)
			count, ids := nodetest.Devices(t, other, key)
			if ids[c.device] != (c.err == nil) || count != 18 {
				t.Errorf("%s is bound: %v, of %d", c.device, ids[c.device], count)
			}
			if got := seenAt(t, other, key, "device-6"); !got.Equal(later.UTC().Truncate(time.Millisecond)) {
				t.Errorf("device-6 was seen at %v, want %v", got, later)
			}
		})
	}
}

// TestManySeenBesideSeen activates more bound devices than a request may compare. The node must note each as seen,
// while it is storing when some of them were seen.
func TestManySeenBesideSeen(t *testing.T) {
	store, gate, arrived := heldCommits(nodetest.OpenStore(t))
	clock := &nodetest.Clock{}
	n := nodetest.New(t, store, nodetest.WithClock(clock))
	key := nodetest.Grant(t, n, 0)
	all := names(200)
	binds(all...)(t, n, key)
	n.StoreSeen()
	clock.Advance(2 * licensing.DefaultSeenStep)
	for device, err := range seenBeside(t, key, n, gate, arrived, all[:3], all[3:], clock.Now()) {
		if err != nil {
			t.Fatalf("%s: %v", device, err)
		}
	}
}
