package storetest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// testLeases gives leases to more and more devices of a license, and lets them lapse.
func testLeases(t *testing.T, f fixture) {
	l := f.license(licensing.MaxLeasedDevices)
	l.Lease = licensing.LeaseTerms{Length: 10 * time.Minute, Longest: time.Hour}
	ref := licensing.LicenseRef(l.Key)
	f.mustLand(store.Write{Ref: ref, Record: licensing.Record{License: l, Changed: true}})
	ends := map[string]time.Time{}
	lease := func(at time.Time, devices ...string) {
		t.Helper()
		f.activate(l, at, devices...)
		for _, id := range devices {
			ends[id] = at.Add(10 * time.Minute)
		}
	}
	stored := func() {
		t.Helper()
		view, err := f.store.ReadLicense(f.context(), l.Key, store.DevicePage{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]time.Time{}
		for _, d := range view.Devices {
			got[d.ID] = d.LeaseEnd
		}
		f.equal("the ends of leases", got, ends)
		if view.License.CurrentDevices != len(ends) {
			t.Errorf("%d devices are counted, want %d", view.License.CurrentDevices, len(ends))
		}
	}
	bound := func(r *licensing.Record) (ids []string) {
		for id, entry := range r.Devices {
			if entry.Bound {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return ids
	}
	search := func(by time.Time, devices ...string) store.Snapshot {
		t.Helper()
		snapshots, err := f.store.Load(f.context(), store.Want{Ref: ref, Devices: devices, LapsedBy: by})
		if err != nil {
			t.Fatalf("Load: %v", err)
		}
		if !snapshots[0].Record.Leases.All {
			t.Fatal("a search has not found all leases")
		}
		return snapshots[0]
	}
	lapse := func(s store.Snapshot, at time.Time) store.Write {
		t.Helper()
		s.Record.ActsByTime = true
		if _, err := licensing.Apply(&s.Record, licensing.LapseLeases{}, at); err != nil {
			t.Fatal(err)
		}
		return store.Write{Ref: ref, Token: s.Token, Record: s.Record}
	}

	counted := func() {
		t.Helper()
		got := 0
		err := f.store.EachLeased(f.context(), licensing.SlotOf(l.Owner), created, func(leased *licensing.License) {
			if leased.Key.ID() == l.Key.ID() { // other tests use the same slot
				got += leased.CurrentDevices
			}
		})
		if err != nil || got != len(ends) {
			t.Errorf("%d leases are in use, %v; want %d", got, err, len(ends))
		}
	}
	counted()

	// A small license comes with all its devices, also from memory.
	few := deviceNames(0, 16)
	for i, id := range few {
		lease(created.Add(time.Duration(i)*time.Second), id)
	}
	stored()
	s := f.load(ref, "device-0", "unknown")
	if !s.Record.Leases.All || !slices.Equal(bound(&s.Record), slices.Sorted(slices.Values(few))) {
		t.Errorf("%v are known: %v", bound(&s.Record), s.Record.Leases)
	}
	if guess, unsure, ok := f.store.Recall(store.Want{Ref: ref}); ok &&
		(len(unsure) > 0 || !guess.Record.Leases.All || len(bound(&guess.Record)) != 16) {
		t.Errorf("remembered are %v: %v", bound(&guess.Record), guess.Record.Leases)
	}

	// A large one, whose leases a search finds.
	for i := range 5 {
		lease(created.Add(time.Duration(i+1)*time.Minute), deviceNames(100*(i+1), 100*(i+1)+20)...)
	}
	stored()
	counted()
	first := created.Add(10 * time.Minute)
	s = search(first.Add(-time.Millisecond), "device-0", "unknown")
	if got := bound(&s.Record); !slices.Equal(got, []string{"device-0"}) ||
		!s.Record.Leases.Next.Equal(first.Add(time.Second)) {
		t.Errorf("found are %v, and %v", got, s.Record.Leases)
	}
	s = search(first.Add(10 * time.Second))
	if got := bound(&s.Record); len(got) != 11 || !s.Record.Leases.Next.Equal(first.Add(11*time.Second)) {
		t.Errorf("found are %v, and %v", got, s.Record.Leases)
	}
	f.mustLand(lapse(s, first.Add(15*time.Second)))
	maps.DeleteFunc(ends, func(_ string, end time.Time) bool { return !end.After(first.Add(10 * time.Second)) })
	stored()
	if l := f.load(ref).Record.License; !l.LeasesUntil.Equal(first.Add(11*time.Second)) ||
		!l.LeaseClock.Equal(first.Add(15*time.Second)) {
		t.Errorf("the license has %v and %v", l.LeasesUntil, l.LeaseClock)
	}

	// A lease that was renewed since must stay.
	s = search(first.Add(15 * time.Second))
	lease(first.Add(16*time.Second), "device-15")
	if outcome := f.commit(lapse(s, first.Add(20*time.Second))); outcome.Landed {
		t.Fatal("a swap removed a lease that was renewed since")
	}
	stored()

	// More than one swap removes.
	far := created.Add(24 * time.Hour)
	for len(ends) > 0 {
		s := search(far, "unknown")
		found := bound(&s.Record)
		if len(found) != min(len(ends), store.MaxLapsed) {
			t.Fatalf("found %d of %d", len(found), len(ends))
		}
		f.mustLand(lapse(s, far.Add(licensing.LeaseGuard)))
		for _, id := range found {
			delete(ends, id)
		}
		stored()
	}
	if l := f.load(ref).Record.License; !l.LeasesUntil.IsZero() {
		t.Errorf("leases end from %v on, and there are none", l.LeasesUntil)
	}
	counted()
	lease(far.Add(licensing.LeaseGuard), "device-0")
	stored()
}
