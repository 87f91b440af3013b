package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/licensing"
	"licet/node/store"
)

// testProviderEvents stores how far the events at a payment provider are read, only on top of the revision that was
// read, and for each account and mode apart.
func testProviderEvents(t *testing.T, f fixture) {
	owner := f.owner()
	read := func(owner licensing.Owner) (store.ProviderEvents, int64) {
		t.Helper()
		read, revision, err := f.store.ReadProviderEvents(f.context(), owner)
		if err != nil {
			t.Fatal(err)
		}
		return read, revision
	}
	// put repeats what has failed. A copy of an earlier try may land first.
	put := func(events store.ProviderEvents, revision int64) int64 {
		t.Helper()
		for {
			stored, err := f.store.PutProviderEvents(f.context(), owner, events, revision)
			if err == nil && stored != 0 {
				return stored
			}
			now, at := read(owner)
			switch {
			case at != revision && cmp.Equal(now, events):
				return at
			case err == nil:
				t.Fatalf("%+v is not stored on top of %d: %+v at %d", events, revision, now, at)
			}
		}
	}
	if none, revision := read(owner); revision != 0 || !cmp.Equal(none, store.ProviderEvents{}) {
		t.Errorf("%+v at %d, before anything is stored", none, revision)
	}
	first := store.ProviderEvents{Next: created}
	second := store.ProviderEvents{From: created, To: created.Add(time.Hour), After: "evt_1",
		Next: created.Add(time.Minute), Again: []store.ProviderEventAgain{{Kind: "refund", ID: "re_1", Since: created,
			Tries: 1, AccountID: owner.AccountID}}, Key: "0123456789abcdef"}
	revision := put(first, 0)
	next := put(second, revision)
	if next <= revision {
		t.Errorf("the revisions are %d and %d", revision, next)
	}
	for _, stale := range []int64{0, revision} {
		if stored, err := f.store.PutProviderEvents(f.context(), owner, first, stale); err == nil && stored != 0 {
			t.Errorf("it is stored on top of the revision %d", stale)
		}
	}
	if now, at := read(owner); at != next || !cmp.Equal(now, second) {
		t.Errorf("stored is %s at %d, want revision %d", cmp.Diff(second, now), at, next)
	}
	for _, other := range []licensing.Owner{f.owner(), {AccountID: owner.AccountID, Mode: licensing.Live}} {
		if none, revision := read(other); revision != 0 {
			t.Errorf("%v has %+v", other, none)
		}
	}
}
