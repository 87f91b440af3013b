package history

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"licet/licensing"
	"licet/node/store"
)

// eventBugs lists mistakes with events.
func eventBugs() []bug {
	misrecord := func(mistake func(store.Change) store.Change) func(*run, store.Store) store.Store {
		return func(_ *run, s store.Store) store.Store { return miswriting{s, mistake} }
	}
	return []bug{
		{name: "events are dropped where a change is made anew", store: func(_ *run, s store.Store) store.Store {
			return &tiring{Store: s, lost: map[licensing.Ref]bool{}}
		}},
		{name: "now and then an event is recorded twice", listening: listensAlways, store: misrecord(recordAgain)},
		{name: "a notice is recorded twice", of: plan.endsInDays,
			store: func(_ *run, s store.Store) store.Store { return reminding{s} }},
		{name: "an event's number is not stored, now and then", store: misrecord(forgetNumber)},
		{name: "an event is recorded in a transaction of its own",
			store: func(_ *run, s store.Store) store.Store { return apart{s} }},
		{name: "a warning is recorded twice", warned: true, store: func(_ *run, s store.Store) store.Store {
			return miswarning{s, 1, func(e licensing.Event) []licensing.Event {
				again := e
				again.Sequence++
				return []licensing.Event{e, again}
			}}
		}},
		{name: "a warning is dropped", warned: true, store: func(_ *run, s store.Store) store.Store {
			return miswarning{s, ^uint64(0), func(licensing.Event) []licensing.Event { return nil }}
		}},
		{name: "the time of a warning is forgotten", warned: true,
			store: func(_ *run, s store.Store) store.Store { return unwarned{s} }},
		{name: "the epoch is not compared", txn: withoutCompare("lc2/cell/epoch")},
		{name: "who listens is not compared", listening: listensLater, txn: withoutCompare("lc2/cell/listen")},
	}
}

// miswriting makes a mistake in one of ten changes that record events.
type miswriting struct {
	store.Store
	mistake func(store.Change) store.Change
}

func (s miswriting) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if r := &change.Writes[0].Record; r.License != nil && r.License.Sequence > 1 && len(r.Events) > 0 &&
		rand.IntN(10) == 0 {
		change = s.mistake(change)
	}
	return s.Store.Commit(ctx, change)
}

// renumbered is a change with a license of another number.
func renumbered(change store.Change, by uint64) store.Change {
	change.Writes = slices.Clone(change.Writes)
	r := &change.Writes[0].Record
	l := *r.License
	l.Sequence += by
	r.License = &l
	return change
}

func recordAgain(change store.Change) store.Change {
	change = renumbered(change, 1)
	r := &change.Writes[0].Record
	e := r.Events[len(r.Events)-1]
	e.Sequence, e.License = r.License.Sequence, r.License
	r.Events = append(slices.Clone(r.Events), e)
	return change
}

func forgetNumber(change store.Change) store.Change { return renumbered(change, ^uint64(0)) }

// tiring drops the events of a change of a license that lost a swap before.
type tiring struct {
	store.Store
	mu   sync.Mutex
	lost map[licensing.Ref]bool
}

func (s *tiring) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	ref := change.Writes[0].Ref
	s.mu.Lock()
	tired := s.lost[ref]
	s.mu.Unlock()
	r := &change.Writes[0].Record // a license that is deleted has an event in any case
	if events := len(r.Events); tired && events > 0 && r.License != nil && !r.Removed {
		change = renumbered(change, -uint64(events))
		change.Writes[0].Record.Events = nil
	}
	outcome, err := s.Store.Commit(ctx, change)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost[ref] = err == nil && !outcome.Landed
	return outcome, err
}

// apart stores a change of a license, and its events in a second change.
type apart struct{ store.Store }

func (s apart) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	r := change.Writes[0].Record
	events := r.Events
	if len(change.Writes) > 1 || change.Writes[0].Token == nil || r.License == nil || len(events) == 0 {
		return s.Store.Commit(ctx, change)
	}
	first := renumbered(change, -uint64(len(events)))
	first.Writes[0].Record.Events = nil
	outcome, err := s.Store.Commit(ctx, first)
	if err != nil || !outcome.Landed {
		return outcome, err
	}
	now, failed := s.Load(ctx, store.Want{Ref: change.Writes[0].Ref})
	if failed == nil && now[0].Record.License != nil {
		l := now[0].Record
		l.Changed = true
		for _, e := range events {
			l.License.Sequence++
			as := *l.License
			e.Sequence, e.License = as.Sequence, &as
			l.Events = append(l.Events, e)
		}
		_, _ = s.Store.Commit(ctx,
			store.Change{Writes: []store.Write{{Ref: change.Writes[0].Ref, Token: now[0].Token, Record: l}}})
	}
	return outcome, nil
}

// miswarning records other events in place of a warning, and adds to the number of events that the record has.
type miswarning struct {
	store.Store
	by     uint64
	events func(licensing.Event) []licensing.Event
}

func (s miswarning) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if r := change.Writes[0].Record; r.Usage != nil && len(r.Events) > 0 {
		change.Writes = slices.Clone(change.Writes)
		usage := *r.Usage
		usage.Sequence += s.by
		r.Usage, r.Events = &usage, s.events(r.Events[0])
		change.Writes[0].Record = r
	}
	return s.Store.Commit(ctx, change)
}

// unwarned loads usage records without the time of the latest warning.
type unwarned struct{ store.Store }

func (s unwarned) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	snapshots, err := s.Store.Load(ctx, wants...)
	for _, snapshot := range snapshots {
		if u := snapshot.Record.Usage; u != nil {
			u.WarnedAt = time.Time{}
		}
	}
	return snapshots, err
}

// withoutCompare leaves a key out of what is compared.
func withoutCompare(key string) func(context.Context, *pb.TxnRequest, grpc.UnaryHandler) (any, error) {
	return func(ctx context.Context, txn *pb.TxnRequest, handler grpc.UnaryHandler) (any, error) {
		txn = proto.CloneOf(txn)
		txn.Compare = slices.DeleteFunc(txn.Compare, func(c *pb.Compare) bool { return string(c.Key) == key })
		return handler(ctx, txn)
	}
}
