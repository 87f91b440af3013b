package kv

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
)

const (
	// dirEntries is how many keys of events are listed at a time. A whole epoch is,
	// however many it has: its order can't be known otherwise.
	dirEntries = 2048
	// keptDirs is how many directories a store keeps in memory.
	keptDirs = 16
)

// directory lists, in the feed's order, the keys of an owner's events in a span of
// epochs that are sealed. It never changes.
type directory struct {
	owner    licensing.Owner
	from, to layout.Epoch // from the one, up to the other without it
	entries  []layout.EventsKey
}

// directories keeps the latest ones: who pages through an epoch need not list it for
// each page.
type directories struct {
	mu   sync.Mutex
	kept []*directory // the latest used first
	asOf layout.Epoch
}

func (d *directories) find(owner licensing.Owner, e layout.Epoch) *directory {
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

// noteEpoch forgets all of them where an epoch is earlier than the last, or so much later
// that the store was restored in between, see layout.RevisionBump: they are of what is lost.
func (d *directories) noteEpoch(e layout.Epoch) {
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

// behind finds the first entry that is not told of at a place. It may be the one with
// the event itself, which has others behind it. Of an event that is not there it says
// so, unless it might be in a block that is there.
func (d *directory) behind(p layout.FeedPlace) (at int, ok bool) {
	if !p.BehindEvent() {
		at, _ = slices.BinarySearchFunc(d.entries, p, func(e layout.EventsKey, p layout.FeedPlace) int {
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

// listEvents lists the keys of an owner's events from an epoch up to another, at a
// revision, or less of them: but always whole epochs, and at least one, if there is
// any.
func (s *feeds) listEvents(
	ctx context.Context, owner licensing.Owner, from, to layout.Epoch, revision int64,
) (*directory, error) {
	dir := &directory{owner: owner, from: from, to: to}
	prefix := layout.EventsOf(owner)
	next, end := prefix+string(layout.AppendEpoch(nil, from)), prefix+string(layout.AppendEpoch(nil, to))
	for {
		response, err := s.etcd.Page(ctx, "list_events", next, end, dirEntries, revision, clientv3.WithKeysOnly())
		if err != nil {
			return nil, err
		}
		for _, kv := range response.Kvs {
			entry, ok := layout.ReadEventsKey(kv.Key[len(prefix):])
			if !ok || entry.Block == 0 && entry.Last == 0 {
				// No build writes such a key, so there is no event to put a placeholder for.
				s.etcd.Unreadable(string(kv.Key), "e/"+layout.OwnerPath(owner),
					fmt.Errorf("a key of events: %w", layout.ErrMalformed))
				continue
			}
			entry.Revision = kv.ModRevision
			if entry.Block == 0 {
				entry.Hash = layout.HashRecord(0, entry.Record) // once, and not for each page
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
			// The last one may not be whole. It is for the next directory.
			cut, _ := slices.BinarySearchFunc(dir.entries, last,
				func(e layout.EventsKey, of layout.Epoch) int { return cmp.Compare(e.Epoch, of) })
			dir.entries, dir.to = dir.entries[:cut], last
			break
		}
		// One that is larger is read on.
		end = prefix + string(layout.AppendEpoch(nil, last+1))
		dir.to = last + 1
	}
	slices.SortFunc(dir.entries, layout.CompareEvents)
	return dir, nil
}
