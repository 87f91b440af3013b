package storetest

import (
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// claim returns the first claim of the Idempotency-Key of a request about an API key.
func (f keyFixture) claim(owner licensing.Owner, keyID string) store.Write {
	var hash [16]byte
	_, _ = rand.Read(hash[:])
	return store.Write{
		Ref: licensing.ClaimRef(owner, string(hash[:])),
		Record: licensing.Record{Claim: &licensing.Claim{Fingerprint: [32]byte{1}, CreatedAt: created,
			APIKeyID: keyID}},
	}
}

// wantClaim demands that a claim is stored.
func (f keyFixture) wantClaim(w store.Write) {
	f.t.Helper()
	f.equal("the claim", f.load(w.Ref).Record.Claim, w.Record.Claim)
}

func testKeyClaims(t *testing.T, f keyFixture) {
	key := f.apiKey(f.owner())
	claim := f.claim(key.Owner, key.ID)
	for range 2 { // the second time as if the first answer had been lost
		if err := f.keys.CreateAPIKey(f.context(), key, claim); err != nil {
			t.Fatal(err)
		}
		f.wantStored(key)
		f.wantClaim(claim)
	}
	// Another request with the same Idempotency-Key has read that there is none.
	other := f.apiKey(key.Owner)
	late := claim
	late.Record.Claim = &licensing.Claim{Fingerprint: [32]byte{1}, CreatedAt: created, APIKeyID: other.ID}
	if err := f.keys.CreateAPIKey(f.context(), other, late); !errors.Is(err, store.ErrClaimTaken) {
		t.Errorf("the claim of another: %v", err)
	}
	if got, err := f.store.APIKey(f.context(), other.Hash); err != nil || got != nil {
		t.Errorf("a key was stored without its claim: %v, %v", got, err)
	}
	_, err := f.keys.ChangeAPIKey(f.context(), key.Owner, key.ID, func(k *licensing.APIKey) error {
		return k.Rotate(f.master.ID, created, 0)
	}, claim)
	if !errors.Is(err, store.ErrClaimTaken) {
		t.Errorf("the claim of another: %v", err)
	}
	f.wantStored(key)
	f.wantClaim(claim)
}

// testKeyChangedOnce sends the same request to many nodes at once.
func testKeyChangedOnce(t *testing.T, f keyFixture) {
	key := f.create(f.owner())
	claim := f.claim(key.Owner, key.ID)
	var group sync.WaitGroup
	var made, refused atomic.Int32
	for range 6 {
		group.Go(func() {
			_, err := f.keys.ChangeAPIKey(f.context(), key.Owner, key.ID, func(k *licensing.APIKey) error {
				return k.Rotate(f.master.ID, created, time.Minute)
			}, claim)
			switch {
			case err == nil:
				made.Add(1)
			case errors.Is(err, store.ErrClaimTaken):
				refused.Add(1)
			default:
				t.Errorf("rotated: %v", err)
			}
		})
	}
	group.Wait()
	got, err := f.store.APIKey(f.context(), key.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if made.Load() != 1 || refused.Load() != 5 || got.SecretVersion != 2 {
		t.Errorf("%d were made and %d refused, and the version is %d", made.Load(), refused.Load(), got.SecretVersion)
	}
	f.wantClaim(claim)
}

// testKeyUses does not look at the mark: other tests change it meanwhile.
func testKeyUses(t *testing.T, f keyFixture) {
	one, other := f.create(f.owner()), f.create(f.owner())
	used := func(want time.Time, uses ...time.Time) {
		t.Helper()
		for _, at := range uses {
			// A note whose outcome is in doubt is made again, as a node does.
			for f.keys.NoteKeysUsed(f.context(), []store.KeyUse{{Hash: one.Hash, At: at}}) != nil {
				if f.context().Err() != nil {
					t.Fatal("it can't be noted")
				}
			}
		}
		got, err := f.keys.FindAPIKey(f.context(), one.Owner, one.ID)
		if err != nil {
			t.Fatal(err)
		}
		if !got.LastUsedAt.Equal(want) {
			t.Errorf("it was used at %v, want %v", got.LastUsedAt, want)
		}
	}
	used(time.Time{})
	used(created, created)
	used(created, created.Add(store.KeyUseStep-time.Millisecond), created.Add(-time.Hour))
	later := created.Add(store.KeyUseStep)
	used(later, later, created)

	// The noted use stays through a change of the key, and the list shows it.
	changed, err := f.keys.ChangeAPIKey(f.context(), one.Owner, one.ID, func(k *licensing.APIKey) error {
		k.Revoke(created)
		return nil
	})
	if err != nil || !changed.LastUsedAt.Equal(later) {
		t.Errorf("changed: %+v, %v", changed, err)
	}
	list, err := f.keys.ListAPIKeys(f.context(), one.Owner, store.Page{Limit: 1})
	if err != nil || len(list.Items) != 1 || !list.Items[0].LastUsedAt.Equal(later) {
		t.Errorf("listed: %+v, %v", list, err)
	}
	for f.keys.NoteKeysUsed(f.context(),
		[]store.KeyUse{{Hash: one.Hash, At: later.Add(time.Hour)}, {Hash: other.Hash, At: later}}) != nil {
		if f.context().Err() != nil {
			t.Fatal("they can't be noted")
		}
	}
	if got, err := f.keys.FindAPIKey(f.context(), other.Owner, other.ID); err != nil || !got.LastUsedAt.Equal(later) {
		t.Errorf("the other: %+v, %v", got, err)
	}
}
