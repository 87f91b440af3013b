package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// KeyedStore is a store that keeps API keys as well as finding them.
type KeyedStore interface {
	store.Store
	store.Keys
}

// RunKeys checks a store against the contract of store.Keys, and that its
// changes show in store.Store. Tests share nothing but the store.
func RunKeys(t *testing.T, open func(t *testing.T) KeyedStore) {
	for _, c := range []struct {
		name string
		test func(*testing.T, keyFixture)
	}{
		{"create and find", testKeyCreate},
		{"creating twice, and in each other's place", testKeyCreateTwice},
		{"pages cover every key once", testKeyPages},
		{"a change is seen by hash and by id", testKeyChange},
		{"a change that is refused changes nothing", testKeyRefused},
		{"concurrent changes lose no update", testKeyConcurrent},
		{"an absent key", testKeyAbsent},
		{"the ring must have what the store uses", testRing},
		{"a master key must be in use", testMasterUnused},
		{"every change gives a new mark", testKeyMark},
		{"a claim goes with a key, or neither does", testKeyClaims},
		{"a change is made once for a claim", testKeyChangedOnce},
		{"uses are noted coarsely", testKeyUses},
		{"the watch wakes", testKeyWatch},
	} {
		t.Run("API keys: "+c.name, func(t *testing.T) {
			store := open(t)
			f := keyFixture{fixture: fixture{t: t, store: store}, keys: store}
			f.master = f.newMaster("m_" + ulid.Make().String())
			if err := store.UseMaster(f.context(), f.master); err != nil {
				t.Fatal(err)
			}
			c.test(t, f)
		})
	}
}

// keyFixture makes API keys that no other test knows of.
type keyFixture struct {
	fixture
	keys   store.Keys
	master keyring.MasterKey // in use
}

func (f keyFixture) newMaster(id string) keyring.MasterKey {
	f.t.Helper()
	var bytes [keyring.MasterKeySize]byte
	_, _ = rand.Read(bytes[:])
	master, err := keyring.NewMasterKey(id, bytes)
	if err != nil {
		f.t.Fatal(err)
	}
	return master
}

func (f keyFixture) apiKey(owner licensing.Owner) licensing.APIKey {
	key := licensing.APIKey{
		ID: licensing.NewAPIKeyID(owner, ulid.Make().String()), Owner: owner, Name: "shop",
		Scopes: []string{"orders", "keys:read"}, RequireSignature: true, SecretVersion: 1, MasterID: f.master.ID,
		CreatedAt: created, ExpiresAt: created.Add(time.Hour),
	}
	key.Hash = keyring.HashAPIKey("lk_test_" + licensing.SlotOf(key.Owner).String() + rand.Text())
	return key
}

func (f keyFixture) create(owner licensing.Owner) licensing.APIKey {
	f.t.Helper()
	key := f.apiKey(owner)
	if err := f.keys.CreateAPIKey(f.context(), key); err != nil {
		f.t.Fatal(err)
	}
	return key
}

// wantStored demands that a key is found both ways.
func (f keyFixture) wantStored(want licensing.APIKey) {
	f.t.Helper()
	got, err := f.store.APIKey(f.context(), want.Hash)
	if err != nil {
		f.t.Fatal(err)
	}
	f.equal("the key of the hash", got, &want)
	if got, err = f.keys.FindAPIKey(f.context(), want.Owner, want.ID); err != nil {
		f.t.Fatal(err)
	}
	f.equal("the key of the id", got, &want)
}

func (f keyFixture) marks() store.KeyMarks {
	f.t.Helper()
	marks, err := f.store.APIKeyMarks(f.context())
	if err != nil {
		f.t.Fatal(err)
	}
	return marks
}

func testKeyCreate(t *testing.T, f keyFixture) {
	key := f.create(f.owner())
	f.wantStored(key)
	for _, other := range []licensing.Owner{
		{AccountID: key.Owner.AccountID, Mode: licensing.Live},
		{AccountID: key.Owner.AccountID[:len(key.Owner.AccountID)-1], Mode: licensing.Test},
	} {
		if got, err := f.keys.FindAPIKey(f.context(), other, key.ID); err != nil || got != nil {
			t.Errorf("%v finds %v, %v", other, got, err)
		}
	}
}

func testKeyCreateTwice(t *testing.T, f keyFixture) {
	key := f.create(f.owner())
	if err := f.keys.CreateAPIKey(f.context(), key); err != nil {
		t.Errorf("the same key again: %v", err)
	}
	sameID, sameHash := f.apiKey(key.Owner), f.apiKey(key.Owner)
	sameID.ID, sameHash.Hash = key.ID, key.Hash
	for what, other := range map[string]licensing.APIKey{"id": sameID, "hash": sameHash} {
		if err := f.keys.CreateAPIKey(f.context(), other); err == nil {
			t.Errorf("another key of the same %s was stored", what)
		}
	}
	revoked, err := f.keys.ChangeAPIKey(f.context(), key.Owner, key.ID, func(k *licensing.APIKey) error {
		k.Revoke(created)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.keys.CreateAPIKey(f.context(), key); err != nil {
		t.Errorf("the same key again, revoked meanwhile: %v", err)
	}
	f.wantStored(*revoked)
}

func testKeyPages(t *testing.T, f keyFixture) {
	owner := f.owner()
	f.create(licensing.Owner{AccountID: owner.AccountID, Mode: licensing.Live})
	f.create(licensing.Owner{AccountID: owner.AccountID + "x", Mode: licensing.Test})
	var want []licensing.APIKey
	for range 7 {
		want = append(want, f.create(owner))
	}
	slices.SortFunc(want, func(a, b licensing.APIKey) int { return strings.Compare(b.ID, a.ID) })
	for _, limit := range []int{1, 3, 7, 8, store.MaxListPage} {
		var got []licensing.APIKey
		page := store.Page{Limit: limit}
		for {
			list, err := f.keys.ListAPIKeys(f.context(), owner, page)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, list.Items...)
			if len(list.Items) > limit {
				t.Errorf("a page of %d has %d keys", limit, len(list.Items))
			}
			if page.Before = list.Next; page.Before == "" || len(got) > len(want) {
				break
			}
		}
		f.equal("all pages", got, want)
	}
}

func testKeyChange(t *testing.T, f keyFixture) {
	key := f.create(f.owner())
	next := f.newMaster("n_" + ulid.Make().String())
	if err := f.keys.UseMaster(f.context(), next); err != nil {
		t.Fatal(err)
	}
	got, err := f.keys.ChangeAPIKey(f.context(), key.Owner, key.ID, func(k *licensing.APIKey) error {
		return k.Rotate(next.ID, created, time.Minute)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := key.Rotate(next.ID, created, time.Minute); err != nil {
		t.Fatal(err)
	}
	f.equal("answer", got, &key)
	f.wantStored(key)
	for range 2 { // the second time nothing is left to do
		if got, err = f.keys.ChangeAPIKey(f.context(), key.Owner, key.ID, func(k *licensing.APIKey) error {
			k.Revoke(created.Add(time.Second))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		key.RevokedAt = created.Add(time.Second)
		f.equal("answer", got, &key)
		f.wantStored(key)
	}
}

func testKeyRefused(t *testing.T, f keyFixture) {
	key := f.create(f.owner())
	refusal := errors.New("refused")
	_, err := f.keys.ChangeAPIKey(f.context(), key.Owner, key.ID, func(k *licensing.APIKey) error {
		k.Name, k.Scopes[0] = "changed", "changed"
		return refusal
	})
	if !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
	f.wantStored(key)
}

// testKeyConcurrent increments the secret's version concurrently: no two callers get the same version, even if they
// change the key to the same value.
func testKeyConcurrent(t *testing.T, f keyFixture) {
	const writers = 6
	key := f.create(f.owner())
	var mu sync.Mutex
	versions := map[int]bool{}
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			got, err := f.keys.ChangeAPIKey(f.context(), key.Owner, key.ID, func(k *licensing.APIKey) error {
				return k.Rotate(f.master.ID, created, time.Minute) // all in the same millisecond
			})
			if err != nil {
				t.Errorf("change: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if versions[got.SecretVersion] {
				t.Errorf("two callers got version %d", got.SecretVersion)
			}
			versions[got.SecretVersion] = true
		})
	}
	group.Wait()
	got, err := f.store.APIKey(f.context(), key.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if got.SecretVersion != writers+1 {
		t.Errorf("%d rotations led to version %d", writers, got.SecretVersion)
	}
}

func testKeyAbsent(t *testing.T, f keyFixture) {
	owner := f.owner()
	if got, err := f.keys.FindAPIKey(f.context(), owner, "key_none"); err != nil || got != nil {
		t.Errorf("found %v, %v", got, err)
	}
	if list, err := f.keys.ListAPIKeys(f.context(), owner, store.Page{Limit: 10}); err != nil || len(list.Items) != 0 ||
		list.Next != "" {
		t.Errorf("listed %v, %v", list, err)
	}
	_, err := f.keys.ChangeAPIKey(f.context(), owner, "key_none", func(*licensing.APIKey) error {
		t.Error("change was called")
		return nil
	})
	if !errors.Is(err, licensing.ErrAPIKeyNotFound) {
		t.Errorf("changed: %v", err)
	}
}

func ringOf(t *testing.T, keys ...keyring.MasterKey) keyring.MasterRing {
	t.Helper()
	var text strings.Builder
	for _, key := range keys {
		text.WriteString(key.Line() + "\n")
	}
	ring, err := keyring.ParseMasterRing(text.String())
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// testRing checks only what the store says about the test's own master keys: the rings lack the keys of all other
// tests.
func testRing(t *testing.T, f keyFixture) {
	unused := f.newMaster("u_" + ulid.Make().String())
	imposter := f.newMaster(f.master.ID)
	says := func(ring keyring.MasterRing, id string, want bool) {
		t.Helper()
		err := f.keys.CheckRing(f.context(), ring)
		if got := err != nil && strings.Contains(err.Error(), `"`+id+`"`); got != want {
			t.Errorf("%v: names %s: %v, want %v: %v", ring, id, got, want, err)
		}
	}
	says(ringOf(t, f.master, unused), f.master.ID, false)
	says(ringOf(t, f.master, unused), unused.ID, false)
	says(ringOf(t, unused), f.master.ID, true)
	says(ringOf(t, unused, imposter), f.master.ID, true)

	if err := f.keys.UseMaster(f.context(), f.master); err != nil {
		t.Errorf("used again: %v", err)
	}
	if err := f.keys.UseMaster(f.context(), imposter); err == nil || !strings.Contains(err.Error(), f.master.ID) {
		t.Errorf("another key under an id that is in use: %v", err)
	}
	says(ringOf(t, f.master), f.master.ID, false)
}

func testMasterUnused(t *testing.T, f keyFixture) {
	unused := f.apiKey(f.owner())
	unused.MasterID = "none_" + ulid.Make().String()
	if err := f.keys.CreateAPIKey(f.context(), unused); err == nil || !strings.Contains(err.Error(), unused.MasterID) {
		t.Errorf("created: %v", err)
	}
	if got, err := f.store.APIKey(f.context(), unused.Hash); err != nil || got != nil {
		t.Errorf("it was stored: %v, %v", got, err)
	}
	key := f.create(f.owner())
	_, err := f.keys.ChangeAPIKey(f.context(), key.Owner, key.ID, func(k *licensing.APIKey) error {
		return k.Rotate(unused.MasterID, created, 0)
	})
	if err == nil || !strings.Contains(err.Error(), unused.MasterID) {
		t.Errorf("rotated: %v", err)
	}
	f.wantStored(key)
}

func testKeyMark(t *testing.T, f keyFixture) {
	owner := f.owner()
	of := func(marks store.KeyMarks) [2]store.KeyMark {
		return [2]store.KeyMark{marks.All, marks.Parts[store.KeyPart(owner)]}
	}
	seen := [][2]store.KeyMark{of(f.marks())}
	fresh := func(what string) {
		t.Helper()
		mark := of(f.marks())
		if slices.Contains(seen, mark) {
			t.Errorf("%s gave no new mark", what)
		}
		seen = append(seen, mark)
	}
	key := f.create(owner)
	fresh("a key")
	for i := range 3 {
		if _, err := f.keys.ChangeAPIKey(f.context(), key.Owner, key.ID, func(k *licensing.APIKey) error {
			return k.Rotate(f.master.ID, created.Add(time.Duration(i)), 0)
		}); err != nil {
			t.Fatal(err)
		}
		fresh("a rotation")
	}
}

func testKeyWatch(t *testing.T, f keyFixture) {
	ctx, cancel := context.WithCancel(f.context())
	woken := make(chan struct{}, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.store.WatchAPIKeys(ctx, func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
	}()
	await := func(what string) {
		t.Helper()
		select {
		case <-woken:
		case <-ctx.Done():
			t.Fatalf("%s woke no watcher", what)
		}
	}
	await("the beginning")
	key := f.create(f.owner())
	await("a new key")
	if _, err := f.keys.ChangeAPIKey(f.context(), key.Owner, key.ID, func(k *licensing.APIKey) error {
		k.Revoke(created)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	await("a change")
	cancel()
	<-ended
}
