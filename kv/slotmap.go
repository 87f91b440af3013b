package kv

import (
	"context"
	"fmt"
	"sync/atomic"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// slotMap remembers the map from slots to cells. This build knows no other cell: a node does not start on a store from
// which slots have moved, and a running node refuses records, lists and events in slots that move away. See decision 33
// for the requests that do not ask the map.
type slotMap struct {
	*core
	moved atomic.Pointer[layout.SlotMap] // nil: all slots are here
}

// OpenSlotMap reads the map. It fails if some slots are in another cell, or if it can't read the map, which a newer
// build may have written.
func (s *slotMap) OpenSlotMap(ctx context.Context) error {
	if err := s.readSlotMap(ctx); err != nil {
		return err
	}
	if s.moved.Load() != nil {
		return fmt.Errorf("%w: some accounts of this store were moved to another etcd cluster: run a newer build of "+
			"licet", licensing.ErrUnavailable)
	}
	return nil
}

// FollowSlotMap follows the map until ctx ends.
func (s *slotMap) FollowSlotMap(ctx context.Context) {
	s.etcd.Watch(ctx, keyspace.SlotMapKey, func() {
		if err := s.readSlotMap(ctx); err != nil && ctx.Err() == nil {
			s.log.Error().Err(err).
				Msg("can't read the map of slots; this node continues with the last map that it read")
		}
	})
}

// readSlotMap reads and remembers the map.
func (s *slotMap) readSlotMap(ctx context.Context) error {
	value, err := s.etcd.Get(ctx, "slot_map", keyspace.SlotMapKey)
	if err != nil {
		return err
	}
	if value == nil {
		s.moved.Store(nil)
		return nil
	}
	read, err := layout.DecodeSlotMap(value)
	if err != nil {
		return layout.Internal(fmt.Errorf("the map of slots: %w", err))
	}
	if read.AllHere() {
		s.moved.Store(nil)
	} else {
		s.moved.Store(&read)
	}
	return nil
}

// errElsewhere refuses a request for keys in a slot that has moved to another cell.
var errElsewhere = fmt.Errorf("%w: the account was moved to another etcd cluster", licensing.ErrUnavailable)

// checkHere refuses a request for keys in a slot that is in another cell. It is no fence: a node may learn late of a
// move.
func (s *slotMap) checkHere(keys ...[]byte) error {
	moved := s.moved.Load()
	if moved == nil {
		return nil
	}
	for _, key := range keys {
		if slot, _, ok := keyspace.CutSlot(string(key)); ok && moved.CellOf(slot) != layout.Here {
			return errElsewhere
		}
	}
	return nil
}
