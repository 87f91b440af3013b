package kv

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet"
)

// sliceKeys is about how many keys of events a slice has that is read page by page.
const sliceKeys = 1000

// errEnough ends a walk through events without an error.
var errEnough = errors.New("that is enough")

// walkEvents calls visit with each page of an owner's events from one epoch up to
// another, and with where the page begins and where the next one does. An error of
// visit ends it; errEnough is none.
//
// For each page etcd counts all keys up to the end of the range. So the epochs are
// read in slices that have few: a million events in one range would be counted for
// each of thousands of pages.
func (s *Store) walkEvents(ctx context.Context, operation string, owner licet.Owner, from, to epoch, limit int64, visit func(begin, next string, page *clientv3.GetResponse) error, opts ...clientv3.OpOption) error {
	prefix := eventsOfOwner(owner)
	at := func(e epoch) string { return prefix + string(appendEpoch(nil, e)) }
	width := epoch(firstSlice)
	for from < to {
		slice := min(from+width, to)
		begin, more, first := at(from), true, true
		for more {
			page, err := s.scan(ctx, operation, begin, at(slice), limit, 0, opts...)
			if err != nil {
				return err
			}
			if first && page.Count > sliceKeys && slice-from > 1 {
				slice = from + max((slice-from)*sliceKeys/epoch(page.Count), 1)
				width = slice - from
				continue
			}
			if first && page.Count < sliceKeys/widerSlice {
				width *= widerSlice
			}
			first, more = false, page.More
			if len(page.Kvs) == 0 {
				break
			}
			next := string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
			if err := visit(begin, next, page); err != nil {
				if errors.Is(err, errEnough) {
					return nil
				}
				return err
			}
			begin = next
		}
		from = slice
	}
	return nil
}
