package kv

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

const (
	// markAfter is the age of the latest mark at which a sweep makes another. Events are kept longer by at most this
	// time.
	markAfter = 10 * time.Minute
	// markRevisions is the number of the store's revisions after which a sweep makes a mark sooner.
	markRevisions = 20_000
	// marksPage is how many marks are read at a time: 0.8 MB.
	marksPage = 20_000
)

// retentionMarks reads all marks, the oldest first, page by page. With events kept for 30 days there are 4,320 marks,
// one every markAfter. If the store makes more than 33 revisions a second, with or without events, there is one mark
// for every markRevisions: 38,880 at 300 revisions a second, which take 1.5 MB, at 40 bytes each. One node that sweeps
// once a minute makes at most 43,200 marks; several nodes may make more. at is the store's revision at the beginning.
// Marks that can't be read are left out: the next mark covers their events too.
func (s *retention) retentionMarks(ctx context.Context) (retentionMarks []layout.RetentionMark, at int64, err error) {
	end := clientv3.GetPrefixRangeEnd(keyspace.MarksPrefix)
	for next, more := keyspace.MarksPrefix, true; more; {
		page, err := s.etcd.Page(ctx, "list_marks", next, end, marksPage, 0)
		if err != nil {
			return nil, 0, err
		}
		if at == 0 {
			at = page.Header.Revision
		}
		for _, kv := range page.Kvs {
			next = etcd.After(kv.Key)
			mark, err := layout.DecodeMark(string(kv.Key[len(keyspace.MarksPrefix):]), kv.Value)
			if !s.etcd.Unreadable(string(kv.Key), fmt.Sprintf("cell/t/%d", mark.Epoch), err) {
				retentionMarks = append(retentionMarks, mark)
			}
		}
		more = page.More && len(page.Kvs) > 0
	}
	return retentionMarks, at, nil
}

// markEvents makes a mark after the closed epochs, if a mark is due, and returns all marks. retentionMarks were read
// from the revision marksAt of the store on. If another node makes a mark first, that mark counts.
func (s *retention) markEvents(
	ctx context.Context, now time.Time, owners []licensing.Owner, state feedState,
	retentionMarks []layout.RetentionMark, marksAt int64, g layout.SpanLimit,
) ([]layout.RetentionMark, error) {
	latest := layout.RetentionMark{Epoch: state.trimmedEpoch}
	if len(retentionMarks) > 0 {
		latest = retentionMarks[len(retentionMarks)-1]
		if now.Sub(latest.At) < markAfter && state.epoch <= latest.Epoch+markRevisions {
			return retentionMarks, nil
		}
	}
	mark := layout.RetentionMark{Epoch: state.epoch - 1, At: now, Measured: true}
	if state.epoch == 0 || mark.Epoch <= latest.Epoch {
		return retentionMarks, nil
	}
	from := state.trimmedEpoch + 1
	for _, m := range retentionMarks {
		if m.Measured {
			from = max(from, m.Epoch+1)
		}
	}
	if err := s.measureEvents(ctx, owners, measuring{from, state.epoch, state.trimmedEpoch, g, now}); err != nil {
		return nil, err
	}
	// An unreadable mark may exist, so the compare must not demand that no mark exists.
	later := clientv3.ModRevision(keyspace.MarkKey(latest.Epoch +
		1)).WithRange(clientv3.GetPrefixRangeEnd(keyspace.MarksPrefix))
	response, err := s.etcd.Txn(ctx, "mark_events", []clientv3.Cmp{clientv3.Compare(later, "<", marksAt+1)},
		[]clientv3.Op{clientv3.OpPut(keyspace.MarkKey(mark.Epoch), string(mark.Encode()))}, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
	}
	if !response.Succeeded {
		marks, _, err := s.retentionMarks(ctx)
		return marks, err
	}
	return append(retentionMarks, mark), nil
}

const (
	// measurePage is how many keys of events one request reads to measure them.
	measurePage = 200
	// measureOwners is how many owners one request covers: for each owner it reads the ledger, and counts the keys of
	// new events.
	measureOwners = etcd.MaxOps / 2
	// countWidth bounds the epochs in one such count: etcd writes nothing while it counts. A pass over
	// more epochs reads each owner's events slice by slice instead.
	countWidth = 4 * markRevisions
)

// measuring is a pass that counts the bytes of events into their owners' ledgers.
type measuring struct {
	from, to     keyspace.Epoch // events before from are measured or swept; to is not closed
	trimmedEpoch keyspace.Epoch // of all owners
	grain        layout.SpanLimit
	now          time.Time
}

// measureEvents brings the ledgers of owners up to date. An owner without new events
// costs a share of a request, and no write. It is safe for several nodes at a time.
func (s *retention) measureEvents(ctx context.Context, owners []licensing.Owner, m measuring) error {
	for some := range slices.Chunk(owners, measureOwners) {
		if err := s.measureSome(ctx, some, m); err != nil {
			return err
		}
	}
	return nil
}

func (s *retention) measureSome(ctx context.Context, owners []licensing.Owner, m measuring) error {
	for range sweepTries {
		var reads, puts []clientv3.Op
		var compares []clientv3.Cmp
		for _, owner := range owners {
			reads = append(reads, clientv3.OpGet(keyspace.LedgerKey(owner)))
		}
		counts := m.to-m.from <= countWidth
		for _, owner := range owners {
			if prefix := keyspace.EventsOf(owner); counts {
				reads = append(reads, clientv3.OpGet(prefix+string(keyspace.AppendEpoch(nil, m.from)),
					clientv3.WithRange(prefix+string(keyspace.AppendEpoch(nil, m.to))), clientv3.WithCountOnly()))
			}
		}
		found, err := s.etcd.Txn(ctx, "read_ledgers", nil, reads, nil)
		if err != nil {
			return etcd.Unavailable(err)
		}
		for i, owner := range owners {
			ledger, revision, grown := &layout.Ledger{}, int64(0), false
			if kv := etcd.First(found.Responses, i); kv != nil {
				revision = kv.ModRevision
				ledger, err = layout.DecodeLedger(kv.Value)
			}
			switch {
			case s.unreadableLedger(owner, err):
				grown = true
				ledger, err = s.rebuildLedger(ctx, owner, m)
			case !counts || found.Responses[len(owners)+i].GetResponseRange().Count > 0:
				grown, err = s.measureOwner(ctx, owner, ledger, m)
			}
			if err != nil {
				return err
			}
			if grown {
				key := keyspace.LedgerKey(owner)
				compares = append(compares, clientv3.Compare(clientv3.ModRevision(key), "=", revision))
				puts = append(puts, clientv3.OpPut(key, string(ledger.Encode())))
			}
		}
		if len(puts) == 0 {
			return nil
		}
		done, err := s.etcd.Txn(ctx, "write_ledgers", compares, puts, nil)
		if err != nil {
			return fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
		}
		if done.Succeeded {
			return nil
		}
	}
	return fmt.Errorf("%w: another node measures events too", licensing.ErrUnavailable)
}

// rebuildLedger returns a ledger in place of an owner's ledger that can't be read. Events before the oldest stored
// event count as given up: so a reader that resumes among them gets an error, and does not miss events in silence.
func (s *retention) rebuildLedger(ctx context.Context, owner licensing.Owner, m measuring) (*layout.Ledger, error) {
	oldest, prefix := m.to, len(keyspace.EventsOf(owner))
	first := func(_, _ string, page *clientv3.GetResponse) error {
		oldest = epochIn(page.Kvs[0].Key[prefix:])
		return errEnough
	}
	err := s.walkEvents(ctx, "measure_events", owner, m.trimmedEpoch+1, m.to, 1, first, clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	ledger := &layout.Ledger{TrimmedEpoch: oldest - 1}
	m.from = oldest
	_, err = s.measureOwner(ctx, owner, ledger, m)
	return ledger, err
}

// measureOwner counts an owner's new events into the ledger, and reports whether there are
// any.
func (s *retention) measureOwner(
	ctx context.Context, owner licensing.Owner, ledger *layout.Ledger, m measuring,
) (grown bool, err error) {
	prefix := len(keyspace.EventsOf(owner))
	from := max(m.from, ledger.MeasuredEpoch()+1)
	ledger.Forget(m.trimmedEpoch)
	count := func(_, _ string, page *clientv3.GetResponse) error {
		for _, kv := range page.Kvs {
			at, ok := keyspace.ReadEventsKey(kv.Key[prefix:])
			if !ok {
				continue // verify reports it
			}
			ledger.Add(at.Epoch, int64(len(kv.Key)+len(kv.Value)), m.grain, m.now)
			grown = true
		}
		return nil
	}
	err = s.walkEvents(ctx, "measure_events", owner, from, m.to, measurePage, count)
	if err != nil || !grown {
		return false, err
	}
	ledger.Spans[len(ledger.Spans)-1].Last = m.to - 1
	return true, nil
}
