package kv

import (
	"errors"
	"testing"

	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// TestMovedSlots: a node that runs refuses requests for records in slots that move away, as soon as the map says so,
// and serves them again once they are back. No node starts on a store from which slots have moved.
func TestMovedSlots(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.fill()
	go l.store.FollowSlotMap(l.ctx())
	own, slot := licensing.LicenseRef(s.own), licensing.SlotOf(labOwner)
	listener := licensing.WebhooksRef(labListener)
	write := func(m layout.SlotMap) {
		t.Helper()
		kvtest.Must(l.client.Put(l.ctx(), layout.SlotMapKey, string(m.Encode())))(t)
	}
	refused := func() bool {
		_, err := l.store.Load(l.ctx(), store.Want{Ref: own})
		return errors.Is(err, errElsewhere) && errors.Is(err, licensing.ErrUnavailable)
	}
	if err := l.store.OpenSlotMap(l.ctx()); err != nil || refused() {
		t.Fatalf("a new store: %v", err)
	}
	snapshots := kvtest.Must(l.store.Load(l.ctx(), store.Want{Ref: own}))(t)

	write(layout.SlotMap{}.Move(slot, slot, "other"))
	kvtest.Await(t, refused)
	if _, err := l.store.Commit(l.ctx(), store.Change{Writes: []store.Write{{Ref: own, Token: snapshots[0].Token,
		Record: snapshots[0].Record}}}); !errors.Is(err, errElsewhere) {
		t.Errorf("a change of a record that has moved: %v", err)
	}
	if _, err := l.store.Load(l.ctx(), store.Want{Ref: listener}); err != nil {
		t.Errorf("a record that has not moved: %v", err)
	}
	if err := l.store.OpenSlotMap(l.ctx()); !errors.Is(err, licensing.ErrUnavailable) {
		t.Errorf("a start: %v", err)
	}
	kvtest.Must(l.client.Put(l.ctx(), layout.SlotMapKey, "?"))(t)
	if err := l.store.OpenSlotMap(l.ctx()); !errors.Is(err, licensing.ErrInternal) || !refused() {
		t.Errorf("a map that can't be read: %v", err)
	}
	write(layout.SlotMap{})
	kvtest.Await(t, func() bool { return !refused() })
}
