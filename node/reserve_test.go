package node_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// spaced is a store that has as much space as a test says, and counts its commits.
type spaced struct {
	store.Store
	space   atomic.Int32
	commits trips
}

func openSpaced(t *testing.T) *spaced {
	s := &spaced{}
	s.Store = s.commits.count(nodetest.OpenStore(t))
	return s
}

func (s *spaced) Space() store.Space { return store.Space(s.space.Load()) }

func (s *spaced) set(space store.Space) { s.space.Store(int32(space)) }

// TestReserveOfLicenses: while the store keeps its reserve, a node refuses changes of licenses that make the store
// grow. It makes all other changes, and answers for bound devices.
func TestReserveOfLicenses(t *testing.T) {
	db := openSpaced(t)
	n := nodetest.New(t, db)
	finite, unlimited, full := nodetest.Grant(t, n, 3), nodetest.Grant(t, n, 0), nodetest.Grant(t, n, 1)
	for _, key := range []licensing.LicenseKey{finite, unlimited, full} {
		nodetest.MustActivate(t, n, key, "bound")
	}
	target := licensing.Target{Key: finite, Caller: nodetest.Owner}
	change := func(cmd licensing.Command) error {
		_, _, err := n.ChangeLicense(nodetest.Context(t), nodetest.Owner,
			service.LicenseChange{Key: finite, Command: cmd})
		return err
	}
	db.set(store.SpaceReserve)

	for _, key := range []licensing.LicenseKey{finite, unlimited} {
		_, err := nodetest.Activate(nodetest.Context(t), n, key, "new")
		nodetest.WantError(t, err, store.ErrReserve)
		if count, _ := nodetest.Devices(t, n, key); count != 1 {
			t.Errorf("%d devices", count)
		}
		nodetest.MustActivate(t, n, key, "bound")
	}
	_, err := nodetest.Activate(nodetest.Context(t), n, full, "new")
	nodetest.WantError(t, err, &licensing.Error{Reason: licensing.ReasonDeviceLimitReached})
	nodetest.WantError(t, change(licensing.UpdateLicense{Target: target, Metadata: `{"a":1}`}), store.ErrReserve)

	five := 5
	for _, cmd := range []licensing.Command{
		licensing.UpdateLicense{Target: target, MaxDevices: &five},
		licensing.SuspendLicense{Target: target, Reason: "unpaid"},
		licensing.ReinstateLicense{Target: target},
		licensing.RenewLicense{Target: target, ExpiresAt: time.Now().Add(time.Hour)},
		licensing.RevokeLicense{Target: target},
	} {
		if err := change(cmd); err != nil {
			t.Errorf("%T: %v", cmd, err)
		}
	}
	for _, key := range []licensing.LicenseKey{finite, unlimited} {
		if _, err := remove(nodetest.Context(t), n, key, "bound"); err != nil {
			t.Errorf("removing a device: %v", err)
		}
	}
	db.set(store.SpaceFree)
	nodetest.MustActivate(t, n, unlimited, "new")
}

// TestReserveOfInactiveSlots: a new device that would take the slot of an inactive device is growth like any other,
// whether the license's own record contains its devices or not.
func TestReserveOfInactiveSlots(t *testing.T) {
	for _, devices := range []int{3, 17} {
		t.Run(fmt.Sprint(devices, " devices"), func(t *testing.T) {
			db := openSpaced(t)
			clock := &nodetest.Clock{}
			n := nodetest.New(t, db, nodetest.WithClock(clock))
			key := losing(t, n, devices)
			for i := range devices {
				nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
			}
			clock.Advance(inactive)
			db.set(store.SpaceReserve)
			_, err := nodetest.Activate(nodetest.Context(t), n, key, "another")
			nodetest.WantError(t, err, store.ErrReserve)
			if count, ids := nodetest.Devices(t, n, key); count != devices || ids["another"] {
				t.Errorf("%d devices: %v", count, ids)
			}
			db.set(store.SpaceFree)
			nodetest.MustActivate(t, n, key, "another")
		})
	}
}

// TestReserveOfLapsedSlots: a device whose lease has lapsed, or that would take the slot of a lapsed lease, is growth
// like any other new device.
func TestReserveOfLapsedSlots(t *testing.T) {
	for _, devices := range []int{3, 17} {
		t.Run(fmt.Sprint(devices, " devices"), func(t *testing.T) {
			db := openSpaced(t)
			clock := &nodetest.Clock{}
			n := nodetest.New(t, db, nodetest.WithClock(clock))
			key := floating(t, n, devices)
			for i := range devices {
				nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
			}
			clock.Advance(lease + licensing.LeaseGuard)
			db.set(store.SpaceReserve)
			for _, device := range []string{"another", "device 0"} {
				_, err := nodetest.Activate(nodetest.Context(t), n, key, device)
				nodetest.WantError(t, err, store.ErrReserve)
			}
			if _, ids := nodetest.Devices(t, n, key); ids["another"] {
				t.Errorf("bound are %v", ids)
			}
			db.set(store.SpaceFree)
			nodetest.MustActivate(t, n, key, "another")
			nodetest.MustActivate(t, n, key, "device 0")
		})
	}
}

// TestReserveOfManyCalls folds activations of bound and new devices of one license: each gets the same answer as alone.
func TestReserveOfManyCalls(t *testing.T) {
	db := openSpaced(t)
	n := nodetest.New(t, db)
	key := nodetest.Grant(t, n, 0)
	binds(names(20)...)(t, n, key)
	db.set(store.SpaceReserve)
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			_, err := nodetest.Activate(nodetest.Context(t), n, key, fmt.Sprint("device-", i))
			if refused := errors.Is(err, store.ErrReserve); refused != (i >= 20) || !refused && err != nil {
				t.Errorf("device-%d: %v", i, err)
			}
		})
	}
	group.Wait()
	if count, _ := nodetest.Devices(t, n, key); count != 20 {
		t.Errorf("%d devices are bound", count)
	}
}

// TestReserveStoresNoUse: a bound device gets its answer. The node stores neither when the device was seen nor its new
// name, while the store keeps its reserve and while the store is full.
func TestReserveStoresNoUse(t *testing.T) {
	db := openSpaced(t)
	var clock nodetest.Clock
	n := nodetest.New(t, db, nodetest.WithClock(&clock))
	key := nodetest.Grant(t, n, 1)
	nodetest.MustActivate(t, n, key, "laptop")
	bound := seenAt(t, n, key, "laptop")
	clock.Advance(time.Hour)
	nodetest.MustActivate(t, n, key, "laptop") // the node has not stored this use yet
	db.commits.commits.Store(0)
	for _, space := range []store.Space{store.SpaceReserve, store.SpaceFull} {
		db.set(space)
		clock.Advance(time.Hour)
		nodetest.MustActivate(t, n, key, "laptop")
		renamed := licensing.Activate{
			Target: licensing.Target{Key: key}, Device: "laptop", Name: "Travel", Named: true,
		}
		_, err := n.Activate(nodetest.Context(t), renamed)
		nodetest.WantError(t, err, nil)
		n.StoreSeen()
	}
	db.set(store.SpaceFree)
	n.StoreSeen()
	if commits := db.commits.commits.Load(); commits != 0 || !seenAt(t, n, key, "laptop").Equal(bound) {
		t.Errorf("%d commits, and the device was seen at %v", commits, seenAt(t, n, key, "laptop"))
	}
	clock.Advance(time.Hour)
	nodetest.MustActivate(t, n, key, "laptop")
	n.StoreSeen()
	if !seenAt(t, n, key, "laptop").After(bound) {
		t.Error("with space again, the node does not store when the device was seen")
	}
}

// TestReserveOfReceipts: while the store is almost full, a request that asks for a receipt gets it, also the first one
// of a day, which the license stores. It is a change by the end users of the owner. A request that does not ask stores
// no day: then it gets no receipt.
func TestReserveOfReceipts(t *testing.T) {
	db := openSpaced(t)
	n, clock := stopped(t, db)
	owner := nodetest.NewOwner(licensing.Test)
	terms := licensing.DefaultTerms()
	terms.Receipts = licensing.ReceiptTerms{Always: true, ValiditySeconds: 3600}
	_, _, err := n.PutProduct(nodetest.Context(t), licensing.PutProduct{ID: "signed", Owner: owner, Terms: terms})
	nodetest.WantError(t, err, nil)
	licenses, _, err := n.Grant(nodetest.Context(t), owner, service.Grant{ProductID: "signed", Quantity: 102})
	nodetest.WantError(t, err, nil)
	activate := func(i int, ask licensing.ReceiptAsk) (bool, error) {
		target := licensing.Target{Key: licenses[i].License.Key}
		result, err := n.Activate(nodetest.Context(t), licensing.Activate{Target: target, Device: "pc", Receipt: ask})
		return result.Receipt != (licensing.ReceiptTimes{}), err
	}
	asks := licensing.AskReceipt(true, true, 0)
	wantReceipt := func(i int, ask licensing.ReceiptAsk, want bool, commits int32) {
		t.Helper()
		before := db.commits.commits.Load()
		got, err := activate(i, ask)
		if made := db.commits.commits.Load() - before; got != want || err != nil || made != commits {
			t.Errorf("ask %v: a receipt: %v after %d commits, %v; want %v after %d", ask, got, made, err, want, commits)
		}
	}
	for i := range licenses {
		wantReceipt(i, asks, true, 1)
	}
	tomorrow := clock.Load().Add(24 * time.Hour)
	clock.Store(&tomorrow)
	db.set(store.SpaceReserve)
	wantReceipt(0, 0, false, 0)
	wantReceipt(0, asks, true, 1)
	wantReceipt(0, asks, true, 0)
	wantReceipt(0, 0, true, 0)
	wantChanges(t, 99, func(i int) error {
		got, err := activate(1+i, asks)
		if err == nil && !got {
			t.Errorf("license %d: no receipt", 1+i)
		}
		return err
	})
	wantReceipt(0, asks, true, 0)
	wantReceipt(101, 0, false, 0)
	later := tomorrow.Add(time.Second)
	clock.Store(&later)
	wantReceipt(101, asks, true, 1)
}

// TestReserveOfSeenTimes: while the store is almost full, a license that loses inactive devices stores when a device
// was seen, once an hour. Each time is a change by the end users of the owner.
func TestReserveOfSeenTimes(t *testing.T) {
	db := openSpaced(t)
	n, clock := stopped(t, db)
	owner := nodetest.NewOwner(licensing.Test)
	_, _, err := n.PutProduct(nodetest.Context(t), licensing.PutProduct{ID: "losing", Owner: owner,
		Terms: licensing.Terms{KeyPrefix: "LIC", MaxDevices: 1, InactiveAfter: licensing.Period{Days: 30}}})
	nodetest.WantError(t, err, nil)
	licenses, _, err := n.Grant(nodetest.Context(t), owner, service.Grant{ProductID: "losing", Quantity: 200})
	nodetest.WantError(t, err, nil)
	for i := range licenses {
		nodetest.MustActivate(t, n, licenses[i].License.Key, "pc")
	}
	later := clock.Load().Add(time.Hour)
	clock.Store(&later)
	db.set(store.SpaceReserve)
	db.commits.commits.Store(0)
	wantChanges(t, 100, func(i int) error {
		target := licensing.Target{Key: licenses[i].License.Key}
		_, err := n.ValidateLicense(nodetest.Context(t), licensing.ValidateLicense{Target: target, Device: "pc"})
		if err == nil { // the second time changes nothing
			_, err = n.Activate(nodetest.Context(t), licensing.Activate{Target: target, Device: "pc"})
		}
		return err
	})
	if got := db.commits.commits.Load(); got != 100 {
		t.Errorf("%d commits", got)
	}
}

// TestRefuseGrowth: the refusal says why, and costs the store nothing.
func TestRefuseGrowth(t *testing.T) {
	db := openSpaced(t)
	n := nodetest.New(t, db)
	for space, want := range map[store.Space]error{
		store.SpaceFree: nil, store.SpaceReserve: store.ErrReserve, store.SpaceFull: store.ErrFull,
	} {
		db.set(space)
		got := n.RefuseGrowth()
		nodetest.WantError(t, got, want)
		if want != nil && got.Error() != want.Error() {
			t.Errorf("%v says %q", space, got)
		}
	}
}

// TestReservePutsOffEnds: passes that record the ends of licenses and orders wait until the store has space again.
func TestReservePutsOffEnds(t *testing.T) {
	db := openSpaced(t)
	n := nodetest.New(t, db)
	for _, space := range []store.Space{store.SpaceReserve, store.SpaceFull} {
		db.set(space)
		for _, chore := range n.Chores() {
			err := chore.Once(nodetest.Context(t))
			putOff := slices.Contains([]string{"order_ends", "license_ends", "license_notices"}, chore.Label)
			if errors.Is(err, node.ErrNoRoom) != putOff || !putOff && err != nil {
				t.Errorf("%s while the store is %v: %v", chore.Name, space, err)
			}
		}
	}
}
