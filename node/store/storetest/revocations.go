package storetest

import (
	"errors"
	"testing"

	"licet/licensing"
	"licet/node/store"
)

// testRevocations stores entries along with changes of licenses, reads them whole and by increments, and removes those
// whose time is over.
func testRevocations(t *testing.T, f fixture) {
	l := f.createLicense(3)
	void := func(device string, revision uint64, until licensing.ReceiptDay) licensing.RevocationName {
		ref := licensing.LicenseRef(l.Key)
		before := f.load(ref)
		before.Record.Changed = true
		name := licensing.RevocationOf(l.Key.ID(), device)
		before.Record.Revocations = []licensing.Revocation{{Name: name, Revision: revision, Until: until}}
		f.mustLand(store.Write{Ref: ref, Token: before.Token, Record: before.Record})
		return name
	}
	read := func(owner licensing.Owner, after int64) store.Revocations {
		list, err := f.store.ReadRevocations(f.context(), owner, store.RevocationsWanted{After: after, Most: 100})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if first := read(l.Owner, 0); len(first.Entries) != 0 || first.Revision == 0 {
		t.Errorf("a list without entries is %+v", first)
	}
	a := void("a", 7, 50_000)
	b := void("b", 8, 50_000)
	list := read(l.Owner, 0)
	if len(list.Entries) != 2 || len(read(f.owner(), 0).Entries) != 0 {
		t.Errorf("the list of two is %+v", list)
	}
	void("b", 9, 50_001)
	later := read(l.Owner, list.Revision)
	if len(later.Entries) != 1 || later.Entries[0].Name != b || later.Entries[0].Revision != 9 ||
		later.Revision <= list.Revision {
		t.Errorf("after %d came %+v", list.Revision, later)
	}
	for _, c := range []struct {
		want    store.RevocationsWanted
		entries int
		tooMany bool
	}{
		{store.RevocationsWanted{Most: 2}, 2, false}, {store.RevocationsWanted{Most: 1}, 2, true},
		{store.RevocationsWanted{Most: 1, Today: 50_000}, 1, false}, {store.RevocationsWanted{Today: 50_001}, 0, false},
		{store.RevocationsWanted{After: list.Revision, Most: 1}, 1, false},
	} {
		got, err := f.store.ReadRevocations(f.context(), l.Owner, c.want)
		if err != nil || got.TooMany != c.tooMany || !c.tooMany && len(got.Entries) != c.entries || got.Epoch == 0 {
			t.Errorf("%+v wanted: %+v, %v", c.want, got, err)
		}
	}
	if whole := read(l.Owner, 0); len(whole.Entries) != 2 {
		t.Errorf("the list with a newer entry is %+v", whole)
	}
	// A sweep is for all owners: another test's sweep may remove this entry first.
	void("c", 10, 40_000)
	void("b", 11, 50_002)
	for tries := 1; ; tries++ {
		_, err := f.store.SweepRevocations(f.context(), 40_000)
		if err == nil {
			break
		}
		if tries == 20 || !errors.Is(err, licensing.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	rest := read(l.Owner, 0)
	left := map[licensing.RevocationName]bool{}
	for _, entry := range rest.Entries {
		left[entry.Name] = true
	}
	if len(left) != 2 || !left[a] || !left[b] {
		t.Errorf("after the sweep there is %+v", rest)
	}
}
