package kv

import (
	"strings"
	"testing"
	"time"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/verify"
	"licet/licensing"
	"licet/licensing/keyring"
)

// TestRetireMaster retires a master key when nothing is derived from it, by a
// clock that the test sets.
func TestRetireMaster(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.forgetIDKey()
	s := l.store
	ring := l.useMasters("old", "new")
	create := func(master string, change func(*licensing.APIKey)) licensing.APIKey {
		t.Helper()
		key := newAPIKey()
		key.MasterID = master
		if change != nil {
			change(&key)
		}
		if err := s.CreateAPIKey(l.ctx(), key); err != nil {
			t.Fatal(err)
		}
		return key
	}
	refused := func(at time.Time, why string) {
		t.Helper()
		if err := s.RetireMaster(l.ctx(), "old", at); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want %s", err, why)
		}
	}
	create("new", nil)
	create("old", func(k *licensing.APIKey) { k.Revoke(kvtest.Time) }) // its secret is not needed any more
	expired := create("old", func(k *licensing.APIKey) { k.ExpiresAt = kvtest.Time })
	key := create("old", nil)
	refused(kvtest.Time, "the secrets of 2 API keys")
	change := func(key licensing.APIKey, change func(*licensing.APIKey) error) {
		t.Helper()
		if _, err := s.ChangeAPIKey(l.ctx(), key.Owner, key.ID, change); err != nil {
			t.Fatal(err)
		}
	}
	change(expired, func(k *licensing.APIKey) error { k.Revoke(kvtest.Time); return nil })
	refused(kvtest.Time, "the secrets of 1 API keys: "+key.ID)
	change(key, func(k *licensing.APIKey) error { return k.Rotate("new", kvtest.Time, time.Hour) })
	ends := kvtest.Time.Add(time.Hour)
	refused(kvtest.Time, "until "+ends.Format(time.RFC3339)+" the previous secrets of 1: "+key.ID)
	refused(ends.Add(retireMargin-time.Millisecond), "the previous secrets of 1")
	uses := kvtest.Must(s.MasterUses(l.ctx(), ends))(t).Uses
	if len(uses) != 2 || uses[0].ID != "new" || uses[0].Keys != 2 || uses[1].Previous != 1 ||
		!uses[1].Until.Equal(ends) {
		t.Errorf("the uses are %+v", uses)
	}
	done := ends.Add(retireMargin)
	for range 2 {
		if err := s.RetireMaster(l.ctx(), "old", done); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.RetireMaster(l.ctx(), "new", done); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("the master key in use was retired: %v", err)
	}
	for _, good := range []keyring.MasterRing{ring("new"), ring("new", "old")} {
		if err := s.CheckRing(l.ctx(), good); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	const why = `"old" was retired`
	if err := s.CheckRing(l.ctx(), ring("old", "new")); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("a ring that derives from a retired key: %v", err)
	}
	if err := s.UseMaster(l.ctx(), ring("old").Current()); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("a retired key is used: %v", err)
	}
	late := newAPIKey()
	late.MasterID = "old"
	if err := s.CreateAPIKey(l.ctx(), late); err == nil {
		t.Error("a secret was derived from a retired key")
	}
	if _, found := l.verify(verify.Config{}); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// TestRetireMasterWithUnreadableKeys: the secret of an unreadable key may be derived from any master key.
func TestRetireMasterWithUnreadableKeys(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.forgetIDKey()
	l.useMasters("old", "new")
	keys := []licensing.APIKey{newAPIKey(), newAPIKey()}
	for i := range keys {
		keys[i].MasterID = "new"
		if err := l.store.CreateAPIKey(l.ctx(), keys[i]); err != nil {
			t.Fatal(err)
		}
	}
	undo := l.plant(seed{keyspace.APIKeyKey(keys[0].Hash): bytesOf("?"), keyspace.WebhooksKey(labOwner): bytesOf("?")})
	found := kvtest.Must(l.store.MasterUses(l.ctx(), kvtest.Time))(t)
	if found.Unreadable != 2 || len(found.Uses) != 2 || found.Uses[0].Keys != 1 {
		t.Errorf("the master keys are %+v", found)
	}
	name := "k/" + verify.Opaque(string(keys[0].Hash[:]))
	err := l.store.RetireMaster(l.ctx(), "old", kvtest.Time)
	for _, want := range []string{name, "w/" + keyspace.OwnerPath(labOwner), "2 API keys or records"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("retiring says %v, want %s", err, want)
		}
	}
	undo()
	if err := l.store.RetireMaster(l.ctx(), "old", kvtest.Time); err != nil {
		t.Error(err)
	}
}

// TestRetireMasterThatSealsRoots: a master key that seals a root key for receipts can't be retired, and no root key is
// sealed under a retired master key, even if the node did not know of it.
func TestRetireMasterThatSealsRoots(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.forgetIDKey()
	l.useMasters("old", "new")
	ref := licensing.ReceiptKeysRef(labOwner)
	sealed := func(id string) licensing.SealedRoot { return licensing.SealedRoot{MasterID: id} }
	found := kvtest.Must(l.store.MasterUses(l.ctx(), kvtest.Time))(t)
	kvtest.Must(l.node.Do(l.ctx(), ref, licensing.MakeReceiptKeys{Owner: labOwner, Root: sealed("old")}))(t)
	if retired := kvtest.Must(l.store.retireMaster(l.ctx(), "old", found))(t); retired {
		t.Error("the master key was retired although a root key was sealed meanwhile")
	}
	err := l.store.RetireMaster(l.ctx(), "old", kvtest.Time)
	if err == nil || !strings.Contains(err.Error(), "the root keys for receipts of 1 accounts") {
		t.Errorf("retiring says %v", err)
	}
	for master, want := range map[string]int{"old": 0, "new": 1} {
		if owners := kvtest.Must(l.store.RootsSealedElsewhere(l.ctx(), master))(t); len(owners) != want {
			t.Errorf("not sealed under %s: %v", master, owners)
		}
	}
	kvtest.Must(l.node.Do(l.ctx(), ref, licensing.SealReceiptKeys{From: sealed("old"), To: sealed("new")}))(t)
	if err := l.store.RetireMaster(l.ctx(), "old", kvtest.Time); err != nil {
		t.Error(err)
	}
	back := licensing.SealReceiptKeys{From: sealed("new"), To: sealed("old")}
	if _, err := l.node.Do(l.ctx(), ref, back); err == nil {
		t.Error("a root key was sealed under a retired master key")
	}
	if _, found := l.verify(verify.Config{}); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// TestRetireMasterAmongRivals makes an API key between the count of uses and the retirement.
func TestRetireMasterAmongRivals(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.forgetIDKey()
	l.useMasters("old", "new")
	found := kvtest.Must(l.store.MasterUses(l.ctx(), kvtest.Time))(t)
	key := newAPIKey()
	key.MasterID = "old"
	if err := l.store.CreateAPIKey(l.ctx(), key); err != nil {
		t.Fatal(err)
	}
	if retired := kvtest.Must(l.store.retireMaster(l.ctx(), "old", found))(t); retired {
		t.Error("the master key was retired although an API key was made meanwhile")
	}
	if err := l.store.RetireMaster(l.ctx(), "old", kvtest.Time); err == nil {
		t.Error("the master key was retired although it is in use")
	}
	if only := kvtest.Must(l.store.MasterUses(l.ctx(), kvtest.Time))(t).Uses; len(only) != 2 || only[1].Retired {
		t.Errorf("the uses are %+v", only)
	}
}
