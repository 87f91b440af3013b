package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// testInactive fills a license whose terms remove inactive devices, and removes the devices unseen for longest.
func testInactive(t *testing.T, f fixture) {
	const devices, day = 120, 24 * time.Hour // more than one search finds
	l := f.license(devices)
	l.InactiveAfter = licensing.Period{Days: 30}
	ref := licensing.LicenseRef(l.Key)
	f.mustLand(store.Write{Ref: ref, Record: licensing.Record{License: l, Changed: true}})
	names := deviceNames(0, devices)
	for i := 0; i < devices; i += 15 {
		at := created.Add(time.Duration(i) * time.Minute)
		f.activate(l, at, names[i:i+15]...)
		small := f.load(ref, "unknown").Record
		if all := i == 0; small.Leases.All != all || small.Leases.Every != all || all && len(small.Devices) != 16 {
			t.Errorf("with %d devices, %d are known: %+v", i+15, len(small.Devices), small.Leases)
		}
	}
	search := func(by time.Time, devices ...string) store.Snapshot {
		t.Helper()
		snapshots, err := f.store.Load(f.context(), store.Want{Ref: ref, Devices: devices, LapsedBy: by})
		if err != nil {
			t.Fatalf("Load: %v", err)
		}
		s := snapshots[0]
		if s.Record.ActsByTime = true; !s.Record.Leases.All || s.Record.Leases.Every {
			t.Fatalf("a search knows %+v", s.Record.Leases)
		}
		return s
	}
	none := search(created.Add(-time.Millisecond), "another")
	if len(none.Record.Devices) != 1 || !none.Record.Leases.Next.Equal(created) {
		t.Errorf("found are %d devices, and %v", len(none.Record.Devices), none.Record.Leases.Next)
	}
	s := search(created.Add(30*day), "another")
	var found []string
	for id, entry := range s.Record.Devices {
		if entry.Bound {
			found = append(found, id)
		}
	}
	// The first 45 were seen by the 30th minute, and three of the 15 that were seen in the 45th are found.
	if first := names[:45]; len(found) != store.MaxLapsed || !contains(found, first) ||
		!s.Record.Leases.Next.Equal(created.Add(45*time.Minute)) {
		t.Errorf("found are %v, and %v", found, s.Record.Leases.Next)
	}

	// A device that was seen since the search stays, though its time alone was stored.
	full := created.Add(40 * day)
	activate := licensing.Activate{Target: licensing.Target{Key: l.Key}, Device: "another"}
	apply := func(s *store.Snapshot) store.Write {
		t.Helper()
		if _, err := licensing.Apply(&s.Record, activate, full); err != nil {
			t.Fatal(err)
		}
		return store.Write{Ref: ref, Token: s.Token, Record: s.Record}
	}
	f.step(ref, licensing.Seen{Key: l.Key, Device: "device-0", At: full}, full)
	if outcome := f.commit(apply(&s)); outcome.Landed {
		t.Fatal("a swap removed a device that was seen since")
	}
	s = search(full, "another")
	f.mustLand(apply(&s))
	if got := f.load(ref, "device-0", "device-1", "another").Record; !got.Devices["device-0"].Bound ||
		got.Devices["device-1"].Bound || !got.Devices["another"].Bound || got.License.CurrentDevices != devices ||
		!got.License.SeenFrom.Equal(created) || !got.License.LeaseClock.Equal(full) {
		t.Errorf("bound are %+v of %+v", got.Devices, *got.License)
	}
}

func contains(all, some []string) bool {
	for _, one := range some {
		if !slices.Contains(all, one) {
			return false
		}
	}
	return true
}

// testChangedDevice gives a device a new id, and spills the devices, which then have no components.
func testChangedDevice(t *testing.T, f fixture) {
	l := f.license(licensing.MaxMatchedDevices)
	l.Match = licensing.DeviceMatch{AtLeast: 1, ChangesPerMonth: 4}
	ref := licensing.LicenseRef(l.Key)
	f.mustLand(store.Write{Ref: ref, Record: licensing.Record{License: l, Changed: true}})
	parts, _ := licensing.NewComponents(map[string]string{"disk": strings.Repeat("1f", 32)})
	activate := licensing.Activate{Target: licensing.Target{Key: l.Key}, Device: "old", Components: parts}
	f.step(ref, activate, created)
	f.activate(l, created, deviceNames(0, 15)...)
	activate.Device = "new"
	f.step(ref, activate, created.Add(time.Minute))
	got := f.load(ref, "old", "new").Record
	if d := got.Devices["new"]; got.Devices["old"].Bound || !d.Bound || !d.Device.BoundAt.Equal(created) ||
		d.Device.Components != parts || got.License.CurrentDevices != 16 || got.License.Changes.Count != 1 {
		t.Errorf("the devices are %+v and %+v, of %+v", got.Devices["old"], d, *got.License)
	}
	f.step(ref, licensing.UpdateLicense{Target: licensing.Target{Key: l.Key}, MaxDevices: new(20)}, created)
	f.activate(l, created, "one more")
	if d := f.load(ref, "new").Record.Devices["new"]; !d.Bound || d.Device.Components != "" {
		t.Errorf("with a key of its own, the device is %+v", d)
	}
}
