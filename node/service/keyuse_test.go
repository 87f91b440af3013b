package service_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/kv"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// withRing lets the node make API keys.
func withRing(t *testing.T) func(*service.Config) {
	t.Helper()
	return func(cfg *service.Config) { cfg.Ring = parseRing(t, lineM1+lineM2) }
}

func wantUsed(t *testing.T, store *kv.Store, key licensing.APIKey, want time.Time) {
	t.Helper()
	got, err := store.FindAPIKey(nodetest.Context(t), key.Owner, key.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !got.LastUsedAt.Equal(want) {
		t.Errorf("the key was used at %v, want %v", got.LastUsedAt, want)
	}
}

// TestKeyUses: the store has the times of uses, rounded to a step, also for keys that the cache has forgotten since,
// and never for refused keys.
func TestKeyUses(t *testing.T) {
	clock := new(nodetest.Clock)
	db := nodetest.OpenStore(t)
	s := newKeyService(t, nodetest.WithClock(clock), seldom, withRing(t))
	s.store.HangWatch = true
	key := issue(t, s.maker(t))
	maker := s.maker(t)
	maker.Clock = clock.Now
	short := issue(t, maker, func(k *service.NewKey) { k.ExpiresAt = clock.Now().Add(time.Hour) })
	stop := s.follow(t)
	s.awaitRemembered(t, key.Text)
	began := clock.Now()
	s.StoreKeyUses()
	wantUsed(t, db, key.Key, began)
	wantUsed(t, db, short.Key, time.Time{})

	clock.Advance(time.Second)
	s.want(t, key.Text, true)
	s.StoreKeyUses()
	wantUsed(t, db, key.Key, began) // within the step

	// Uses from before the memory was emptied are stored all the same.
	clock.Advance(store.KeyUseStep)
	s.want(t, key.Text, true)
	later := clock.Now()
	stop()
	issue(t, s.maker(t)) // another mark
	s.follow(t)
	s.awaitScans(t, 2)
	s.StoreKeyUses()
	wantUsed(t, db, key.Key, later)

	clock.Advance(30 * 24 * time.Hour)
	s.want(t, short.Text, false)
	s.want(t, guessed("none"), false)
	revoke(t, s.maker(t), key.Key)
	s.want(t, key.Text, false)
	s.StoreKeyUses()
	wantUsed(t, db, key.Key, later)
}

// awaitScans returns once count scans have succeeded in all.
func (s *keyService) awaitScans(t *testing.T, count int64) {
	t.Helper()
	for ctx := nodetest.Context(t); s.scans.Load() < count; {
		if ctx.Err() != nil {
			t.Fatal("the cache does not follow the marks of keys")
		}
	}
}

// TestKeyUsesWait: the node stores uses in the next round if a round fails.
func TestKeyUsesWait(t *testing.T) {
	store := nodetest.OpenStore(t)
	failing := &failingUses{Keys: store, err: errors.New("no")}
	n := nodetest.New(t, store, withRing(t), func(cfg *service.Config) { cfg.Keys = failing })
	key := issue(t, keymaker(t, store))
	if got, err := n.Authenticate(nodetest.Context(t), key.Text); err != nil || got == nil {
		t.Fatalf("got %v, %v", got, err)
	}
	n.StoreKeyUses()
	wantUsed(t, store, key.Key, time.Time{})
	failing.err = nil
	n.StoreKeyUses()
	if got, err := store.FindAPIKey(nodetest.Context(t), nodetest.Owner, key.Key.ID); err != nil ||
		got.LastUsedAt.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
	n.StoreKeyUses() // there is nothing left
	if failing.calls != 2 {
		t.Errorf("uses were stored %d times", failing.calls)
	}
}

// failingUses fails to store uses.
type failingUses struct {
	store.Keys
	err   error
	calls int
}

func (f *failingUses) NoteKeysUsed(ctx context.Context, uses []store.KeyUse) error {
	f.calls++
	if f.err != nil {
		return f.err
	}
	return f.Keys.NoteKeysUsed(ctx, uses)
}

// TestKeyUsesAreBounded uses more keys than the node keeps uses of.
func TestKeyUsesAreBounded(t *testing.T) {
	store := nodetest.OpenStore(t)
	failing := &failingUses{Keys: store, err: errors.New("no")}
	n := nodetest.New(t, store, withRing(t), func(cfg *service.Config) { cfg.Keys = failing })
	for i := range service.MaxCachedKeys + 10 {
		n.NoteKeyUse([32]byte{byte(i), byte(i >> 8)}, time.Now())
	}
	n.StoreKeyUses()
	if kept := n.KeyUses(); kept != service.MaxCachedKeys {
		t.Errorf("%d uses are kept", kept)
	}
}
