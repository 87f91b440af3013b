package kv

import (
	"context"

	"licet"
	"licet/node"
)

// Event finds an event by its id.
func (s *Store) Event(ctx context.Context, owner licet.Owner, id string) (*node.RecordedEvent, error) {
	at, ok := readPlace(node.Cell, id)
	if !ok || !at.behindEvent() {
		return nil, nil
	}
	state, _, err := s.feedStateOf(ctx, owner)
	if err != nil || at.epoch > state.epoch || at.epoch <= state.swept {
		return nil, err
	}
	return s.eventAt(ctx, owner, at, state)
}

// eventAt reads the event that a place is behind of.
func (s *Store) eventAt(ctx context.Context, owner licet.Owner, at place, state feedState) (*node.RecordedEvent, error) {
	e, err := s.entryAt(ctx, owner, at, state)
	if err != nil || e == nil {
		return nil, err
	}
	found := s.read(ctx, "load", &part{reads: [][]byte{[]byte(e.key(owner))}})
	if found.err != nil {
		return nil, unavailable(found.err)
	}
	kv := firstOf(found.responses, 0)
	if kv == nil {
		return nil, nil // swept meanwhile, or a block that never was
	}
	runs, err := runsOf(e, kv.Value)
	if err != nil {
		return nil, broken(err)
	}
	for i := range runs {
		if hashRecord(e.block, runs[i].record) != at.record {
			continue
		}
		stored, err := decodeEvents(owner, runs[i].record, runs[i].last, runs[i].value)
		if err != nil {
			return nil, broken(err)
		}
		for _, event := range stored.events {
			if event.Sequence == at.sequence {
				return &node.RecordedEvent{ID: at.text(node.Cell), Revision: kv.ModRevision, Rank: feedRank(runs[i].record), Owner: owner, Event: event}, nil
			}
		}
	}
	return nil, nil
}

// entryAt finds the key of the event that a place is behind of. A place in a block names
// it. Another has but a hash of the record whose id the key has, so the keys of its epoch are
// listed.
func (s *Store) entryAt(ctx context.Context, owner licet.Owner, at place, state feedState) (*dirEntry, error) {
	if in := at.record.block(); in != 0 {
		return &dirEntry{site: site{at.epoch, in}}, nil
	}
	dir := s.directories.find(owner, at.epoch)
	if dir == nil {
		var err error
		if dir, err = s.listEvents(ctx, owner, at.epoch, at.epoch+1, state.revision); err != nil {
			return nil, err
		}
		if at.epoch < state.epoch {
			s.directories.keep(dir)
		}
	}
	i, ok := dir.behind(at)
	if !ok {
		return nil, nil
	}
	return &dir.entries[i], nil
}

// feedFromOpen answers somebody who has read all, and knows an event that was not in
// the feed yet. It is looked for, so that a made-up one is refused.
func (s *Store) feedFromOpen(ctx context.Context, owner licet.Owner, after place, state feedState) (node.Feed, error) {
	recorded, err := s.eventAt(ctx, owner, after, state)
	if err != nil {
		return node.Feed{}, err
	}
	if recorded == nil {
		return node.Feed{}, node.ErrBadPosition
	}
	return node.Feed{Next: node.FeedPosition(after.text(node.Cell))}, nil
}
