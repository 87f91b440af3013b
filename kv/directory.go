package kv

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

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
	from, to epoch // from the one, up to the other without it
	entries  []dirEntry
}

// directories keeps the latest ones: who pages through an epoch need not list it for
// each page.
type directories struct {
	mu   sync.Mutex
	kept []*directory // the latest used first
	asOf epoch
}

func (d *directories) find(owner licensing.Owner, e epoch) *directory {
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

// behind finds the first entry that is not told of at a place. It may be the one with
// the event itself, which has others behind it. Of an event that is not there it says
// so, unless it might be in a block that is there.
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
	found, in := -1, p.record.block()
	for i := range d.entries {
		e := &d.entries[i]
		if e.epoch != p.epoch || e.block != in {
			continue
		}
		if in != 0 {
			return i, true
		}
		if e.last >= p.sequence && e.hash == p.record &&
			(found < 0 || e.last < d.entries[found].last) {
			found = i
		}
	}
	return found, found >= 0
}

// listEvents lists the keys of an owner's events from an epoch up to another, at a
// revision, or less of them: but always whole epochs, and at least one, if there is
// any.
func (s *Store) listEvents(ctx context.Context, owner licensing.Owner, from, to epoch, revision int64) (*directory, error) {
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
			if !ok || entry.block == 0 && entry.last == 0 {
				// No build writes such a key, so there is no event to put a placeholder for.
				s.noteValue(string(kv.Key), "e/"+ownerPath(owner), fmt.Errorf("a key of events: %w", errMalformed))
				continue
			}
			entry.revision = kv.ModRevision
			if entry.block == 0 {
				entry.hash = hashRecord(0, entry.record) // once, and not for each page
			}
			dir.entries = append(dir.entries, entry)
		}
		if !response.More {
			break
		}
		next = string(response.Kvs[len(response.Kvs)-1].Key) + "\x00"
		if len(dir.entries) == 0 {
			continue
		}
		last := dir.entries[len(dir.entries)-1].epoch
		if first := dir.entries[0].epoch; first != last {
			// The last one may not be whole. It is for the next directory.
			cut, _ := slices.BinarySearchFunc(dir.entries, last, func(e dirEntry, of epoch) int { return cmp.Compare(e.epoch, of) })
			dir.entries, dir.to = dir.entries[:cut], last
			break
		}
		// One that is larger is read on.
		end = prefix + string(appendEpoch(nil, last+1))
		dir.to = last + 1
	}
	slices.SortFunc(dir.entries, inFeedOrder)
	return dir, nil
}
