package storetest

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// testDevices walks a license past the point where a store may keep its
// devices elsewhere, and back.
func testDevices(t *testing.T, f fixture) {
	l := f.createLicense(0)
	ref := licensing.LicenseRef(l.Key)
	want := map[string]licensing.Device{}
	bind := func(at time.Time, devices ...string) {
		t.Helper()
		f.activate(l, at, devices...)
		for _, id := range devices {
			want[id] = licensing.Device{ID: id, Name: "name of " + id, Named: true, BoundAt: at, LastSeenAt: at}
		}
	}
	check := func() {
		t.Helper()
		view, err := f.store.ReadLicense(f.context(), l.Key, store.DevicePage{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]licensing.Device{}
		for _, d := range view.Devices {
			got[d.ID] = d
		}
		f.equal("devices", got, want)
		if view.License.CurrentDevices != len(want) || len(view.Devices) != len(want) {
			t.Fatalf("current_devices %d, %d entries; want %d", view.License.CurrentDevices, len(view.Devices),
				len(want))
		}
	}

	hex := strings.Repeat("0123456789abcdef", 4)
	odd := []string{hex, "ABCDEF00", "abc", "a/b", "日本語", " spaced ", strings.Repeat("x", 255)}
	bind(created, odd...)
	check()
	for i, id := range deviceNames(0, 9) {
		bind(created.Add(time.Duration(i)*time.Second), id)
	}
	check() // 16
	bind(created.Add(time.Minute), "the 17th")
	check()
	bind(created.Add(2*time.Minute), deviceNames(100, 100+store.MaxTouchedDevices)...)
	check()
	room := f.store.MaxDevicesPerCommit(ref)
	if room < store.MaxTouchedDevices || room > store.MaxFoldDevices {
		t.Errorf("room for %d devices", room)
	}
	fill := deviceNames(1000, 1000+room)
	if guess, unsure, ok := f.store.Recall(store.Want{Ref: ref, Devices: fill}); ok && len(unsure) == 0 {
		at := created.Add(3 * time.Minute)
		f.apply(&guess.Record, l, at, fill...)
		f.mustLand(store.Write{Ref: ref, Token: guess.Token, Record: guess.Record})
		for _, id := range fill {
			want[id] = licensing.Device{ID: id, Name: "name of " + id, Named: true, BoundAt: at, LastSeenAt: at}
		}
		check()
	}

	s := f.load(ref, hex, "never", "the 17th", "device-100")
	for id, bound := range map[string]bool{hex: true, "never": false, "the 17th": true, "device-100": true} {
		if entry := s.Record.Devices[id]; entry == nil || entry.Bound != bound {
			t.Errorf("entry of %q is %+v, want bound %v", id, entry, bound)
		}
	}

	// One change that adds, renames, sees and removes.
	later := created.Add(time.Hour)
	for _, cmd := range []licensing.Command{
		licensing.Activate{Target: licensing.Target{Key: l.Key}, Device: "never", SeenStep: time.Minute},
		licensing.Activate{Target: licensing.Target{Key: l.Key}, Device: "the 17th", Name: "", Named: true,
			SeenStep: time.Minute},
		licensing.Activate{Target: licensing.Target{Key: l.Key}, Device: hex, SeenStep: time.Minute},
		licensing.RemoveDevice{Target: licensing.Target{Key: l.Key}, Device: "device-100"},
	} {
		if _, err := licensing.Apply(&s.Record, cmd, later); err != nil {
			t.Fatalf("%T: %v", cmd, err)
		}
	}
	f.mustLand(store.Write{Ref: ref, Token: s.Token, Record: s.Record})
	want["never"] = licensing.Device{ID: "never", BoundAt: later, LastSeenAt: later}
	renamed, seen := want["the 17th"], want[hex]
	renamed.Name, renamed.LastSeenAt, seen.LastSeenAt = "", later, later
	want["the 17th"], want[hex] = renamed, seen
	delete(want, "device-100")
	check()

	for id := range want {
		f.remove(l, id)
	}
	want = map[string]licensing.Device{}
	check()
	bind(later, "back again")
	check()
}

func testPages(t *testing.T, f fixture) {
	for _, count := range []int{0, 1, 5, 16, 17, 300} {
		l := f.createLicense(0)
		names := deviceNames(0, count)
		for chunk := range slices.Chunk(names, store.MaxTouchedDevices) {
			f.activate(l, created, chunk...)
		}
		var whole []string
		for _, limit := range []int{1000, 1, 7, count, 100} {
			if limit == 0 || limit == 1 && count > 20 {
				continue
			}
			got := pages(t, f, l, limit)
			if whole == nil {
				whole = got
				sorted := slices.Sorted(slices.Values(got))
				f.equal("the devices listed", sorted, slices.Sorted(slices.Values(names)))
			}
			f.equal("the listing in pages", got, whole)
		}
	}
}

// pages reads a whole listing page by page.
func pages(t *testing.T, f fixture, l *licensing.License, limit int) []string {
	t.Helper()
	var ids []string
	page := store.DevicePage{Limit: limit}
	for {
		view, err := f.store.ReadLicense(f.context(), l.Key, page)
		if err != nil {
			t.Fatal(err)
		}
		if len(view.Devices) > limit {
			t.Fatalf("a page of %d has %d", limit, len(view.Devices))
		}
		for _, d := range view.Devices {
			ids = append(ids, d.ID)
		}
		if view.Next == nil {
			return ids
		}
		if bytes.Compare(view.Next[:], page.After[:]) <= 0 {
			t.Fatalf("the next page begins at %x, before this one at %x", *view.Next, page.After)
		}
		page.After = *view.Next
	}
}

func testReadMany(t *testing.T, f fixture) {
	many := f.createLicense(0)
	f.activate(many, created, deviceNames(0, 40)...)
	few := f.createLicense(3)
	f.activate(few, created, deviceNames(0, 2)...)
	granted := f.license(3)
	f.mustLand(store.Write{Ref: licensing.LicenseRef(granted.Key),
		Record: licensing.Record{License: granted, Metadata: &licensing.Metadata{Object: `{"a":1}`, Changed: true}}})
	keys := []licensing.LicenseKey{many.Key, granted.Key, f.key(few.Owner), few.Key}
	for len(keys) < store.MaxReadLicenses {
		keys = append(keys, few.Key)
	}
	views, err := f.store.ReadLicenses(f.context(), keys, 30)
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		want, err := f.store.ReadLicense(f.context(), key, store.DevicePage{Limit: 30})
		if err != nil {
			t.Fatal(err)
		}
		f.equal("one of many", views[i], want)
	}
	if views[2] != nil || views[1].Metadata.Object == "" || views[0].Next == nil || len(views[3].Devices) != 2 {
		t.Errorf("they were read as %+v", views[:4])
	}
}
