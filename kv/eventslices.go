package kv

import (
	"context"
	"encoding/binary"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
)

const (
	// sliceKeys is about how many keys of events a slice has that is read page by page.
	sliceKeys = 1000
	// firstWidth is how many epochs the first slice has: about as many as there are
	// between two marks, so that an owner with few events there is read at once.
	firstWidth = markRevisions
)

// errEnough ends a walk through events without an error.
var errEnough = errors.New("that is enough")

// walkEvents calls visit with each page of an owner's events from one epoch up to
// another, and with where the page begins and where the next one does. An error of
// visit ends it; errEnough is none. The options must leave the keys in their order.
//
// For each page etcd counts all keys up to the end of the range. So the epochs are
// read in slices that have few: a million events in one range would be counted for
// each of thousands of pages. A slice with few keys makes the next one wider. One that
// turns out to have many ends sooner: at half of what is left of it, or before. Its page
// is visited all the same, so that none is read in vain, wherever in it the keys are.
// An epoch is not divided.
func (s *Store) walkEvents(ctx context.Context, operation string, owner licensing.Owner, from, to layout.Epoch, limit int64, visit func(begin, next string, page *clientv3.GetResponse) error, opts ...clientv3.OpOption) error {
	prefix := layout.EventsOf(owner)
	at := func(e layout.Epoch) string { return prefix + string(layout.AppendEpoch(nil, e)) }
	for width := layout.Epoch(firstWidth); from < to; {
		width = min(width, to-from)
		begin, end, few := at(from), from+width, false
		for more := true; more; {
			page, err := s.etcd.Page(ctx, operation, begin, at(end), limit, 0, opts...)
			if err != nil {
				return err
			}
			if begin == at(from) {
				few = page.Count < sliceKeys/widerSlice
			}
			if more = page.More; len(page.Kvs) == 0 {
				break
			}
			last := page.Kvs[len(page.Kvs)-1].Key
			next := etcd.After(last)
			if err := visit(begin, next, page); errors.Is(err, errEnough) {
				return nil
			} else if err != nil {
				return err
			}
			if begin = next; more && page.Count > sliceKeys {
				from = min(epochIn(last[len(prefix):]), end-1)
				width = max((end-from)/layout.Epoch(page.Count/sliceKeys+1), 1)
				end = from + width
			}
		}
		if few {
			width = min(width, (to-from)/widerSlice+1) * widerSlice // not past the last number
		}
		from = end
	}
	return nil
}

// epochIn is the epoch in what follows the owner in a key of events, also in one that is
// too short.
func epochIn(rest []byte) layout.Epoch {
	var eight [layout.EpochSize]byte
	copy(eight[:], rest)
	return layout.Epoch(binary.BigEndian.Uint64(eight[:]))
}
