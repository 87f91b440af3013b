package kv

import (
	"context"
	"encoding/binary"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// historyScan bounds the keys that one call reads for a page of a history. Each key takes a request of its own, since
// only the value of a key names the key before it.
const historyScan = 50

// History reads events of a record, the newest first.
func (s *feeds) History(
	ctx context.Context, ref licensing.Ref, page store.HistoryPage,
) (history store.History, err error) {
	at := historyPlace{}
	if page.Before != "" {
		var ok bool
		if at, ok = readHistoryPlace(string(page.Before)); !ok {
			return history, store.ErrBadPosition
		}
	}
	r := s.read(ctx, "load", &batchItem{reads: [][]byte{[]byte(keyspace.RecordKey(ref)), []byte(keyspace.TrimmedKey)}})
	if r.err != nil {
		return history, etcd.Unavailable(r.err)
	}
	record, owner, latest, err := latestEvents(ref, r)
	if err != nil || record == "" {
		return history, layout.Internal(err)
	}
	if page.Before == "" {
		at = latest
	}
	trimmedEpoch := s.readTrimmedEpoch(etcd.First(r.responses, 1))
	for scanned := 0; at.sequence > 0 && at.Epoch > trimmedEpoch && len(history.Events) < page.Limit; scanned++ {
		if scanned == historyScan {
			history.Next = store.HistoryPosition(at.text())
			return history, nil
		}
		if at.last == 0 {
			at, err = s.searchHistory(ctx, owner, record, at, trimmedEpoch)
			scanned = max(scanned, historyScan-1) // a search is enough for one call
		} else {
			at, err = s.historyStep(ctx, owner, record, at, page.Limit, &history)
		}
		if err != nil {
			return history, err
		}
	}
	if at.sequence > 0 && at.Epoch > trimmedEpoch {
		history.Next = store.HistoryPosition(at.text())
	}
	return history, nil
}

// historyPlace is the latest event that the history has not returned yet. Its key may end with a later event, which
// the history has returned. If last is zero, the key is unknown: it is in the location's epoch or in an earlier epoch,
// and the reader searches for the event, or for the latest event before it.
type historyPlace struct {
	keyspace.Location
	last, sequence uint64
}

func (p historyPlace) text() string {
	b := keyspace.AppendLocation(nil, p.Location)
	return keyspace.FeedText.EncodeToString(binary.AppendUvarint(binary.AppendUvarint(b, p.last), p.sequence))
}

func readHistoryPlace(text string) (p historyPlace, ok bool) {
	b, err := keyspace.FeedText.DecodeString(text)
	if err != nil || len(b) <= keyspace.LocationSize {
		return p, false
	}
	p.Location = keyspace.ReadLocation(b)
	b = b[keyspace.LocationSize:]
	var n int
	if p.last, n = binary.Uvarint(b); n <= 0 {
		return p, false
	}
	b = b[n:]
	if p.sequence, n = binary.Uvarint(b); n != len(b) {
		return p, false
	}
	return p, (p.sequence <= p.last || p.last == 0) && p.last>>(8*keyspace.SequenceSize) == 0 && p.text() == text
}

// latestEvents returns the location of the latest events of a record that was read.
func latestEvents(ref licensing.Ref, r reply) (record string, owner licensing.Owner, at historyPlace, err error) {
	kv := etcd.First(r.responses, 0)
	if kv == nil {
		return "", owner, at, nil
	}
	if ref.Kind == licensing.KindOrder {
		stored, err := layout.DecodeOrder(ref, kv.Value)
		if err != nil {
			return "", owner, at, err
		}
		o := &stored.Order
		return keyspace.OrderInEvents(o.OrderNo), o.Owner, historyPlace{stored.LastEvent, o.Sequence, o.Sequence}, nil
	}
	if ref.Kind == licensing.KindWebhooks {
		stored, err := layout.DecodeWebhooks(ref.Owner, kv.Value)
		if err != nil {
			return "", owner, at, err
		}
		n := stored.Webhooks.Sequence
		return keyspace.WebhooksInEvents(ref.Owner), ref.Owner, historyPlace{stored.LastEvent, n, n}, nil
	}
	if ref.Kind == licensing.KindUsage {
		stored, err := layout.DecodeUsage(ref.Owner, kv.Value)
		if err != nil {
			return "", owner, at, err
		}
		n := stored.Usage.Sequence
		return keyspace.UsageInEvents(ref.Owner), ref.Owner, historyPlace{stored.LastEvent, n, n}, nil
	}
	id := ref.LicenseID()
	stored, err := layout.DecodeLicense(id, kv.Value)
	if err != nil {
		return "", owner, at, err
	}
	l := &stored.License
	return keyspace.LicenseInEvents(id), l.Owner, historyPlace{stored.LastEvent, l.Sequence, l.Sequence}, nil
}

// historyStep returns the events of one key, and the place before them.
func (s *feeds) historyStep(
	ctx context.Context, owner licensing.Owner, record string, at historyPlace, limit int, history *store.History,
) (historyPlace, error) {
	r := s.read(ctx, "load",
		&batchItem{reads: [][]byte{[]byte(keyspace.EventsKeyOf(owner, at.Location, record, at.last))}})
	if r.err != nil {
		return at, etcd.Unavailable(r.err)
	}
	kv := etcd.First(r.responses, 0)
	if kv == nil {
		return historyPlace{}, nil // swept meanwhile, or never there
	}
	stored := s.eventsAt(owner, at, record, kv.Value)
	if stored == nil {
		return historyPlace{}, nil // never there: it is for verify to report
	}
	if stored.Torn {
		stored.Events[0].Sequence = min(at.last, at.sequence)
	}
	for i := len(stored.Events) - 1; i >= 0; i-- {
		e := stored.Events[i]
		if e.Sequence > at.sequence {
			continue
		}
		if len(history.Events) == limit {
			return historyPlace{at.Location, at.last, e.Sequence}, nil
		}
		history.Events = append(history.Events, store.RecordedEvent{
			ID: keyspace.EventID(owner, at.Location, record, e.Sequence), Revision: kv.ModRevision,
			Rank: keyspace.FeedRank(record), Owner: owner, Event: e,
		})
	}
	before := stored.Events[0].Sequence - 1
	switch {
	case stored.Adrift:
		return historyPlace{Location: keyspace.Location{Epoch: at.Epoch}, sequence: before}, nil
	case stored.Torn:
		// The number of the last event in the previous key is unknown.
		return historyPlace{Location: keyspace.Location{Epoch: stored.Before.Epoch}, sequence: before}, nil
	}
	return historyPlace{stored.Before, before, before}, nil
}

// eventsAt reads the events of a record from the value of their key; nil if the key does not have them.
func (s *feeds) eventsAt(owner licensing.Owner, at historyPlace, record string, value []byte) *layout.Events {
	e := &keyspace.EventsKey{Location: at.Location, Record: record, Last: at.last}
	runs, bad := layout.DecodeRuns(e, value)
	s.noteUnreadable(owner, e, bad)
	for i := range runs {
		if run := &runs[i]; run.Record == record && run.Last == at.last {
			stored, bad := layout.DecodeEvents(owner, record, run.Last, run.Value)
			s.noteUnreadableRun(owner, e, run, bad)
			return stored
		}
	}
	if bad != nil {
		return layout.TornEvents(at.last)
	}
	return nil
}

const (
	// historyListings bounds the listings of keys that one search for a record's events reads.
	historyListings = 8
	// A search goes back through spans of epochs. A span with few keys makes the next one so many times wider, and
	// a span with too many keys is made as many times narrower.
	searchWider = 16
)

// searchHistory finds a record's latest events at or before a place of which only the epoch is known, because the value
// with their location can't be read. If one call does not find them, searchHistory returns the place from which the
// next call continues. If no such events are kept, it returns the zero place.
func (s *feeds) searchHistory(
	ctx context.Context, owner licensing.Owner, record string, at historyPlace, trimmedEpoch keyspace.Epoch,
) (historyPlace, error) {
	width := keyspace.Epoch(firstSlice)
	to := at.Epoch + 1
	for listings := 0; to > trimmedEpoch+1; listings++ {
		if listings == historyListings {
			return historyPlace{Location: keyspace.Location{Epoch: to - 1}, sequence: at.sequence}, nil
		}
		from := trimmedEpoch + 1
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

// latestIn finds in a directory the latest events of a record up to a number; the zero place if there are none. A
// key that can't be read counts as a key without events.
func (s *feeds) latestIn(
	ctx context.Context, dir *directory, record string, most uint64,
) (found historyPlace, err error) {
	take := func(at keyspace.Location, run *layout.Run) {
		if run.Bad == nil && run.Record == record && run.Last <= most && run.Last > found.last {
			found = historyPlace{at, run.Last, run.Last}
		}
	}
	var blocks []*keyspace.EventsKey
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
