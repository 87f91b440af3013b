package kv

import (
	"context"
	"errors"

	"licet"
	"licet/node"
)

// Event finds an event by its id.
func (s *Store) Event(ctx context.Context, owner licet.Owner, id string) (*node.RecordedEvent, error) {
	at, ok := readPlace(node.Cell, id)
	if !ok || !at.behindEvent() {
		return nil, nil
	}
	state, err := s.feedState(ctx)
	if err != nil || at.epoch > state.epoch || at.epoch <= state.swept {
		return nil, err
	}
	return s.eventAt(ctx, owner, at, state)
}

// eventAt reads the event that a place is behind of. Its key has the record's own id, of
// which the place has a hash alone, so the keys of its epoch are listed to find it.
func (s *Store) eventAt(ctx context.Context, owner licet.Owner, at place, state feedState) (*node.RecordedEvent, error) {
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
	r := &feedReading{owner: owner, page: node.FeedPage{Limit: 1}}
	r.after = place{epoch: at.epoch, record: at.record, sequence: at.sequence - 1}
	_, err := s.readEntries(ctx, r, dir.entries[i:i+1])
	if errors.Is(err, licet.ErrCursorExpired) {
		return nil, nil // swept meanwhile
	}
	if err != nil {
		return nil, err
	}
	if len(r.feed.Events) == 0 || r.feed.Events[0].Sequence != at.sequence {
		return nil, nil
	}
	return &r.feed.Events[0], nil
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
