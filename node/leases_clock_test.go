package node_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// TestWrongClockGivesNoLease: a node whose clock is not known to agree with others gives and renews no lease, takes
// none, hides none in look-ups, and says of none how long it lasts. It takes back what a device gives back. The other
// nodes are not harmed, and the node does all that once its clock agrees.
func TestWrongClockGivesNoLease(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, 9 * 24 * time.Hour} {
		for _, devices := range []int{3, 17} {
			t.Run(fmt.Sprint(off, ", ", devices, " devices"), func(t *testing.T) {
				t.Parallel()
				right, wrong := &nodetest.Clock{}, &nodetest.Clock{}
				wrong.Advance(off)
				began := right.Now()
				comparison := nodetest.NewComparison(func() (wall time.Time, elapsed time.Duration) {
					return wrong.Now(), right.Now().Sub(began)
				}) // has compared nothing yet, as after the start of a node
				n := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(right))
				inDoubt := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(wrong),
					func(cfg *service.Config) { cfg.Clocks = comparison })
				key := floating(t, n, devices)
				target := licensing.Target{Key: key}
				refused := func(device string) {
					t.Helper()
					_, err := nodetest.Activate(nodetest.Context(t), inDoubt, key, device)
					nodetest.WantError(t, err, licensing.ErrClockInDoubt)
				}

				refused("device 0")
				for i := range devices {
					nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
				}
				wantShown(t, inDoubt, key, devices)
				right.Advance(lease / 2)
				wrong.Advance(lease / 2)
				refused("device 0") // would be renewed
				refused("another")
				validate := licensing.ValidateLicense{Target: target, Device: "device 1"}
				_, err := inDoubt.ValidateLicense(nodetest.Context(t), validate)
				nodetest.WantError(t, err, licensing.ErrClockInDoubt)
				valid, err := n.ValidateLicense(nodetest.Context(t), validate)
				if err != nil || valid.LeaseLeft != lease {
					t.Errorf("the right node answers %v left, %v", valid.LeaseLeft, err)
				}
				back, err := inDoubt.DeactivateDevice(nodetest.Context(t),
					licensing.DeactivateDevice{Target: target, Device: "device 2"})
				if err != nil || !back.Removed || back.License.CurrentDevices != devices-1 {
					t.Errorf("given back: %v, %d devices, %v", back.Removed, back.License.CurrentDevices, err)
				}
				nodetest.MustActivate(t, n, key, "another")

				right.Advance(lease/2 + licensing.LeaseGuard)
				wrong.Advance(lease/2 + licensing.LeaseGuard)
				refused("one more")
				if got := nodetest.MustActivate(t, n, key, "one more"); got.LeaseLeft != lease {
					t.Errorf("the right node gives %v", got.LeaseLeft)
				}
				wrong.Advance(-off)
				nodetest.CompareWith(comparison, 0, 0)
				if got := nodetest.MustActivate(t, inDoubt, key, "one more"); got.LeaseLeft != lease {
					t.Errorf("the node that was wrong gives %v", got.LeaseLeft)
				}
			})
		}
	}
}

// wantShown demands that a look-up by a node shows the leases of an activated license, and that the node lists it so.
func wantShown(t *testing.T, n *service.Service, key licensing.LicenseKey, leases int) {
	t.Helper()
	view, err := n.License(nodetest.Context(t), nodetest.Owner, key, store.DevicePage{Limit: 100})
	nodetest.WantError(t, err, nil)
	view.HideLapsed(n.LeaseTime())
	if len(view.Devices) != leases || view.License.CurrentDevices != leases {
		t.Errorf("%d leases are shown, and %d counted", len(view.Devices), view.License.CurrentDevices)
	}
	list, err := n.ListLicenses(nodetest.Context(t), nodetest.Owner, service.LicenseFilter{
		ProductID: view.License.ProductID, Status: licensing.NotActivated}, store.Page{Limit: 100})
	nodetest.WantError(t, err, nil)
	for i := range list.Items {
		if list.Items[i].License.Key == key {
			t.Error("the license is listed as not activated")
		}
	}
}

// TestOneVerdictForATurn: if a node stops or begins to act by its clock in the middle of a turn, it refuses no device
// as if it had looked for lapsed leases.
func TestOneVerdictForATurn(t *testing.T) {
	const devices = 17 // so that a search must read the devices
	var looks atomic.Int32
	wall := time.Now()
	comparison := nodetest.NewComparison(func() (time.Time, time.Duration) {
		if looks.Add(-1) == 0 {
			return wall.Add(10 * time.Second), 0
		}
		return wall, 0
	})
	nodetest.CompareWith(comparison, 0, 0)
	clock := &nodetest.Clock{}
	n := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(clock),
		func(cfg *service.Config) { cfg.Clocks = comparison })
	for look := int32(1); look <= 12; look++ {
		key := floating(t, n, devices)
		for i := range devices {
			nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
		}
		clock.Advance(lease + licensing.LeaseGuard)
		looks.Store(look)
		_, err := nodetest.Activate(nodetest.Context(t), n, key, "another")
		looks.Store(0)
		if licensing.ReasonOf(err) == licensing.ReasonDeviceLimitReached {
			t.Errorf("the clock steps at look %d: %v", look, err)
		}
	}
}
