package kv

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/fair"
	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
)

func compareOwners(a, b licensing.Owner) int {
	return cmp.Or(cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.Mode, b.Mode))
}

// eventOwners holds the owners whose keys are known to exist.
type eventOwners struct {
	turns *fair.Places[licensing.Owner] // to write an owner's key

	mu    sync.Mutex
	known map[licensing.Owner]struct{}
	asOf  layout.Epoch
}

func newEventOwners() *eventOwners {
	return &eventOwners{known: make(map[licensing.Owner]struct{}), turns: fair.NewTurns[licensing.Owner]()}
}

func (o *eventOwners) has(owner licensing.Owner) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, is := o.known[owner]
	return is
}

// noteEpoch forgets all owners if an epoch is so much later than the last epoch that the store was restored in between,
// see layout.RevisionBump: some keys may be lost.
func (o *eventOwners) noteEpoch(e layout.Epoch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asOf != 0 && e > o.asOf && e.RestoredSince(o.asOf) { // calls may come out of order
		clear(o.known)
	}
	o.asOf = e
}

func (o *eventOwners) note(owners ...licensing.Owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, owner := range owners {
		o.known[owner] = struct{}{}
	}
}

func (o *eventOwners) all() []licensing.Owner {
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
		// A command that writes a record or two has not called OpenEpoch. The zero owner
		// stands for the epoch.
		err := s.once(ctx, licensing.Owner{}, func() (bool, error) {
			if known := s.fences.known(); known != 0 {
				return true, nil
			}
			return false, s.seal(ctx, 0)
		})
		if err != nil {
			return fmt.Errorf("begin the first epoch: %w", err)
		}
	}
	known := s.fences.known()
	s.owners.noteEpoch(known)
	for i := range writes {
		owner := writes[i].owner
		if s.owners.has(owner) {
			continue
		}
		err := s.once(ctx, owner, func() (bool, error) {
			if s.owners.has(owner) {
				return true, nil
			}
			return false, s.putOwners(ctx, []licensing.Owner{owner})
		})
		if err != nil {
			return fmt.Errorf("register an owner of events: %w", err)
		}
	}
	return nil
}

// once calls do until do reports that the work is done. do may run more than once. Calls for one owner take turns, so
// that the first call does the work for all of them.
func (s *epochs) once(ctx context.Context, owner licensing.Owner, do func() (done bool, err error)) error {
	if err := s.owners.turns.Enter(ctx, owner); err != nil {
		return err
	}
	defer s.owners.turns.Leave(owner)
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
		etcd.PauseBeforeReissue(ctx, attempt)
	}
}

// putOwners writes keys of owners, some at a time.
func (s *epochs) putOwners(ctx context.Context, owners []licensing.Owner) error {
	for some := range slices.Chunk(owners, etcd.MaxOps) {
		puts := make([]clientv3.Op, len(some))
		for i, owner := range some {
			puts[i] = clientv3.OpPut(layout.EventOwnerKey(owner), "")
		}
		if _, err := s.etcd.Txn(ctx, "register_owner", nil, puts, nil); err != nil {
			return err
		}
		s.owners.note(some...)
	}
	return nil
}

// listEventOwners reads the owners that have events, or had some.
func (s *epochs) listEventOwners(ctx context.Context) ([]licensing.Owner, error) {
	response, err := s.etcd.Page(ctx, "list_owners", layout.EventOwnersPrefix,
		clientv3.GetPrefixRangeEnd(layout.EventOwnersPrefix), 0, 0, clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	owners := make([]licensing.Owner, 0, len(response.Kvs))
	for _, kv := range response.Kvs {
		// A key that is not in the form of an owner's is left to verify.
		if owner, rest, ok := layout.CutOwner(string(kv.Key[len(layout.EventOwnersPrefix):])); ok && rest == "" {
			owners = append(owners, owner)
		}
	}
	s.owners.note(owners...)
	return owners, nil
}
