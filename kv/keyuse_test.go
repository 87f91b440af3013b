package kv

import (
	"testing"
	"time"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/node/store"
)

// TestKeyUsesLeaveTheMark notes uses of many keys: this changes neither the keys nor the marks that make every node
// read its keys again.
func TestKeyUsesLeaveTheMark(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var uses []store.KeyUse
	for range 2*keysAtOnce + 1 {
		key := newAPIKey()
		if err := l.store.PutAPIKey(l.ctx(), key); err != nil {
			t.Fatal(err)
		}
		uses = append(uses, store.KeyUse{Hash: key.Hash, At: kvtest.Time})
	}
	mark := kvtest.Must(l.store.APIKeyMarks(l.ctx()))(t)
	stored := l.value(keyspace.APIKeyKey(uses[0].Hash))
	for i := range 2 {
		for j := range uses {
			uses[j].At = kvtest.Time.Add(time.Duration(i) * store.KeyUseStep)
		}
		if err := l.store.NoteKeysUsed(l.ctx(), uses); err != nil {
			t.Fatal(err)
		}
	}
	if after := kvtest.Must(l.store.APIKeyMarks(l.ctx()))(t); after != mark {
		t.Error("noting a use changed a mark")
	}
	if string(l.value(keyspace.APIKeyKey(uses[0].Hash))) != string(stored) {
		t.Error("noting a use changed the key")
	}
	for _, use := range uses {
		if at, err := layout.DecodeKeyUse(l.value(keyspace.KeyUseKey(use.Hash))); err != nil ||
			!at.Equal(kvtest.Time.Add(store.KeyUseStep)) {
			t.Fatalf("the key was used at %v, %v", at, err)
		}
	}
	list := kvtest.Must(l.store.ListAPIKeys(l.ctx(), newAPIKey().Owner, store.Page{Limit: store.MaxListPage}))(t)
	if len(list.Items) != store.MaxListPage || list.Next == "" || list.Items[store.MaxListPage-1].LastUsedAt.IsZero() {
		t.Errorf("%d keys are listed", len(list.Items))
	}
}
