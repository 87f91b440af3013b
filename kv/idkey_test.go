package kv

import (
	"crypto/rand"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/verify"
	"licet/licensing/keyring"
)

// masterKeys makes master keys with these ids, and returns a function that makes rings of them.
func masterKeys(t *testing.T, ids ...string) func(ids ...string) keyring.MasterRing {
	t.Helper()
	lines := map[string]string{}
	for i, id := range ids {
		lines[id] = kvtest.Must(keyring.NewMasterKey(id, [keyring.MasterKeySize]byte{byte(i)}))(t).Line() + "\n"
	}
	return func(ids ...string) keyring.MasterRing {
		var text string
		for _, id := range ids {
			text += lines[id]
		}
		return kvtest.Must(keyring.ParseMasterRing(text))(t)
	}
}

// useMasters puts master keys with these ids into use, and returns a function that makes rings of them.
func (l *lab) useMasters(ids ...string) func(ids ...string) keyring.MasterRing {
	l.t.Helper()
	ring := masterKeys(l.t, ids...)
	for _, id := range ids {
		if err := l.store.UseMaster(l.ctx(), ring(id).Current()); err != nil {
			l.t.Fatal(err)
		}
	}
	return ring
}

// forgetIDKey removes the id key from the store, and the master key under which the lab has sealed it.
func (l *lab) forgetIDKey() {
	l.t.Helper()
	for _, key := range []string{keyspace.IDKeyKey, keyspace.MasterKeyKey("m1")} {
		kvtest.Must(l.client.Delete(l.ctx(), key))(l.t)
	}
}

// replaceMaster makes an id key under a master key with the id old, seals it anew under one with the id new, and
// returns a function that makes rings of both.
func (l *lab) replaceMaster() func(ids ...string) keyring.MasterRing {
	l.t.Helper()
	l.forgetIDKey()
	ring := masterKeys(l.t, "old", "new")
	kvtest.Must(l.store.IDKey(l.ctx(), ring("old"), rand.Reader))(l.t)
	kvtest.Must(l.store.IDKey(l.ctx(), ring("new", "old"), rand.Reader))(l.t)
	return ring
}

// TestIDKeyIsMadeOnce: many nodes start on a new store at once, and make one id key.
func TestIDKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.forgetIDKey()
	ring := masterKeys(t, "m")("m")
	keys := make([]keyring.IDKey, 16)
	var nodes sync.WaitGroup
	for i := range keys {
		nodes.Go(func() {
			var err error
			if keys[i], err = l.store.IDKey(l.ctx(), ring, rand.Reader); err != nil {
				t.Error(err)
			}
		})
	}
	nodes.Wait()
	for _, key := range keys {
		if key != keys[0] || key == (keyring.IDKey{}) {
			t.Fatal("two nodes have two id keys")
		}
	}
	if _, found := l.verify(verify.Config{}); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// TestIDKeyIsSealedAnew: nodes that start while the master keys are replaced seal the id key under the current master
// key.
func TestIDKeyIsSealedAnew(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.forgetIDKey()
	ring := masterKeys(t, "old", "new")
	open := func(ids ...string) (keyring.IDKey, error) { return l.store.IDKey(l.ctx(), ring(ids...), rand.Reader) }
	key := kvtest.Must(open("old"))(t)
	retire := func(why string) {
		t.Helper()
		err := l.store.RetireMaster(l.ctx(), "old", kvtest.Time)
		if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("retiring the old master key: %v, want %q", err, why)
		}
	}
	if again := kvtest.Must(open("old", "new"))(t); again != key {
		t.Error("another id key")
	}
	retire("it seals the id key of the store")
	if uses := kvtest.Must(l.store.MasterUses(l.ctx(), kvtest.Time))(t).Uses; len(uses) != 1 || !uses[0].IDKey {
		t.Errorf("the uses are %+v", uses)
	}
	if _, err := open("new"); err == nil || !strings.Contains(err.Error(), `"old", and the master key ring lacks it`) {
		t.Errorf("a ring without the old master key: %v", err)
	}
	imposter := masterKeys(t, "x", "old")("old")
	if _, err := l.store.IDKey(l.ctx(), imposter, rand.Reader); err == nil ||
		!strings.Contains(err.Error(), `another master key "old"`) {
		t.Errorf("another master key of the same id: %v", err)
	}

	if again := kvtest.Must(open("new", "old"))(t); again != key {
		t.Error("another id key after it was sealed anew")
	}
	sealed := kvtest.Must(l.client.Get(l.ctx(), keyspace.IDKeyKey))(t).Kvs[0]
	if again := kvtest.Must(open("new"))(t); again != key {
		t.Error("another id key without the old master key")
	}
	if now := kvtest.Must(l.client.Get(l.ctx(), keyspace.IDKeyKey))(t).Kvs[0]; now.ModRevision != sealed.ModRevision {
		t.Error("the id key was sealed again without need")
	}
	retire("")
	if _, found := l.verify(verify.Config{}); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// TestRetireMasterAgainstASeal seals the id key under a master key between the scan and the retirement.
func TestRetireMasterAgainstASeal(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.forgetIDKey()
	ring := l.replaceMaster()
	found := kvtest.Must(l.store.MasterUses(l.ctx(), kvtest.Time))(t)
	kvtest.Must(l.store.IDKey(l.ctx(), ring("old", "new"), rand.Reader))(t) // a node that has not heard of the new key
	if retired := kvtest.Must(l.store.retireMaster(l.ctx(), "old", found))(t); retired {
		t.Error("the master key was retired although it seals the id key by now")
	}
}

// TestUnreadableIDKey: a store with a damaged id key makes no other, and retires no master key.
func TestUnreadableIDKey(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.forgetIDKey()
	ring := l.replaceMaster()
	undo := l.plant(seed{keyspace.IDKeyKey: bytesOf("?")})
	if _, err := l.store.IDKey(l.ctx(), ring("new"), rand.Reader); err == nil {
		t.Error("a damaged id key was opened")
	}
	if err := l.store.RetireMaster(l.ctx(), "old", kvtest.Time); err == nil ||
		!strings.Contains(err.Error(), idKeyName) {
		t.Errorf("retired: %v", err)
	}
	undo()
	kvtest.Must(l.store.IDKey(l.ctx(), ring("new"), rand.Reader))(t)
}

// TestIDKeyOfAFullStore: a node starts with its ring although the store has no room for a new seal.
func TestIDKeyOfAFullStore(t *testing.T) {
	t.Parallel()
	l := newSpaceLab(t)
	for _, made := range []string{keyspace.IDKeyKey, keyspace.MasterKeyKey("m1")} {
		kvtest.Must(l.store.etcd.Native.Delete(l.ctx(), made))(t)
	}
	ring := masterKeys(t, "old", "new")
	key := kvtest.Must(l.store.IDKey(l.ctx(), ring("old"), rand.Reader))(t)
	l.fill()
	if again := kvtest.Must(l.store.IDKey(l.ctx(), ring("new", "old"), rand.Reader))(t); again != key {
		t.Error("another id key")
	}
	l.makeRoom()
	kvtest.Await(t, func() bool {
		return kvtest.Must(l.store.IDKey(l.ctx(), ring("new", "old"), rand.Reader))(t) == key &&
			len(kvtest.Must(l.etcd.Get(l.ctx(), keyspace.MasterKeyKey("new"), clientv3.WithKeysOnly()))(t).Kvs) == 1
	})
}
