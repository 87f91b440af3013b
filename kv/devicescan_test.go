package kv

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

// bindNew binds count new devices, in folds.
func bindNew(t *testing.T, s *Store, ref licensing.Ref, name string, count int) {
	t.Helper()
	for from := 0; from < count; from += store.MaxTouchedDevices {
		var devices []string
		for i := from; i < min(from+store.MaxTouchedDevices, count); i++ {
			devices = append(devices, fmt.Sprint(name, "-", i))
		}
		guess := guessed(t, s, ref, devices...)
		for _, device := range devices {
			guess = snapshotOf(bind(t, ref, guess, device))
		}
		commit(t, s, ref, guess, true)
	}
}

// TestDeviceScan binds devices of a license that another store has filled, until scanning all devices pays off.
// Whatever happens to the license meanwhile, the result must be true.
func TestDeviceScan(t *testing.T) {
	const before = 2500
	spread := func(i int) store.DeviceCursor { return keyspace.DevicePosition(fmt.Sprint("d-", i)) }
	clustered := func(i int) store.DeviceCursor {
		if i == 0 || i == 7 || i == 8 {
			return spread(i)
		}
		return store.DeviceCursor{0xff, 0xff, 0xff, byte(i >> 8), byte(i)}
	}
	remove := func(t *testing.T, s *Store, ref licensing.Ref, device string) {
		t.Helper()
		read := loadOne(t, s, ref, device)
		cmd := licensing.RemoveDevice{Target: licensing.Target{Key: keyOf(ref)}, Device: device}
		if _, err := licensing.Apply(&read.Record, cmd, kvtest.Time); err != nil {
			t.Fatal(err)
		}
		commit(t, s, ref, read, true)
	}
	for _, c := range []struct {
		name     string
		position func(int) store.DeviceCursor
		during   func(t *testing.T, s, other *Store, ref licensing.Ref)
		whole    bool
	}{
		{name: "undisturbed", position: spread, whole: true},
		{name: "hashes cluster", position: clustered, whole: true},
		{name: "own swaps meanwhile", position: spread, whole: true,
			during: func(t *testing.T, s, _ *Store, ref licensing.Ref) {
				bindNew(t, s, ref, "meanwhile", 3)
				remove(t, s, ref, "meanwhile-1")
				remove(t, s, ref, "d-7")
			}},
		{name: "a rival's swap meanwhile", position: spread,
			during: func(t *testing.T, s, other *Store, ref licensing.Ref) {
				remove(t, other, ref, "d-7")
				loadOne(t, s, ref, "d-7")
			}},
		{name: "the store is closed", position: spread,
			during: func(_ *testing.T, s, _ *Store, _ licensing.Ref) { s.end() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			other := faultyStore(t, kvtest.Script())
			ref := licensing.LicenseRef(putDevices(t, before, c.position))
			reads, arrived, open := 0, make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(open) })
			defer release()
			s := hookedStore(t, func() {
				if reads++; reads == 2 {
					close(arrived)
					<-open
				}
			})
			loadOne(t, s, ref)
			for i := 0; !s.scanning.Load(); i++ {
				if i == 50 {
					t.Fatal("no scan begins")
				}
				bindNew(t, s, ref, fmt.Sprint("new-", i), store.MaxTouchedDevices)
			}
			select {
			case <-arrived:
			case <-time.After(time.Minute):
				t.Fatal("no scan reads a second time")
			}
			if c.during != nil {
				c.during(t, s, other, ref)
			}
			release()
			s.background.Wait()
			truth := loadOne(t, other, ref, "d-0", "d-7", "d-8", "new-3-5", "meanwhile-0", "meanwhile-1", "never")
			guess, unsure, ok := s.Recall(store.Want{Ref: ref,
				Devices: []string{"new-3-5", "meanwhile-0", "meanwhile-1", "never"}})
			if !ok || guess.Token.(*stored).complete != c.whole || c.whole && len(unsure) > 0 {
				t.Fatalf("recalled: %v, all known: %v, want %v; unsure of %v", ok, guess.Token.(*stored).complete,
					c.whole, unsure)
			}
			if c.whole {
				s.memory.deviceCaches.use(ref.LicenseID(), false, func(r *deviceCache) {
					if len(r.bound) != truth.Record.License.CurrentDevices {
						t.Errorf("%d devices are known, of %d", len(r.bound), truth.Record.License.CurrentDevices)
					}
					for device, entry := range truth.Record.Devices {
						if standing, _ := r.find(device); (standing == bound || standing == present) != entry.Bound {
							t.Errorf("%s: %v, is it bound: %v", device, standing, entry.Bound)
						}
					}
				})
			}
			still, err := s.Confirm(t.Context(), ref, guess.Token)
			if err != nil || !still {
				t.Errorf("confirmed: %v, %v", still, err)
			}
		})
	}
}

// TestDeviceScanOfBrokenLicense: the store does not take the devices of a license for known if the license has a wrong
// count of them.
func TestDeviceScanOfBrokenLicense(t *testing.T) {
	s := faultyStore(t, kvtest.Script())
	ref := manyDevices(t, s, 300)
	if _, err := server.Client.Delete(t.Context(),
		keyspace.DeviceKey(ref.LicenseID(), "d-3")); err != nil {
		t.Fatal(err)
	}
	bindNew(t, s, ref, "new", 600)
	s.background.Wait()
	if got := s.MaxDevicesPerCommit(ref); got != store.MaxTouchedDevices {
		t.Errorf("room for %d devices", got)
	}
}
