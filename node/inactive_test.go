package node_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
)

const (
	inactiveDay = 24 * time.Hour
	inactive    = 30*inactiveDay + licensing.SeenMargin
)

// losing grants a license that loses devices after 30 days, or whose devices may change if one component is equal.
func losing(t *testing.T, n *service.Service, maxDevices int) licensing.LicenseKey {
	t.Helper()
	return grantOf(t, n, fmt.Sprintf("losing-%d", maxDevices), licensing.Terms{MaxDevices: maxDevices,
		InactiveAfter: licensing.Period{Days: 30}, Match: licensing.DeviceMatch{AtLeast: 1, ChangesPerMonth: 2}})
}

// TestInactiveSlots: on a full license, the next activation takes the slot of the device that was not seen for longest,
// once it is inactive, and no other. That holds on a license with devices in its record, on one with devices of their
// own, and on a node that remembers little.
func TestInactiveSlots(t *testing.T) {
	for _, devices := range []int{3, 16, 17, 60} {
		for _, forgetful := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d devices, forgetful %v", devices, forgetful), func(t *testing.T) {
				t.Parallel()
				clock := &nodetest.Clock{}
				n := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(clock))
				key := losing(t, n, devices)
				node := nodesOf(t, n, clock, forgetful)
				refused := func(device string) {
					t.Helper()
					wantFull(t, node(), key, device)
				}
				for i := range devices {
					nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
				}
				refused("another")
				clock.Advance(10 * inactiveDay)
				for i := 2; i < devices; i++ { // no node stores later when they were seen
					nodetest.MustActivate(t, node(), key, fmt.Sprint("device ", i))
				}
				clock.Advance(time.Hour)
				if _, err := node().ValidateLicense(nodetest.Context(t), licensing.ValidateLicense{
					Target: licensing.Target{Key: key}, Device: "device 1"}); err != nil {
					t.Fatal(err)
				}
				clock.Advance(inactive - 10*inactiveDay - time.Hour - time.Millisecond)
				refused("another")
				clock.Advance(time.Millisecond)
				if got := nodetest.MustActivate(t, node(), key, "another"); !got.Bound {
					t.Errorf("the result is %+v", got)
				}
				refused("one more")
				if count, ids := nodetest.Devices(t, n, key); count != devices || !ids["another"] || ids["device 0"] {
					t.Errorf("%d devices: %v", count, ids)
				}
				clock.Advance(10 * inactiveDay) // of the others, all but device 1 are inactive now
				nodetest.MustActivate(t, node(), key, "one more")
				if devices > 3 {
					nodetest.MustActivate(t, node(), key, "and one")
				} else {
					refused("and one")
				}
				if count, ids := nodetest.Devices(t, n, key); count != devices || !ids["one more"] ||
					!ids["another"] || !ids["device 1"] {
					t.Errorf("%d devices: %v", count, ids)
				}
			})
		}
	}
}

// TestFullLicenseIsNotSearched: a full license above 16 devices is refused without a read of its devices while the
// bound in its record has not passed. A search that finds no inactive device stores the bound anew.
func TestFullLicenseIsNotSearched(t *testing.T) {
	const devices = 20
	var c trips
	clock := &nodetest.Clock{}
	n := nodetest.New(t, c.count(nodetest.OpenStore(t)), nodetest.WithClock(clock))
	key := losing(t, n, devices)
	for i := range devices {
		nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
	}
	refused := func() { wantFull(t, n, key, "another") }
	refused()
	c.expect(t, "a full license", made{confirms: 1}, refused)
	clock.Advance(20 * inactiveDay)
	for i := range devices {
		nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
	}
	clock.Advance(20 * inactiveDay)
	c.expect(t, "a search that finds no device", made{loads: 1, commits: 1}, refused)
	c.expect(t, "and again", made{confirms: 1}, refused)
}

// TestManyTakeInactiveSlots: of many devices that come at once, each takes the slot of one inactive device.
func TestManyTakeInactiveSlots(t *testing.T) {
	t.Parallel()
	const devices = 130 // more than one search finds
	clock := &nodetest.Clock{}
	n := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(clock))
	rival := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(clock))
	key := losing(t, n, devices)
	comes := func(from, to int) int64 {
		return activateAtOnce(t, [2]*service.Service{n, rival}, key, from, to)
	}
	if got := comes(0, 200); got != devices {
		t.Fatalf("%d of %d devices are bound", got, devices)
	}
	clock.Advance(inactive)
	if got := comes(1000, 1000+2*devices); got != devices {
		t.Fatalf("%d devices have taken slots, want %d", got, devices)
	}
	if count, ids := nodetest.Devices(t, n, key); count != devices || len(ids) != devices {
		t.Errorf("%d devices", count)
	}
}

// TestWrongClockRemovesNoDevice: a node whose clock is not known to agree with others removes no inactive device.
func TestWrongClockRemovesNoDevice(t *testing.T) {
	for _, devices := range []int{3, 17} {
		t.Run(fmt.Sprint(devices, " devices"), func(t *testing.T) {
			t.Parallel()
			clock := &nodetest.Clock{}
			comparison := nodetest.NewComparison(clock.Source)
			n := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(clock),
				func(cfg *service.Config) { cfg.Clocks = comparison })
			nodetest.CompareWith(comparison, 0)
			key := losing(t, n, devices)
			for i := range devices {
				nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
			}
			clock.Advance(inactive)
			nodetest.CompareWith(comparison, -inactive) // a second node says that it is earlier
			wantFull(t, n, key, "another")
			nodetest.CompareWith(comparison, 0, 0)
			nodetest.CompareWith(comparison, 0, 0)
			nodetest.WantError(t, n.ActsByTime(), nil)
			nodetest.MustActivate(t, n, key, "another")
		})
	}
}

// TestClockBehindKeepsDevices: a node whose clock is behind notes when it has seen a device by the latest clock, so no
// node removes the device early. A node that has compared no clock binds no device.
func TestClockBehindKeepsDevices(t *testing.T) {
	for _, devices := range []int{3, 17} {
		t.Run(fmt.Sprint(devices, " devices"), func(t *testing.T) {
			t.Parallel()
			clock := &nodetest.Clock{}
			began := clock.Now()
			comparison := nodetest.NewComparison(func() (wall time.Time, elapsed time.Duration) {
				now := clock.Now()
				return now, now.Sub(began)
			})
			n := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(clock),
				func(cfg *service.Config) { cfg.Clocks = comparison })
			key := losing(t, n, devices)
			_, err := nodetest.Activate(nodetest.Context(t), n, key, "too early")
			nodetest.WantError(t, err, licensing.ErrClockInDoubt)
			nodetest.CompareWith(comparison, 0, 0)
			nodetest.WantError(t, n.ActsByTime(), nil)
			for i := range devices - 1 {
				nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
			}
			nodetest.CompareWith(comparison, inactive) // a second node says that it is later
			nodetest.MustActivate(t, n, key, "new")
			for i := 1; i < devices-1; i++ {
				nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
			}

			clock.Advance(inactive) // the second node was right
			nodetest.CompareWith(comparison, 0, 0)
			nodetest.CompareWith(comparison, 0, 0)
			nodetest.WantError(t, n.ActsByTime(), nil)
			nodetest.MustActivate(t, n, key, "another")
			wantFull(t, n, key, "one more")
			if _, ids := nodetest.Devices(t, n, key); ids["device 0"] || !ids["device 1"] || !ids["new"] {
				t.Errorf("bound are %v", ids)
			}
		})
	}
}

// TestDeviceIsChangedOnce: many activations with the components of one bound device give it a new id as often as the
// terms allow, whichever node they come to; the device never takes a second slot that way.
func TestDeviceIsChangedOnce(t *testing.T) {
	t.Parallel()
	month := nodetest.WithClock(&nodetest.Clock{}) // which does not end during the test
	nodes := []*service.Service{nodetest.New(t, nodetest.OpenStore(t), month),
		nodetest.New(t, nodetest.OpenStore(t), month)}
	key := losing(t, nodes[0], 1)
	parts, _ := licensing.NewComponents(map[string]string{"disk": strings.Repeat("1f", 32)})
	activate := func(i int) (licensing.Result, error) {
		return nodes[i%2].Activate(nodetest.Context(t), licensing.Activate{Target: licensing.Target{Key: key},
			Device: fmt.Sprint("id ", i), Components: parts})
	}
	if _, err := activate(0); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var changed atomic.Int64
	for i := 1; i <= 20; i++ {
		group.Go(func() {
			switch result, err := activate(i); {
			case err == nil && !result.Bound:
				changed.Add(1)
			case licensing.ReasonOf(err) != licensing.ReasonDeviceLimitReached:
				t.Errorf("id %d: %+v, %v", i, result, err)
			}
		})
	}
	group.Wait()
	if count, ids := nodetest.Devices(t, nodes[0], key); count != 1 || len(ids) != 1 || ids["id 0"] ||
		changed.Load() != 2 {
		t.Errorf("%d changes, and %d devices: %v", changed.Load(), count, ids)
	}
}
