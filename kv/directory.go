package kv

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

const (
	// dirEntries is how many keys of events one request lists. A directory contains whole epochs, however many keys an
	// epoch has: the order of an epoch is known only from all its keys.
	dirEntries = 2048
	// keptDirs is how many directories a store caches.
	keptDirs = 16
)

// directory lists the keys of an owner's events in a span of closed epochs, in the feed's order. It never changes.
type directory struct {
	owner    licensing.Owner
	from, to keyspace.Epoch // from belongs to the span, to does not
	entries  []keyspace.EventsKey
}

// directories caches the directories that were used last, so that a reader that pages through an epoch does not list
// the epoch for each page.
type directories struct {
	mu   sync.Mutex
	kept []*directory // the most recently used first
	asOf keyspace.Epoch
}

func (d *directories) find(owner licensing.Owner, e keyspace.Epoch) *directory {
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

// noteEpoch drops all directories if an epoch is earlier than the last one, or so much later that the store was
// restored in between, see keyspace.RevisionBump. They describe the store that is lost.
func (d *directories) noteEpoch(e keyspace.Epoch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.RestoredSince(d.asOf) {
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

// forget drops a directory that lists events which are gone.
func (d *directories) forget(dir *directory) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = slices.DeleteFunc(d.kept, func(k *directory) bool { return k == dir })
}

// behind returns the index of the first entry that has events after a place. The entry may also have the event of the
// place, if other events follow that event. ok is false if the event does not exist, unless it may be in a block that
// exists.
func (d *directory) behind(p keyspace.FeedPlace) (at int, ok bool) {
	if !p.BehindEvent() {
		at, _ = slices.BinarySearchFunc(d.entries, p, func(e keyspace.EventsKey, p keyspace.FeedPlace) int {
			if c := cmp.Compare(e.Epoch, p.Epoch); c != 0 {
				return c
			}
			if e.Revision <= p.Revision {
				return -1
			}
			return 1
		})
		return at, true
	}
	found, in := -1, p.Record.Block()
	for i := range d.entries {
		e := &d.entries[i]
		if e.Epoch != p.Epoch || e.Block != in {
			continue
		}
		if in != 0 {
			return i, true
		}
		if e.Last >= p.Sequence && e.Hash == p.Record &&
			(found < 0 || e.Last < d.entries[found].Last) {
			found = i
		}
	}
	return found, found >= 0
}

// listEvents lists the keys of an owner's events from one epoch up to another, at a revision. The listing may end
// earlier, but it contains whole epochs, and at least one if there is any.
func (s *feeds) listEvents(
	ctx context.Context, owner licensing.Owner, from, to keyspace.Epoch, revision int64,
) (*directory, error) {
	dir := &directory{owner: owner, from: from, to: to}
	prefix := keyspace.EventsOf(owner)
	if err := s.slots.checkHere([]byte(prefix)); err != nil {
		return nil, err
	}
	next, end := prefix+string(keyspace.AppendEpoch(nil, from)), prefix+string(keyspace.AppendEpoch(nil, to))
	for {
		response, err := s.etcd.Page(ctx, "list_events", next, end, dirEntries, revision, clientv3.WithKeysOnly())
		if err != nil {
			return nil, err
		}
		for _, kv := range response.Kvs {
			entry, ok := keyspace.ReadEventsKey(kv.Key[len(prefix):])
			if !ok || entry.Block == 0 && entry.Last == 0 {
				// No build writes a key in this form, so there is no event for a placeholder.
				s.etcd.Unreadable(string(kv.Key), "e/"+keyspace.OwnerPath(owner),
					fmt.Errorf("a key of events: %w", layout.ErrMalformed))
				continue
			}
			entry.Revision = kv.ModRevision
			if entry.Block == 0 {
				entry.Hash = keyspace.HashRecord(0, entry.Record) // once, and not for each page
			}
			dir.entries = append(dir.entries, entry)
		}
		if !response.More {
			break
		}
		next = etcd.After(response.Kvs[len(response.Kvs)-1].Key)
		if len(dir.entries) == 0 {
			continue
		}
		last := dir.entries[len(dir.entries)-1].Epoch
		if first := dir.entries[0].Epoch; first != last {
			// The last epoch may be incomplete: leave it for the next directory.
			cut, _ := slices.BinarySearchFunc(dir.entries, last,
				func(e keyspace.EventsKey, of keyspace.Epoch) int { return cmp.Compare(e.Epoch, of) })
			dir.entries, dir.to = dir.entries[:cut], last
			break
		}
		// An epoch with more keys than one request lists: read the rest of it.
		end = prefix + string(keyspace.AppendEpoch(nil, last+1))
		dir.to = last + 1
	}
	slices.SortFunc(dir.entries, keyspace.CompareEvents)
	return dir, nil
}

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
