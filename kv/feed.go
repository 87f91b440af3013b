package kv

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

const (
	// A feed is read in slices of so many revisions each, since etcd counts every key of a range, whatever the limit.
	// After a slice with few keys the next slice is wider, so that changes of other owners do not slow a reader.
	firstSlice = 1 << 10
	widerSlice = 4
	fewEntries = 128
	// readEvents is how many keys of events one request reads at most, and firstRead how many the first request reads.
	// A key has up to hundreds of events, some hundred KiB. So a later request reads about as many keys as make
	// readBytes, and no more than fill the page, estimated from the keys before.
	readEvents = 32
	firstRead  = 3
	readBytes  = 1 << 20
	// feedScan bounds how many changes' events one call reads for a page that few events match.
	feedScan = 2000
)

// feeds reads events: the feeds of owners, single events, and the histories of records.
type feeds struct {
	*requests
	directories directories
}

// feedState says how far the events of the store go.
type feedState struct {
	epoch        keyspace.Epoch // the current epoch, which is not closed
	trimmedEpoch keyspace.Epoch
	revision     int64
}

// end returns the epoch in which the feed ends. If no epoch has begun, that is the first possible epoch.
func (f *feedState) end() keyspace.Epoch { return max(f.epoch, f.trimmedEpoch+1) }

// feedState reads how far the events go, linearizably.
func (s *feeds) feedState(ctx context.Context) (feedState, error) {
	state, _, err := s.feedStateWith(ctx)
	return state, err
}

// feedStateWith also reads other keys, in the same transaction.
func (s *feeds) feedStateWith(
	ctx context.Context, others ...string,
) (state feedState, also []*mvccpb.KeyValue, err error) {
	reads := [][]byte{[]byte(keyspace.EpochKey), []byte(keyspace.TrimmedKey)}
	for _, key := range others {
		reads = append(reads, []byte(key))
	}
	r := s.read(ctx, "load", &batchItem{reads: reads})
	if r.err != nil {
		return state, nil, etcd.Unavailable(r.err)
	}
	state.revision = r.revision
	if kv := etcd.First(r.responses, 0); kv != nil {
		state.epoch = keyspace.Epoch(kv.ModRevision)
		s.fences.noteLaterEpoch(state.epoch)
		s.directories.noteEpoch(state.epoch)
	}
	state.trimmedEpoch = s.readTrimmedEpoch(etcd.First(r.responses, 1))
	for i := range others {
		also = append(also, etcd.First(r.responses, 2+i))
	}
	return state, also, nil
}

// EventsNow returns the position in an owner's feed after everything recorded so far.
func (s *feeds) EventsNow(ctx context.Context, owner licensing.Owner) (store.FeedPosition, error) {
	state, err := s.feedState(ctx)
	if err != nil {
		return "", err
	}
	place := keyspace.FeedPlace{Epoch: state.end(), Revision: state.revision}
	return store.FeedPosition(place.Text(licensing.SlotOf(owner))), nil
}

// ReadEvents reads a page of an owner's feed.
func (s *feeds) ReadEvents(
	ctx context.Context, owner licensing.Owner, page store.FeedPage,
) (feed store.Feed, err error) {
	for range beginTries {
		feed, err = s.readPage(ctx, owner, page)
		if page.After != "" || !errors.Is(err, licensing.ErrCursorExpired) {
			break
		}
		// The beginning was swept during the read. The feed has another beginning now.
	}
	return feed, err
}

// beginTries bounds how often ReadEvents looks for the beginning of a feed.
const beginTries = 8

func (s *feeds) readPage(ctx context.Context, owner licensing.Owner, page store.FeedPage) (store.Feed, error) {
	var after keyspace.FeedPlace
	if page.After != "" {
		var ok bool
		if after, ok = keyspace.ReadFeedPlace(licensing.SlotOf(owner), string(page.After)); !ok {
			return store.Feed{}, store.ErrBadPosition
		}
	}
	// One transaction reads the endpoint and how far the feed goes. Every event of the page
	// is of an epoch that is closed at the revision of this transaction.
	state, endpoint, err := s.feedStateFor(ctx, owner, page.Endpoint)
	if err != nil {
		return store.Feed{}, err
	}
	if page.Endpoint != "" && !endpoint.Enabled() {
		return store.Feed{Next: page.After, Endpoint: endpoint}, nil
	}
	if page.Wanted {
		page.Types = endpoint.Endpoint.Types
	}
	feed, err := s.readBehind(ctx, owner, after, state, page)
	feed.Endpoint = endpoint
	return feed, err
}

// readBehind reads a page after a place, up to the end of the feed.
func (s *feeds) readBehind(
	ctx context.Context, owner licensing.Owner, after keyspace.FeedPlace, state feedState, page store.FeedPage,
) (store.Feed, error) {
	switch {
	case page.After == "":
		after.Epoch = state.trimmedEpoch + 1
	case after.Epoch <= state.trimmedEpoch:
		return store.Feed{}, licensing.ErrCursorExpired
	case !after.BehindEvent() &&
		(after.Epoch > state.end() || after.Epoch == state.end() && after.Revision > state.revision):
		// The service never returned this position, or a lost store did. A wait at this position would never end.
		return store.Feed{}, store.ErrBadPosition
	case after.Epoch >= state.epoch && after.BehindEvent():
		// The feed returns no event before its epoch is closed; a look-up by id does.
		return s.feedFromOpen(ctx, owner, after, state)
	}
	return s.readFeed(ctx, owner, after, state, page)
}

// feedReading is a page of a feed while it is read.
type feedReading struct {
	store   *feeds
	owner   licensing.Owner
	slot    licensing.Slot // of the owner
	page    store.FeedPage
	after   keyspace.FeedPlace // after everything examined so far
	feed    store.Feed
	scanned int // how many records' events were examined
	keys    int // how many keys these events are from
	most    int // how many keys the next request reads at most
}

func (r *feedReading) wants() bool { return len(r.feed.Events) < r.page.Limit && r.scanned < feedScan }

func (r *feedReading) at(p keyspace.FeedPlace) {
	r.after, r.feed.Next = p, store.FeedPosition(p.Text(r.slot))
}

func (s *feeds) readFeed(
	ctx context.Context, owner licensing.Owner, after keyspace.FeedPlace, state feedState, page store.FeedPage,
) (store.Feed, error) {
	r := &feedReading{store: s, owner: owner, slot: licensing.SlotOf(owner), page: page, most: firstRead}
	r.at(after)
	width := uint64(firstSlice)
	for r.after.Epoch < state.epoch && r.wants() {
		dir := s.directories.find(owner, r.after.Epoch)
		if dir == nil {
			var err error
			if dir, err = s.listEvents(ctx, owner, r.after.Epoch, min(r.after.Epoch+keyspace.Epoch(width), state.epoch),
				state.revision); err != nil {
				return store.Feed{}, err
			}
			switch n := len(dir.entries); {
			case n < fewEntries:
				width *= widerSlice
			case n > dirEntries/2:
				width = max(width/widerSlice, firstSlice)
			}
			s.directories.keep(dir)
		}
		at, ok := dir.behind(r.after)
		if !ok {
			return store.Feed{}, store.ErrBadPosition
		}
		for at < len(dir.entries) && r.wants() {
			n, err := s.readEntries(ctx, r, dir.entries[at:min(at+r.room(), len(dir.entries))])
			if err != nil {
				s.directories.forget(dir) // some of the events may be gone
				return store.Feed{}, err
			}
			at += n
		}
		if at >= len(dir.entries) && len(r.feed.Events) < page.Limit {
			r.at(keyspace.FeedPlace{Epoch: dir.to})
		}
	}
	r.feed.More = r.after.Epoch < state.epoch
	return r.feed, nil
}

// room returns how many keys to read next: about as many as have the events that the page still lacks, estimated from
// the keys before.
func (r *feedReading) room() int {
	found := len(r.feed.Events)
	switch {
	case found > 0:
		return min(r.most, max(((r.page.Limit-found)*r.keys+found-1)/found, 1))
	case r.page.Types == nil:
		return min(r.most, r.page.Limit) // a key has at least one event
	default:
		return r.most
	}
}

// readEntries reads events and adds the wanted events to the page. It returns how many entries were read completely.
func (s *feeds) readEntries(ctx context.Context, r *feedReading, entries []keyspace.EventsKey) (added int, err error) {
	reads := make([][]byte, len(entries))
	for i := range entries {
		reads[i] = []byte(entries[i].Key(r.owner))
	}
	found := s.read(ctx, "load", &batchItem{reads: reads})
	if found.err != nil {
		return 0, etcd.Unavailable(found.err)
	}
	size := 0
	for i := range entries {
		kv := etcd.First(found.responses, i)
		if kv == nil {
			return i, licensing.ErrCursorExpired // swept meanwhile
		}
		size += len(kv.Value)
		complete, err := r.add(&entries[i], kv.Value)
		if err != nil || !complete {
			return i, err
		}
		r.keys++
	}
	r.most = min(max(readBytes/max(size/len(entries), 1), 1), readEvents)
	return len(entries), nil
}

// add adds the events of one key to the page, as far as the page has room for them.
func (r *feedReading) add(e *keyspace.EventsKey, value []byte) (complete bool, err error) {
	runs, bad := layout.DecodeRuns(e, value)
	r.store.noteUnreadable(r.owner, e, bad)
	from, ok := r.follow(e, runs)
	if !ok {
		return false, store.ErrBadPosition
	}
	for i := range runs[from:] {
		if complete, err := r.addRun(e, &runs[from+i]); err != nil || !complete {
			return false, err
		}
	}
	return true, nil
}

// follow returns the index of the first run of a key that has events after the position. It reports false if the
// position is in this key and is not an event's.
func (r *feedReading) follow(e *keyspace.EventsKey, runs []layout.Run) (from int, ok bool) {
	if e.Block == 0 || !r.after.BehindEvent() || r.after.Epoch != e.Epoch || r.after.Record.Block() != e.Block {
		return 0, true
	}
	if r.after.Record == keyspace.HashBlock(e.Block) {
		from = slices.IndexFunc(runs, func(run layout.Run) bool { return run.Number > r.after.Sequence })
		if from < 0 {
			from = len(runs)
		}
		return from, r.after.Sequence <= runs[len(runs)-1].Number
	}
	// The feed has also returned all runs before the run with the event.
	from = slices.IndexFunc(runs, func(run layout.Run) bool { return run.Hash(e.Block) == r.after.Record })
	if from < 0 {
		// Another node, which can read more of the block than this one, may have returned the event.
		from = slices.IndexFunc(runs, func(run layout.Run) bool { return run.Bad != nil })
	}
	return from, from >= 0
}

// addRun adds events of one record to the page. If the position's event is among them, the reader has that event and
// the events before it.
func (r *feedReading) addRun(e *keyspace.EventsKey, run *layout.Run) (complete bool, err error) {
	rank, hash := keyspace.FeedRank(run.Record), run.Hash(e.Block)
	if run.Bad != nil {
		r.scanned++
		return r.addEvent(keyspace.FeedPlace{Epoch: e.Epoch, Record: hash, Sequence: run.Number}, e, rank,
			layout.PlaceholderFor(0, time.Time{})), nil
	}
	stored, bad := layout.DecodeEvents(r.owner, run.Record, run.Last, run.Value)
	r.store.noteUnreadableRun(r.owner, e, run, bad)
	follows := r.after.BehindEvent() && r.after.Epoch == e.Epoch && r.after.Record == hash
	if follows && e.Block != 0 && !stored.Has(r.after.Sequence, run.Last) {
		return false, store.ErrBadPosition // a record is in a block once, and the event is not there
	}
	for _, event := range stored.Events {
		if follows && event.Sequence <= r.after.Sequence {
			continue
		}
		if !r.addEvent(keyspace.FeedPlace{Epoch: e.Epoch, Record: hash, Sequence: event.Sequence}, e, rank, event) {
			return false, nil
		}
	}
	r.scanned++
	return true, nil
}

// addEvent adds an event to the page, unless the page is full or excludes events of this type.
func (r *feedReading) addEvent(
	at keyspace.FeedPlace, e *keyspace.EventsKey, rank string, event licensing.Event,
) (added bool) {
	if len(r.feed.Events) == r.page.Limit {
		return false
	}
	r.at(at)
	if r.page.Types == nil || slices.Contains(r.page.Types, event.Type) {
		r.feed.Events = append(r.feed.Events, store.RecordedEvent{
			ID: string(r.feed.Next), Revision: e.Revision, Rank: rank, Owner: r.owner, Event: event,
		})
	}
	return true
}

// feedStateOf reads how far the feed of an owner goes, and other keys in the same transaction.
func (s *feeds) feedStateOf(
	ctx context.Context, owner licensing.Owner, others ...string,
) (feedState, []*mvccpb.KeyValue, error) {
	state, also, err := s.feedStateWith(ctx, append([]string{keyspace.LedgerKey(owner)}, others...)...)
	if err != nil || also[0] == nil {
		return state, also[min(len(also), 1):], err
	}
	ledger, err := layout.DecodeLedger(also[0].Value)
	if !s.unreadableLedger(owner, err) {
		state.trimmedEpoch = max(state.trimmedEpoch, ledger.TrimmedEpoch)
	}
	return state, also[1:], nil
}

// feedStateFor reads how far the feed goes and, unless endpoint is empty, this endpoint of
// the owner, in one transaction.
func (s *feeds) feedStateFor(
	ctx context.Context, owner licensing.Owner, endpoint string,
) (state feedState, at store.EndpointAt, err error) {
	if endpoint == "" {
		state, _, err = s.feedStateOf(ctx, owner)
		return state, at, err
	}
	state, record, err := s.feedStateOf(ctx, owner, keyspace.WebhooksKey(owner))
	if err == nil {
		at, err = layout.EndpointAt(owner, record[0].GetValue(), endpoint, state.revision)
	}
	return state, at, err
}
