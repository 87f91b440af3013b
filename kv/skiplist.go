package kv

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/licensing"
	"licet/node/store"
)

// A listing is the keys below one prefix, in the order of time. Reading it from its newest entry is not simply a range
// in descending order: etcd walks over every key of a range to count it, whatever the limit, and can reverse only a
// range that it has read completely. So each listing is a skip list. About one entry in 128 also has a key on the level
// above, and one in 128 of those on the top level. The nearest of these keys bound the ranges to read, so that each
// range has about 128 keys.
//
// The upper levels affect nothing but the length of ranges: without them a listing would be the same, and slow.

// walk reads a listing backwards. It may or may not see entries that are added meanwhile; it sees all others.
type walk struct {
	store   *views
	listing string   // the beginning of the entries' keys
	oldest  string   // the position at which the walk ends; empty: at the beginning of the listing
	ready   []string // positions that were read and not yet returned, oldest first
	levels  [keyspace.SkipLevels + 1]skipLevel
	then    *walk // the listing that follows; nil: none
	stopped bool  // the page ends after the records that were read
}

// skipLevel is how far a walk has come on a level.
type skipLevel struct {
	stops []string // positions that were read and not yet taken, oldest first
	to    string   // the keys before it are still to be read; see all
	all   bool     // all keys are still to be read
	ended bool     // no key is left to read
}

// walkFrom begins a walk through an owner's listing at the first entry before a position, or with the newest.
func (s *views) walkFrom(owner licensing.Owner, listing string, before store.Position) *walk {
	w := &walk{store: s, listing: keyspace.InSlot(licensing.SlotOf(owner), listing)}
	for i := range w.levels {
		w.levels[i].to, w.levels[i].all = string(before), before == ""
	}
	return w
}

// within bounds a walk that has not begun to the entries from a position on and before another position. An empty
// position bounds nothing.
func (w *walk) within(oldest, before string) {
	w.oldest = oldest
	for i := range w.levels {
		if l := &w.levels[i]; before != "" && (l.all || l.to > before) {
			l.to, l.all = before, false
		}
	}
}

// more reports whether there is another entry.
func (w *walk) more(ctx context.Context) (bool, error) {
	for len(w.ready) == 0 && !w.levels[0].ended {
		if err := w.read(ctx, 0); err != nil {
			return false, err
		}
		w.ready, w.levels[0].stops = w.levels[0].stops, nil
	}
	if len(w.ready) == 0 && w.then != nil {
		*w = *w.then
		return w.more(ctx)
	}
	return len(w.ready) > 0, nil
}

// next returns the positions of up to limit entries, newest first; none at the end.
func (w *walk) next(ctx context.Context, limit int) ([]string, error) {
	var positions []string
	for len(positions) < limit {
		more, err := w.more(ctx)
		if err != nil || !more {
			return positions, err
		}
		last := len(w.ready) - 1
		positions, w.ready = append(positions, w.ready[last]), w.ready[:last]
	}
	return positions, nil
}

// stop takes the nearest position of a level that the walk has not passed. It returns an empty position if there is
// none: then the rest of the listing is one range.
func (w *walk) stop(ctx context.Context, level int) (string, error) {
	l := &w.levels[level]
	for len(l.stops) == 0 {
		if l.ended {
			return "", nil
		}
		if err := w.read(ctx, level); err != nil {
			return "", err
		}
	}
	last := len(l.stops) - 1
	stop := l.stops[last]
	l.stops = l.stops[:last]
	return stop, nil
}

// read reads the next range of a level: back to the nearest stop of the level above.
func (w *walk) read(ctx context.Context, level int) error {
	from := ""
	if level < keyspace.SkipLevels {
		var err error
		if from, err = w.stop(ctx, level+1); err != nil {
			return err
		}
	}
	from = max(from, w.oldest)
	prefix := w.listing
	if level > 0 {
		prefix = keyspace.SkipKey(level, w.listing)
	}
	l := &w.levels[level]
	to := prefix + l.to
	if l.all {
		to = clientv3.GetPrefixRangeEnd(prefix)
	} else if from >= l.to {
		l.ended = true // nothing is between; etcd refuses no such range, and finds nothing
		return nil
	}
	if err := w.store.slots.checkHere([]byte(prefix)); err != nil {
		return err
	}
	response, err := w.store.etcd.List(ctx, "walk_listing", prefix+from, clientv3.WithRange(to),
		clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	for _, kv := range response.Kvs {
		l.stops = append(l.stops, string(kv.Key[len(prefix):]))
	}
	l.to, l.all, l.ended = from, false, from == w.oldest
	return nil
}
