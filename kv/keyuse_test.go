package kv

import (
	"testing"
	"time"

	"licet/node"
)

// TestKeyUsesLeaveTheMark notes uses of many keys: the mark that makes every
// node read its keys anew stays, and so do the keys.
func TestKeyUsesLeaveTheMark(t *testing.T) {
	l := newLab(t)
	var uses []node.KeyUse
	for range 2*keysAtOnce + 1 {
		key := newAPIKey()
		if err := l.store.PutAPIKey(l.ctx(), key); err != nil {
			t.Fatal(err)
		}
		uses = append(uses, node.KeyUse{Hash: key.Hash, At: testTime})
	}
	mark := must(l.store.APIKeyMarks(l.ctx()))(t)
	stored := l.value(apiKeyKey(uses[0].Hash))
	for i := range 2 {
		for j := range uses {
			uses[j].At = testTime.Add(time.Duration(i) * node.KeyUseStep)
		}
		if err := l.store.NoteKeysUsed(l.ctx(), uses); err != nil {
			t.Fatal(err)
		}
	}
	if after := must(l.store.APIKeyMarks(l.ctx()))(t); after != mark {
		t.Error("a note of a use changed the mark")
	}
	if string(l.value(apiKeyKey(uses[0].Hash))) != string(stored) {
		t.Error("a note of a use changed the key")
	}
	for _, use := range uses {
		if at, err := decodeKeyUse(l.value(keyUseKey(use.Hash))); err != nil || !at.Equal(testTime.Add(node.KeyUseStep)) {
			t.Fatalf("it was used at %v, %v", at, err)
		}
	}
	list := must(l.store.ListAPIKeys(l.ctx(), newAPIKey().Owner, node.Page{Limit: node.MaxListPage}))(t)
	if len(list.Items) != node.MaxListPage || list.Next == "" || list.Items[node.MaxListPage-1].LastUsedAt.IsZero() {
		t.Errorf("%d keys are listed", len(list.Items))
	}
}
