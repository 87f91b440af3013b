package node_test

import (
	"fmt"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// TestRenewalsInReserve: while the store is almost full, each stored renewal counts as a change by the end users. A
// renewal that stores nothing is answered in any case, and a device that gives its lease back, too.
func TestRenewalsInReserve(t *testing.T) {
	const devices, limit = 130, 100
	db, clock := openSpaced(t), &nodetest.Clock{}
	n := nodetest.New(t, db, nodetest.WithClock(clock))
	key := floating(t, n, devices)
	for i := range devices {
		nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
	}
	db.set(store.SpaceReserve)
	clock.Advance(lease / 8)
	for i := range devices {
		var err error
		if device := fmt.Sprint("device ", i); i%2 == 0 {
			_, err = nodetest.Activate(nodetest.Context(t), n, key, device)
		} else {
			_, err = n.ValidateLicense(nodetest.Context(t),
				licensing.ValidateLicense{Target: licensing.Target{Key: key}, Device: device})
		}
		if got := licensing.ReasonOf(err); i < limit && err != nil || i >= limit && got != licensing.ReasonRateLimited {
			t.Errorf("renewal %d is answered %v", i, err)
		}
	}
	for i := range limit {
		nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
	}
	back, err := n.DeactivateDevice(nodetest.Context(t),
		licensing.DeactivateDevice{Target: licensing.Target{Key: key}, Device: "device 0"})
	if err != nil || !back.Removed || back.License.CurrentDevices != devices-1 {
		t.Errorf("given back: %v, %d devices, %v", back.Removed, back.License.CurrentDevices, err)
	}
}

// TestShortLeasesAreStoredSeldom: a device that asks each second for the shortest lease has a new end stored once in
// half of it, and never loses the lease.
func TestShortLeasesAreStoredSeldom(t *testing.T) {
	n, clock := limitedNode(t, nodetest.OpenStore(t), node.WriteLimits{
		NewDevices:   node.WriteLimit{Count: 100, Per: 10 * time.Hour},
		LicenseBytes: node.WriteLimit{Count: 100 << 10, Per: 100 * time.Minute},
	})
	key := floating(t, n, 1)
	var end time.Time
	stored := 0
	for range 600 {
		got, err := n.Activate(nodetest.Context(t),
			licensing.Activate{Target: licensing.Target{Key: key}, Device: "laptop", Lease: licensing.MinLease})
		if err != nil || got.LeaseLeft <= licensing.MinLease/2 {
			t.Fatalf("%v left, %v", got.LeaseLeft, err)
		}
		if !got.Device.LeaseEnd.Equal(end) {
			stored, end = stored+1, got.Device.LeaseEnd
		}
		clock.Advance(time.Second)
	}
	if want := int(10 * time.Minute / (licensing.MinLease / 2)); stored != want {
		t.Errorf("%d ends are stored, want %d", stored, want)
	}
}
