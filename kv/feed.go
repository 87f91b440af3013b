package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet"
	"licet/node"
)

// sweptKey has the last epoch whose events are no longer kept, as eight bytes. It is
// raised before they are removed, so that who reads on after it misses none.
const sweptKey = layout + "s/swept"

const (
	// A feed is read slice by slice, each so many revisions wide, since etcd counts
	// every key of a range, whatever the limit. One that is empty makes the next wider.
	firstSlice = 1 << 10
	widerSlice = 4
	// readEvents is how many keys of events are read at a time.
	readEvents = 100
	// feedScan bounds the keys that one call reads for a page that few events match.
	feedScan = 2000
)

// feedState is how far the events of the store go.
type feedState struct {
	epoch    epoch // the one that is not sealed
	swept    epoch
	revision int64
}

// feedState reads it, linearizably.
func (s *Store) feedState(ctx context.Context) (feedState, error) {
	state, _, err := s.feedStateWith(ctx, epochKey)
	return state, err
}

// feedStateWith reads another key along.
func (s *Store) feedStateWith(ctx context.Context, other string) (state feedState, also *mvccpb.KeyValue, err error) {
	r, _ := s.reads.do(ctx, &part{reads: [][]byte{[]byte(epochKey), []byte(sweptKey), []byte(other)}})
	if r.err != nil {
		return state, nil, unavailable(r.err)
	}
	state.revision = r.revision
	if kv := firstOf(r.responses, 0); kv != nil {
		state.epoch = epoch(kv.ModRevision)
		s.fences.noteLaterEpoch(state.epoch)
		s.directories.heed(state.epoch)
	}
	if kv := firstOf(r.responses, 1); kv != nil {
		if len(kv.Value) != epochSize {
			return state, nil, broken(fmt.Errorf("the mark of swept events: %w", errMalformed))
		}
		state.swept = epoch(binary.BigEndian.Uint64(kv.Value))
	}
	return state, firstOf(r.responses, 2), nil
}

// EventsNow is the position behind all that has been recorded by now.
func (s *Store) EventsNow(ctx context.Context) (node.FeedPosition, error) {
	state, err := s.feedState(ctx)
	if err != nil {
		return "", err
	}
	return node.FeedPosition(place{epoch: state.epoch, revision: state.revision}.text(node.Cell)), nil
}

// ReadEvents reads a page of an owner's feed.
func (s *Store) ReadEvents(ctx context.Context, owner licet.Owner, page node.FeedPage) (feed node.Feed, err error) {
	for range beginTries {
		feed, err = s.readPage(ctx, owner, page)
		if page.After != "" || !errors.Is(err, licet.ErrCursorExpired) {
			break
		}
		// The beginning was swept while it was read. There is another one now.
	}
	return feed, err
}

// beginTries bounds how often the beginning of a feed is looked for.
const beginTries = 8

func (s *Store) readPage(ctx context.Context, owner licet.Owner, page node.FeedPage) (node.Feed, error) {
	var after place
	if page.After != "" {
		var ok bool
		if after, ok = readPlace(node.Cell, string(page.After)); !ok {
			return node.Feed{}, node.ErrBadPosition
		}
	}
	state, err := s.feedState(ctx)
	if err != nil {
		return node.Feed{}, err
	}
	switch {
	case page.After == "":
		after.epoch = state.swept + 1
	case after.epoch <= state.swept:
		return node.Feed{}, licet.ErrCursorExpired
	case after.epoch >= state.epoch && after.behindEvent():
		// Nobody is told of an event before its epoch is sealed, but by its own id.
		return s.feedFromOpen(ctx, owner, after, state)
	}
	return s.readFeed(ctx, owner, after, state, page)
}

func (s *Store) readFeed(ctx context.Context, owner licet.Owner, after place, state feedState, page node.FeedPage) (node.Feed, error) {
	feed := node.Feed{Next: page.After}
	width := uint64(firstSlice)
	scanned := 0
	for after.epoch < state.epoch && len(feed.Events) < page.Limit && scanned < feedScan {
		dir := s.directories.find(owner, after.epoch)
		if dir == nil {
			var err error
			if dir, err = s.listEvents(ctx, owner, after.epoch, min(after.epoch+epoch(width), state.epoch), state.revision); err != nil {
				return node.Feed{}, err
			}
			if len(dir.entries) == 0 {
				width *= widerSlice
			} else {
				width = firstSlice
			}
			s.directories.keep(dir)
		}
		at, ok := dir.behind(after)
		if !ok {
			return node.Feed{}, node.ErrBadPosition
		}
		for at < len(dir.entries) && len(feed.Events) < page.Limit && scanned < feedScan {
			batch := dir.entries[at:min(at+readEvents, len(dir.entries))]
			n, next, err := s.readEntries(ctx, owner, batch, after, page, &feed)
			if err != nil {
				return node.Feed{}, err
			}
			after = next
			at, scanned = at+n, scanned+n
			feed.Next = node.FeedPosition(after.text(node.Cell))
		}
		if at >= len(dir.entries) && len(feed.Events) < page.Limit {
			after = place{epoch: dir.to}
			feed.Next = node.FeedPosition(after.text(node.Cell))
		}
	}
	feed.More = after.epoch < state.epoch
	return feed, nil
}

// readEntries reads events and adds those that are wanted to a feed. It answers how
// many entries are told of wholly, and the place behind what is told of.
func (s *Store) readEntries(ctx context.Context, owner licet.Owner, entries []dirEntry, after place, page node.FeedPage, feed *node.Feed) (int, place, error) {
	reads := make([][]byte, len(entries))
	for i := range entries {
		reads[i] = []byte(entries[i].key(owner))
	}
	r, _ := s.reads.do(ctx, &part{reads: reads})
	if r.err != nil {
		return 0, after, unavailable(r.err)
	}
	for i := range entries {
		e := &entries[i]
		kv := firstOf(r.responses, i)
		if kv == nil {
			return i, after, licet.ErrCursorExpired // swept meanwhile
		}
		stored, err := decodeEvents(owner, e.record, e.last, kv.Value)
		if err != nil {
			return i, after, broken(err)
		}
		hash := hashRecord(e.record)
		for _, event := range stored.events {
			if after.behindEvent() && after.epoch == e.epoch && after.record == hash && event.Sequence <= after.sequence {
				continue // told before
			}
			if len(feed.Events) == page.Limit {
				return i, after, nil
			}
			after = place{epoch: e.epoch, record: hash, sequence: event.Sequence}
			if page.Types == nil || slices.Contains(page.Types, event.Type) {
				feed.Events = append(feed.Events, node.RecordedEvent{
					ID: after.text(node.Cell), Revision: e.revision, Owner: owner, Event: event,
				})
			}
		}
	}
	return len(entries), after, nil
}
