package kv

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"licet"
)

// How old events are and how many bytes they take must be known without reading
// them. So now and then a mark is made behind an epoch that is sealed: the time, and
// the bytes of the events since the mark before. Whichever node sweeps makes it.
const marksPrefix = layout + "t/"

const (
	// markAfter is how old the latest mark gets before another is made. Events are
	// kept so much longer, at most.
	markAfter = 10 * time.Minute
	// markRevisions is after how many of the store's revisions it is made sooner.
	markRevisions = 20_000
	// markBytes is about how many bytes of events two marks have between them, unless
	// one epoch has more.
	markBytes = 16 << 20
	// markPage is how many keys of events are read at a time to be counted.
	markPage = 200
	// marksPage is how many marks are read at a time: 0.8 MB.
	marksPage = 20_000
)

// eventMark says of the events up to an epoch that they were recorded before a
// moment, and how many bytes those since the mark before take, with their keys.
type eventMark struct {
	epoch epoch
	at    time.Time
	bytes int64
}

func markKey(e epoch) string { return marksPrefix + string(appendEpoch(nil, e)) }

// Field numbers of a mark.
const (
	markAt   protowire.Number = 1
	markSize protowire.Number = 2
)

func (m *eventMark) encode() []byte {
	b := appendTime([]byte{formatVersion}, markAt, m.at)
	return appendUint(b, markSize, uint64(m.bytes))
}

// readMark reads a mark, given what follows the prefix in its key.
func readMark(rest string, value []byte) (m eventMark, err error) {
	if len(rest) != epochSize {
		return m, errMalformed
	}
	m.epoch = epoch(binary.BigEndian.Uint64([]byte(rest)))
	err = decodeValue(value, func(f field) error {
		switch f.num {
		case markAt:
			m.at = f.time()
		case markSize:
			m.bytes = int64(f.varint)
		}
		return nil
	})
	if err == nil && (m.at.IsZero() || m.bytes < 0) {
		err = errMalformed
	}
	return m, err
}

// eventMarks reads all marks, the oldest first, some at a time. With
// events kept for 30 days there are 4,320, one in markAfter. Where more than 33
// revisions a second are written, whether they tell of events or not, there is one for
// each markRevisions: 38,880 at 300 a second, which take 1.5 MB, at 40 bytes each. One
// node, sweeping once a minute, makes no more than 43,200; several may. Those that
// markBytes adds are at most 128 for each GiB of events.
func (s *Store) eventMarks(ctx context.Context) ([]eventMark, error) {
	var marks []eventMark
	for next, more := marksPrefix, true; more; {
		page, err := s.scan(ctx, "list_marks", next, clientv3.GetPrefixRangeEnd(marksPrefix), marksPage, 0)
		if err != nil {
			return nil, err
		}
		for _, kv := range page.Kvs {
			mark, err := readMark(string(kv.Key[len(marksPrefix):]), kv.Value)
			if err != nil {
				return nil, broken(fmt.Errorf("a mark of events: %w", err))
			}
			marks = append(marks, mark)
			next = string(kv.Key) + "\x00"
		}
		more = page.More && len(page.Kvs) > 0
	}
	return marks, nil
}

// markEvents makes the marks that are due behind what is sealed, and gives all that
// there are. Another node may make them first: then those count.
func (s *Store) markEvents(ctx context.Context, now time.Time, owners []licet.Owner, state feedState, marks []eventMark) ([]eventMark, error) {
	from := state.swept + 1
	if len(marks) > 0 {
		latest := marks[len(marks)-1]
		from = max(from, latest.epoch+1)
		if now.Sub(latest.at) < markAfter && state.epoch < from+markRevisions {
			return marks, nil
		}
	}
	if from >= state.epoch {
		return marks, nil
	}
	sizes := make(map[epoch]int64)
	for _, owner := range owners {
		if err := s.sizeEvents(ctx, owner, from, state.epoch, sizes); err != nil {
			return nil, err
		}
	}
	for some := range slices.Chunk(markSizes(sizes, state.epoch-1, now), maxOps) {
		puts := make([]clientv3.Op, len(some))
		for i := range some {
			puts[i] = clientv3.OpPut(markKey(some[i].epoch), string(some[i].encode()))
		}
		noneSince := clientv3.Compare(clientv3.CreateRevision(markKey(from)).WithRange(clientv3.GetPrefixRangeEnd(marksPrefix)), "=", 0)
		response, err := s.txn(ctx, "mark_events", []clientv3.Cmp{noneSince}, puts, nil)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", licet.ErrOutcomeUnknown, err)
		}
		if !response.Succeeded {
			return s.eventMarks(ctx)
		}
		marks, from = append(marks, some...), some[len(some)-1].epoch+1
	}
	return marks, nil
}

// markSizes lays marks over epochs of which the bytes are known, up to a last one.
func markSizes(sizes map[epoch]int64, last epoch, now time.Time) []eventMark {
	var marks []eventMark
	open := eventMark{at: now}
	for _, e := range slices.SortedFunc(maps.Keys(sizes), cmp.Compare[epoch]) {
		if open.bytes > 0 && open.bytes+sizes[e] > markBytes {
			marks = append(marks, open)
			open.bytes = 0
		}
		open.epoch, open.bytes = e, open.bytes+sizes[e]
	}
	open.epoch = last
	return append(marks, open)
}

// sizeEvents adds up the bytes of an owner's events in sealed epochs.
func (s *Store) sizeEvents(ctx context.Context, owner licet.Owner, from, to epoch, sizes map[epoch]int64) error {
	prefix := len(eventsOfOwner(owner))
	return s.walkEvents(ctx, "mark_events", owner, from, to, markPage, func(_, _ string, page *clientv3.GetResponse) error {
		for _, kv := range page.Kvs {
			at, ok := readEventsKey(kv.Key[prefix:])
			if !ok {
				continue // it is for verify to report
			}
			sizes[at.epoch] += int64(len(kv.Key) + len(kv.Value))
		}
		return nil
	})
}

// checkMark checks a mark of events.
func (v *verification) checkMark(e entry) {
	m, err := readMark(e.rest, e.value)
	switch {
	case len(e.rest) != epochSize:
		v.report("event_mark", "t/"+v.opaque(e.rest), "key", "the key has not the form of a mark's")
	case err != nil:
		v.report("event_mark", fmt.Sprintf("t/%d", binary.BigEndian.Uint64([]byte(e.rest))), "value", "the value can't be read: %v", err)
	case m.epoch >= v.epoch:
		v.report("event_mark", fmt.Sprintf("t/%d", m.epoch), "epoch", "its epoch is not sealed: the present one is %d", v.epoch)
	}
}
