package kv

import (
	"context"
	"time"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// Event finds an event by its id.
func (s *feeds) Event(ctx context.Context, owner licensing.Owner, id string) (*store.RecordedEvent, error) {
	at, ok := keyspace.ReadFeedPlace(licensing.SlotOf(owner), id)
	if !ok || !at.BehindEvent() {
		return nil, nil
	}
	state, _, err := s.feedStateOf(ctx, owner)
	if err != nil || at.Epoch > state.epoch || at.Epoch <= state.trimmedEpoch {
		return nil, err
	}
	return s.eventAt(ctx, owner, at, state)
}

// eventAt reads the event directly before a place.
func (s *feeds) eventAt(
	ctx context.Context, owner licensing.Owner, at keyspace.FeedPlace, state feedState,
) (*store.RecordedEvent, error) {
	e, err := s.entryAt(ctx, owner, at, state)
	if err != nil || e == nil {
		return nil, err
	}
	found := s.read(ctx, "load", &batchItem{reads: [][]byte{[]byte(e.Key(owner))}})
	if found.err != nil {
		return nil, etcd.Unavailable(found.err)
	}
	kv := etcd.First(found.responses, 0)
	if kv == nil {
		return nil, nil // swept meanwhile, or the block never existed
	}
	event, rank := s.eventIn(owner, at, e, kv.Value)
	if event == nil {
		return nil, nil
	}
	return &store.RecordedEvent{ID: at.Text(licensing.SlotOf(owner)), Revision: kv.ModRevision, Rank: rank,
		Owner: owner, Event: *event}, nil
}

// eventIn finds, among the events of a key, the event directly before a place, or a placeholder for the event; nil if
// there is none.
func (s *feeds) eventIn(
	owner licensing.Owner, at keyspace.FeedPlace, e *keyspace.EventsKey, value []byte,
) (event *licensing.Event, rank string) {
	runs, bad := layout.DecodeRuns(e, value)
	s.noteUnreadable(owner, e, bad)
	for i := range runs {
		run := &runs[i]
		if run.Bad == nil && run.Hash(e.Block) == at.Record {
			stored, bad := layout.DecodeEvents(owner, run.Record, run.Last, run.Value)
			s.noteUnreadableRun(owner, e, run, bad)
			return stored.At(at.Sequence, run.Last), keyspace.FeedRank(run.Record)
		}
	}
	placeholder := layout.PlaceholderFor(0, time.Time{})
	switch {
	case e.Block == 0:
		return nil, ""
	case at.Record == keyspace.HashBlock(e.Block):
		// This node can't read the run, or another node could not read it.
		if at.Sequence > runs[len(runs)-1].Number {
			return nil, ""
		}
	case bad != nil:
		// Another node, which can read more of the block than this one, may have returned the event.
		placeholder.Sequence = at.Sequence
	default:
		return nil, ""
	}
	return &placeholder, keyspace.FeedRank("")
}

// entryAt finds the key of the event directly before a place. A place in a block names the key. Any other place has
// only a hash of the record, and the key has the record's id, so entryAt lists the keys of the epoch.
func (s *feeds) entryAt(
	ctx context.Context, owner licensing.Owner, at keyspace.FeedPlace, state feedState,
) (*keyspace.EventsKey, error) {
	if in := at.Record.Block(); in != 0 {
		return &keyspace.EventsKey{Location: keyspace.Location{Epoch: at.Epoch, Block: in}}, nil
	}
	dir := s.directories.find(owner, at.Epoch)
	if dir == nil {
		var err error
		if dir, err = s.listEvents(ctx, owner, at.Epoch, at.Epoch+1, state.revision); err != nil {
			return nil, err
		}
		if at.Epoch < state.epoch {
			s.directories.keep(dir)
		}
	}
	i, ok := dir.behind(at)
	if !ok {
		return nil, nil
	}
	return &dir.entries[i], nil
}

// feedFromOpen answers a caller that has read all of the feed and names an event that is not in the feed yet.
// feedFromOpen looks the event up, so that it can refuse a made-up id.
func (s *feeds) feedFromOpen(
	ctx context.Context, owner licensing.Owner, after keyspace.FeedPlace, state feedState,
) (store.Feed, error) {
	recorded, err := s.eventAt(ctx, owner, after, state)
	if err != nil {
		return store.Feed{}, err
	}
	if recorded == nil {
		return store.Feed{}, store.ErrBadPosition
	}
	return store.Feed{Next: store.FeedPosition(after.Text(licensing.SlotOf(owner)))}, nil
}
