package kv

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
)

func compareOwners(a, b licensing.Owner) int {
	return cmp.Or(cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.Mode, b.Mode))
}

// eventOwners are the owners whose keys a store knows to be there.
type eventOwners struct {
	mu    sync.Mutex
	known map[licensing.Owner]struct{}
	turns map[licensing.Owner]*turn // of owners whose keys are being written
	asOf  layout.Epoch
}

// turn lets one call at a time write an owner's key. Other owners don't wait for it.
type turn struct {
	token chan struct{}
	users int // calls that have the turn or wait for it
}

func newEventOwners() *eventOwners {
	return &eventOwners{known: make(map[licensing.Owner]struct{}), turns: make(map[licensing.Owner]*turn)}
}

// enter joins the calls that take turns for an owner; leave must follow.
func (o *eventOwners) enter(owner licensing.Owner) *turn {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.turns[owner]
	if t == nil {
		t = &turn{token: make(chan struct{}, 1)}
		o.turns[owner] = t
	}
	t.users++
	return t
}

func (o *eventOwners) leave(owner licensing.Owner, t *turn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(o.turns, owner)
	}
}

func (o *eventOwners) has(owner licensing.Owner) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, is := o.known[owner]
	return is
}

// noteEpoch forgets all where an epoch is so much later than the last that the store was
// restored in between, see layout.RevisionBump: some keys may be lost.
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

// readyForEvents sees to it, before events of owners are written, that there is an
// epoch and that the owners have their keys. It asks etcd only for what is new here.
func (s *epochs) readyForEvents(ctx context.Context, told []eventWrite) error {
	if len(told) == 0 {
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
	for i := range told {
		owner := told[i].owner
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

// once repeats do, which may be done twice, until it is done. Calls for one owner take
// turns, so that the first does it for all of them.
func (s *epochs) once(ctx context.Context, owner licensing.Owner, do func() (done bool, err error)) error {
	t := s.owners.enter(owner)
	defer s.owners.leave(owner, t)
	select {
	case t.token <- struct{}{}:
		defer func() { <-t.token }()
	case <-ctx.Done():
		return ctx.Err()
	}
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

// listEventOwners reads the owners of whom there are events, or were.
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
