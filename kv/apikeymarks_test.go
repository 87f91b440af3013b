package kv

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

// TestKeyMarksShowEveryChange plays changes of keys into the marks as etcd would store them: each change must change
// the mark of its owner's part or the mark of all keys. A change by this build changes only the mark of the part.
func TestKeyMarksShowEveryChange(t *testing.T) {
	const part, other = 3, 200
	for _, c := range []struct {
		name       string
		play       func(*markHistory)
		all, parts bool // whether the mark of all keys and the mark of the part must change
	}{
		{"nothing", func(*markHistory) {}, false, false},
		{"a change", func(h *markHistory) { h.change(part) }, false, true},
		{"more changes than there are parts", func(h *markHistory) {
			for range 1000 {
				h.change(part)
			}
		}, false, true},
		{"by an earlier build", func(h *markHistory) { h.changeEarlier() }, true, false},
		{"by an earlier build, and then by this one", func(h *markHistory) { h.changeEarlier(); h.change(part) }, true,
			true},
		{"by this build, and then by an earlier one", func(h *markHistory) { h.change(part); h.changeEarlier() }, true,
			true},
		{"a restore that lost a change", func(h *markHistory) { h.restore(1) }, false, true},
		{"a restore that lost a change, and as many after it", func(h *markHistory) { h.restore(1); h.change(part) },
			true, true},
		{"a restore that lost all", func(h *markHistory) { h.restore(3) }, true, true},
		{"a restore that hides one change by an earlier build behind another", func(h *markHistory) {
			h.restore(2)
			h.changeEarlier()
			h.change(part)
		}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &markHistory{revision: 100, bump: 1}
			h.change(other)
			h.changeEarlier()
			h.change(part)
			before := keyMarks(h.kvs())
			c.play(h)
			after := keyMarks(h.kvs())
			if got := after.All != before.All; got != c.all {
				t.Errorf("the mark of all keys has changed: %v, want %v: %q, %q", got, c.all, before.All, after.All)
			}
			if got := after.Parts[part] != before.Parts[part]; got != c.parts {
				t.Errorf("the mark of the part has changed: %v, want %v", got, c.parts)
			}
			if lostAll := after.Parts[other] == ""; !lostAll && after.Parts[other] != before.Parts[other] {
				t.Error("the mark of another part has changed")
			}
		})
	}
}

// markHistory simulates the marks as etcd stores them.
type markHistory struct {
	revision, bump int64
	puts           []markPut
	made           int
}

type markPut struct {
	revision int64
	value    string
	part     int // -1: none
}

func (h *markHistory) change(part int) {
	h.revision += h.bump
	h.bump = 1
	h.made++
	h.puts = append(h.puts, markPut{h.revision, fmt.Sprint("mark ", h.made), part})
}

// changeEarlier is a change by a build that knows of no parts.
func (h *markHistory) changeEarlier() { h.change(-1) }

// restore simulates a restore that loses the last changes.
func (h *markHistory) restore(lost int) {
	h.puts = h.puts[:len(h.puts)-lost]
	h.bump = keyspace.RevisionBump
}

func (h *markHistory) kvs() (kvs []*mvccpb.KeyValue) {
	stored := make(map[string]*mvccpb.KeyValue)
	put := func(key string, p markPut) {
		if stored[key] == nil {
			stored[key] = &mvccpb.KeyValue{Key: []byte(key)}
			kvs = append(kvs, stored[key])
		}
		kv := stored[key]
		kv.Value, kv.ModRevision, kv.Version = []byte(p.value), p.revision, kv.Version+1
	}
	for _, p := range h.puts {
		put(keyspace.APIKeysMark, p)
		if p.part >= 0 {
			put(keyspace.APIKeyPartMark(uint8(p.part)), p)
		}
	}
	return kvs
}

// TestKeyMarksInEtcd: etcd counts puts as keyMarks assumes.
func TestKeyMarksInEtcd(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	key := newAPIKey()
	one := kvtest.Must(l.store.APIKeyMarks(l.ctx()))(t)
	for i := range 3 {
		if i == 0 {
			if err := l.store.PutAPIKey(l.ctx(), key); err != nil {
				t.Fatal(err)
			}
		} else if _, err := l.store.ChangeAPIKey(l.ctx(), key.Owner, key.ID, func(k *licensing.APIKey) error {
			return k.Rotate("m1", kvtest.Time.Add(time.Duration(i)), 0)
		}); err != nil {
			t.Fatal(err)
		}
		next := kvtest.Must(l.store.APIKeyMarks(l.ctx()))(t)
		if i > 0 && next.All != one.All {
			t.Errorf("change %d changed the mark of all keys: %q, %q", i, one.All, next.All)
		}
		for part := range next.Parts {
			if got := next.Parts[part] != one.Parts[part]; got != (part == int(store.KeyPart(key.Owner))) {
				t.Errorf("change %d changed the mark of part %d: %v", i, part, got)
			}
		}
		one = next
	}
	if _, err := l.store.etcd.KV.Put(l.ctx(), keyspace.APIKeysMark, "of an earlier build"); err != nil {
		t.Fatal(err)
	}
	if next := kvtest.Must(l.store.APIKeyMarks(l.ctx()))(t); next.All == one.All {
		t.Error("a change by an earlier build changed no mark")
	}
}

// TestKeysWaitForNoOtherKey changes an API key while the change of another key is in progress.
func TestKeysWaitForNoOtherKey(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	slow, quick := newAPIKey(), newAPIKey()
	for _, key := range []licensing.APIKey{slow, quick} {
		if err := l.store.PutAPIKey(l.ctx(), key); err != nil {
			t.Fatal(err)
		}
	}
	began, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := l.store.ChangeAPIKey(l.ctx(), slow.Owner, slow.ID, func(k *licensing.APIKey) error {
			close(began)
			<-goOn
			k.Revoke(kvtest.Time)
			return nil
		})
		ended <- err
	}()
	<-began
	revoke := func(ctx context.Context, key licensing.APIKey) error {
		_, err := l.store.ChangeAPIKey(ctx, key.Owner, key.ID, func(k *licensing.APIKey) error {
			k.Revoke(kvtest.Time)
			return nil
		})
		return err
	}
	ctx, cancel := context.WithTimeout(l.ctx(), time.Minute)
	defer cancel()
	if err := revoke(ctx, quick); err != nil {
		t.Errorf("another key can't be changed meanwhile: %v", err)
	}
	// The same key waits for its turn.
	ctx, cancel = context.WithCancel(l.ctx())
	cancel()
	if err := revoke(ctx, slow); err == nil {
		t.Error("two changes of one key ran at once")
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !l.store.keyLocks.TryEnter(keyName{slow.Owner, slow.ID}) {
		t.Error("a change of a key that has ended keeps its turn")
	}
}
