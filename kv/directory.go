package kv

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

const (
	// dirEntries is how many keys of events one request lists. A directory holds whole epochs, however many keys an
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

// behind returns the index of the first entry that has events after a place. The entry may also hold the event of the
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
// earlier, but it holds whole epochs, and at least one if there is any.
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
