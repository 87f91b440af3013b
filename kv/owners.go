package kv

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/fair"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

func compareOwners(a, b licensing.Owner) int {
	return cmp.Or(cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.Mode, b.Mode))
}

// knownOwners contains the owners whose keys, and whose slots' keys, are known to exist.
type knownOwners struct {
	locks *fair.Places[licensing.Owner] // to write an owner's key

	mu    sync.Mutex
	known map[licensing.Owner]struct{}
	asOf  keyspace.Epoch // the latest revision of the store at which they were known
}

func newKnownOwners() *knownOwners {
	return &knownOwners{known: make(map[licensing.Owner]struct{}), locks: fair.NewLocks[licensing.Owner]()}
}

func (o *knownOwners) has(owner licensing.Owner) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, is := o.known[owner]
	return is
}

// lostBy reports whether keys of known owners may be lost at a revision: the revision is so much later than asOf that
// the store was restored in between, see keyspace.RevisionBump.
func (o *knownOwners) lostBy(revision keyspace.Epoch) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asOf != 0 && revision > o.asOf && revision.RestoredSince(o.asOf)
}

// keptAt notes that the keys of all known owners exist at a revision.
func (o *knownOwners) keptAt(revision keyspace.Epoch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asOf = max(o.asOf, revision)
}

func (o *knownOwners) note(owners ...licensing.Owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, owner := range owners {
		o.known[owner] = struct{}{}
	}
}

func (o *knownOwners) all() []licensing.Owner {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.known))
}

// readyForEvents makes sure, before events of owners are written, that there is an epoch and that each owner has its
// key. It asks etcd only about owners that are new here.
func (s *epochs) readyForEvents(ctx context.Context, writes []eventWrite) error {
	if len(writes) == 0 {
		return nil
	}
	if known := s.fences.known(); known == 0 {
		// A command that writes a record or two has not called OpenEpoch. The zero owner's lock is for the first epoch.
		err := s.once(ctx, licensing.Owner{}, func() (bool, error) {
			if known := s.fences.known(); known != 0 {
				return true, nil
			}
			return false, s.closeEpoch(ctx, 0)
		})
		if err != nil {
			return fmt.Errorf("begin the first epoch: %w", err)
		}
	}
	for i := range writes {
		if err := s.registerOwner(ctx, writes[i].owner); err != nil {
			return err
		}
	}
	return nil
}

// registerOwner makes sure, before the first record of an owner is written, that the owner and the owner's slot have
// their keys. It asks etcd only about an owner that is new here.
func (s *epochs) registerOwner(ctx context.Context, owner licensing.Owner) error {
	if err := s.keepOwners(ctx, s.fences.known()); err != nil {
		return err
	}
	if s.owners.has(owner) {
		return nil
	}
	err := s.once(ctx, owner, func() (bool, error) {
		if s.owners.has(owner) {
			return true, nil
		}
		return false, s.putOwners(ctx, []licensing.Owner{owner})
	})
	if err != nil {
		return fmt.Errorf("register an owner: %w", err)
	}
	return nil
}

// keepOwners writes the keys of all known owners again if a revision shows that the store was restored. Until a node
// has seen such a revision, the node may write records of an owner whose key is lost. A node reads a revision several
// times a second: see readOpenEpoch.
func (s *epochs) keepOwners(ctx context.Context, revision keyspace.Epoch) error {
	if s.owners.lostBy(revision) {
		return s.putOwnersAgain(ctx, revision)
	}
	s.owners.keptAt(revision)
	return nil
}

// putOwnersAgain writes the keys of all known owners into a store that was restored.
func (s *epochs) putOwnersAgain(ctx context.Context, revision keyspace.Epoch) error {
	if err := s.putOwners(ctx, s.owners.all()); err != nil {
		return fmt.Errorf("register owners again: %w", err)
	}
	s.owners.keptAt(revision)
	return nil
}

// once calls do until do reports that the work is done. do may run more than once. Calls for one owner take turns, so
// that the first call does the work for all of them.
func (s *epochs) once(ctx context.Context, owner licensing.Owner, do func() (done bool, err error)) error {
	if err := s.owners.locks.Enter(ctx, owner); err != nil {
		return err
	}
	defer s.owners.locks.Leave(owner)
	for attempt := 0; ; attempt++ {
		done, err := do()
		if done {
			return nil
		}
		if err == nil {
			continue
		}
		if etcd.Classify(err) != etcd.Unknown || ctx.Err() != nil {
			return err
		}
		etcd.PauseBeforeResend(ctx, attempt)
	}
}

// putOwners writes keys of owners, some at a time.
func (s *epochs) putOwners(ctx context.Context, owners []licensing.Owner) error {
	for some := range slices.Chunk(owners, etcd.MaxOps/2) {
		var puts []clientv3.Op
		slots := make(map[licensing.Slot]bool)
		for _, owner := range some {
			puts = append(puts, clientv3.OpPut(keyspace.OwnerKey(owner), ""))
			if slot := licensing.SlotOf(owner); !slots[slot] { // etcd refuses to put a key twice
				slots[slot] = true
				puts = append(puts, clientv3.OpPut(keyspace.SlotKey(slot), ""))
			}
		}
		if _, err := s.etcd.Txn(ctx, "register_owner", nil, puts, nil); err != nil {
			return err
		}
		s.owners.note(some...)
	}
	return nil
}

// ownersPage is how many owners are read at a time.
const ownersPage = 10_000

// listOwners reads the owners that have records, or had some.
func (s *epochs) listOwners(ctx context.Context) ([]licensing.Owner, error) {
	var owners []licensing.Owner
	err := s.etcd.EachInSlots(ctx, "list_owners", etcd.Family(keyspace.OwnersFamily), ownersPage, 0,
		func(kv *mvccpb.KeyValue) {
			// A key that does not name an owner is left to verify.
			if owner, ok := keyspace.OwnerIn(kv.Key, keyspace.OwnersFamily); ok {
				owners = append(owners, owner)
			}
		}, clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	s.owners.note(owners...)
	return owners, nil
}

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

// FollowSlotMap follows the map until ctx ends. While etcd is away, it tries again: no watch tells of the map as it was
// when a read failed.
func (s *slotMap) FollowSlotMap(ctx context.Context) {
	s.etcd.Watch(ctx, keyspace.SlotMapKey, func() {
		err := s.readSlotMap(ctx)
		for try := 0; licensing.NotExecuted(err) && ctx.Err() == nil; try++ {
			etcd.PauseBeforeResend(ctx, try)
			err = s.readSlotMap(ctx)
		}
		if err != nil && ctx.Err() == nil {
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
