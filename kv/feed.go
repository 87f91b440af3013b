package kv

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

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
	// dirEntries is how many keys of events are listed at a time. A whole epoch is,
	// however many it has: its order can't be known otherwise.
	dirEntries = 2048
	// readEvents is how many keys of events are read at a time.
	readEvents = 100
	// feedScan bounds the keys that one call reads for a page that few events match.
	feedScan = 2000
	// keptDirs is how many directories a store keeps in memory.
	keptDirs = 16
)

// directory lists, in the feed's order, the keys of an owner's events in a span of
// epochs that are sealed. It never changes.
type directory struct {
	owner    licet.Owner
	from, to epoch // from the one, up to the other without it
	entries  []dirEntry
}

// dirEntry is one key of events.
type dirEntry struct {
	epoch    epoch
	revision int64
	record   string
	last     uint64 // sequence
}

func (d *dirEntry) key(owner licet.Owner) string { return eventsKey(owner, d.epoch, d.record, d.last) }

// directories keeps the latest ones: who pages through an epoch need not list it for
// each page.
type directories struct {
	mu   sync.Mutex
	kept []*directory // the latest used first
	asOf epoch
}

func (d *directories) find(owner licet.Owner, e epoch) *directory {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, dir := range d.kept {
		if dir.owner == owner && dir.from <= e && e < dir.to {
			copy(d.kept[1:], d.kept[:i])
			d.kept[0] = dir
			return dir
		}
	}
	return nil
}

// heed forgets all of them where an epoch is earlier than the last, or so much later
// that the store was restored in between, see revisionBump: they are of what is lost.
func (d *directories) heed(e epoch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e < d.asOf || e >= d.asOf+revisionBump/2 {
		d.kept = nil
	}
	d.asOf = e
}

func (d *directories) keep(dir *directory) {
	if len(dir.entries) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = slices.Insert(d.kept, 0, dir)
	d.kept = d.kept[:min(len(d.kept), keptDirs)]
}

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

// behind finds the first entry that is not told of at a place. It may be the one with
// the event itself, which has others behind it. Of an event that is not there it says
// so.
func (d *directory) behind(p place) (at int, ok bool) {
	if !p.behindEvent() {
		at, _ = slices.BinarySearchFunc(d.entries, p, func(e dirEntry, p place) int {
			if c := cmp.Compare(e.epoch, p.epoch); c != 0 {
				return c
			}
			if e.revision <= p.revision {
				return -1
			}
			return 1
		})
		return at, true
	}
	found := -1
	for i := range d.entries {
		e := &d.entries[i]
		if e.epoch == p.epoch && e.last >= p.sequence && hashRecord(e.record) == p.record &&
			(found < 0 || e.last < d.entries[found].last) {
			found = i
		}
	}
	return found, found >= 0
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

// listEvents lists the keys of an owner's events from an epoch up to another, at a
// revision, or less of them: but always whole epochs, and at least one, if there is
// any.
func (s *Store) listEvents(ctx context.Context, owner licet.Owner, from, to epoch, revision int64) (*directory, error) {
	dir := &directory{owner: owner, from: from, to: to}
	prefix := eventsOfOwner(owner)
	next, end := prefix+string(appendEpoch(nil, from)), prefix+string(appendEpoch(nil, to))
	for {
		response, err := s.scan(ctx, "list_events", next, end, dirEntries, revision, clientv3.WithKeysOnly())
		if err != nil {
			return nil, err
		}
		for _, kv := range response.Kvs {
			entry, ok := readEventsKey(kv.Key[len(prefix):])
			if !ok {
				return nil, broken(fmt.Errorf("a key of events: %w", errMalformed))
			}
			entry.revision = kv.ModRevision
			dir.entries = append(dir.entries, entry)
		}
		if !response.More {
			break
		}
		last := dir.entries[len(dir.entries)-1].epoch
		if first := dir.entries[0].epoch; first != last {
			// The last one may not be whole. It is for the next directory.
			cut, _ := slices.BinarySearchFunc(dir.entries, last, func(e dirEntry, of epoch) int { return cmp.Compare(e.epoch, of) })
			dir.entries, dir.to = dir.entries[:cut], last
			break
		}
		// One that is larger is read on.
		next = string(response.Kvs[len(response.Kvs)-1].Key) + "\x00"
		end = prefix + string(appendEpoch(nil, last+1))
		dir.to = last + 1
	}
	slices.SortFunc(dir.entries, func(a, b dirEntry) int {
		return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.revision, b.revision), cmp.Compare(a.record, b.record))
	})
	return dir, nil
}

// readEventsKey reads what follows the owner in a key of events.
func readEventsKey(rest []byte) (dirEntry, bool) {
	if len(rest) <= epochSize+1+sequenceSize {
		return dirEntry{}, false
	}
	var eight [8]byte
	copy(eight[8-sequenceSize:], rest[len(rest)-sequenceSize:])
	record := bytes.Clone(rest[epochSize : len(rest)-sequenceSize])
	return dirEntry{
		epoch: epoch(binary.BigEndian.Uint64(rest)), record: string(record), last: binary.BigEndian.Uint64(eight[:]),
	}, true
}

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

// eventAt reads the event that a place is behind of.
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
	var feed node.Feed
	before := place{epoch: at.epoch, record: at.record, sequence: at.sequence - 1}
	_, _, err := s.readEntries(ctx, owner, dir.entries[i:i+1], before, node.FeedPage{Limit: 1}, &feed)
	if errors.Is(err, licet.ErrCursorExpired) {
		return nil, nil // swept meanwhile
	}
	if err != nil {
		return nil, err
	}
	if len(feed.Events) == 0 || feed.Events[0].Sequence != at.sequence {
		return nil, nil
	}
	return &feed.Events[0], nil
}
