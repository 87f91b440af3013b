package kv

import (
	"context"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
)

const (
	// historyListings bounds the listings of keys that one search for a record's events reads.
	historyListings = 8
	// A search goes back through spans of epochs. A span with few keys makes the next one so many times wider, and
	// a span with too many keys is made as many times narrower.
	searchWider = 16
)

// searchHistory finds a record's latest events at or before a place of which only the epoch is known, because the
// value that should tell where they stand can't be read. Where one call does not find them, it returns the place from
// which the next call goes on; where there are none that are kept, the zero place.
func (s *Store) searchHistory(ctx context.Context, owner licensing.Owner, record string, at historyPlace, swept layout.Epoch) (historyPlace, error) {
	width := layout.Epoch(firstSlice)
	to := at.Epoch + 1
	for listings := 0; to > swept+1; listings++ {
		if listings == historyListings {
			return historyPlace{Location: layout.Location{Epoch: to - 1}, sequence: at.sequence}, nil
		}
		from := swept + 1
		if to-from > width {
			from = to - width
		}
		dir, err := s.listEvents(ctx, owner, from, to, 0)
		if err != nil {
			return at, err
		}
		if dir.to < to { // the listing has only the first part of the span, and the last part is wanted first
			width = max((to-from)/searchWider, 1)
			continue
		}
		found, err := s.latestIn(ctx, dir, record, at.sequence)
		if err != nil || found.last > 0 {
			return found, err
		}
		if len(dir.entries) < fewEntries {
			width *= searchWider
		}
		to = from
	}
	return historyPlace{}, nil
}

// latestIn finds the latest events of a record in a directory that end with a number or one before it; the zero place
// if there are none. What can't be read has none.
func (s *Store) latestIn(ctx context.Context, dir *directory, record string, most uint64) (found historyPlace, err error) {
	take := func(at layout.Location, run *layout.Run) {
		if run.Bad == nil && run.Record == record && run.Last <= most && run.Last > found.last {
			found = historyPlace{at, run.Last, run.Last}
		}
	}
	var blocks []*layout.EventsKey
	for i := range dir.entries {
		if e := &dir.entries[i]; e.Block != 0 {
			blocks = append(blocks, e)
		} else {
			take(e.Location, &layout.Run{Record: e.Record, Last: e.Last})
		}
	}
	for len(blocks) > 0 {
		some := blocks[:min(len(blocks), readEvents)]
		blocks = blocks[len(some):]
		reads := make([][]byte, len(some))
		for i, e := range some {
			reads[i] = []byte(e.Key(dir.owner))
		}
		r := s.read(ctx, "load", &batchItem{reads: reads})
		if r.err != nil {
			return found, etcd.Unavailable(r.err)
		}
		for i, e := range some {
			if kv := etcd.First(r.responses, i); kv != nil {
				runs, _ := layout.DecodeRuns(e, kv.Value)
				for j := range runs {
					take(e.Location, &runs[j])
				}
			}
		}
	}
	return found, nil
}
