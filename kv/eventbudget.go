package kv

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

const (
	// ledgersPage is how many ledgers are read at a time.
	ledgersPage = 1000
	// cutsAtOnce is how many owners one transaction cuts: it writes a ledger for each
	// owner, and cell/swept.
	cutsAtOnce = etcd.MaxOps - 1
)

// ledgerBook contains all ledgers, as of one revision of the store.
type ledgerBook struct {
	guard        int64          // the ModRevision of cell/swept
	value        string         // of cell/swept, which a cut writes again
	trimmedEpoch keyspace.Epoch // of all owners
	ledgers      []*ownerLedger
}

// ownerLedger is a ledger with its place in a book.
type ownerLedger struct {
	layout.Ledger
	owner    licensing.Owner
	revision int64 // the ModRevision of its key
	kept     int64 // bytes of the spans that are kept
	next     int   // the first span that is kept
}

// cutEvents cuts the owners with the most events, until the events of all owners fit the
// budget: the store records which of their oldest events they give up, and then removes
// these events. One call removes at most about so many keys.
//
// An owner gives up events only while no owner has more. So such an owner has more than an
// equal share: the budget divided by the number of owners with events. Afterwards the owner
// has less than the share by one span at most. An owner with a share or less loses nothing,
// however much the others write (max-min fairness).
//
// Each transaction that records cuts compares the revision of cell/swept, and writes cell/swept
// with the same value. So each transaction knows all cuts before it, and the cuts of two
// nodes that sweep at the same time don't exceed what is over the budget.
func (s *retention) cutEvents(ctx context.Context, budget int64, most int) (removed int, err error) {
	for range sweepTries {
		book, err := s.readLedgers(ctx)
		if err != nil {
			return 0, err
		}
		recorded, err := s.recordCuts(ctx, book, book.cut(budget))
		if err != nil {
			return 0, err
		}
		if recorded {
			return s.removeCuts(ctx, book, most)
		}
	}
	return 0, fmt.Errorf("%w: another node sweeps events too", licensing.ErrUnavailable)
}

// readLedgers reads all ledgers at one revision.
func (s *retention) readLedgers(ctx context.Context) (*ledgerBook, error) {
	found, err := s.etcd.Page(ctx, "read_swept", keyspace.TrimmedKey, etcd.After(keyspace.TrimmedKey), 1, 0)
	if err != nil {
		return nil, err
	}
	book, revision := &ledgerBook{value: string(keyspace.AppendEpoch(nil, 0))}, found.Header.Revision
	if len(found.Kvs) > 0 {
		kv := found.Kvs[0]
		book.guard, book.value, book.trimmedEpoch = kv.ModRevision, string(kv.Value), s.readTrimmedEpoch(kv)
	}
	err = s.etcd.EachInSlots(ctx, "list_ledgers", etcd.Family(keyspace.LedgersFamily), ledgersPage, revision,
		func(kv *mvccpb.KeyValue) {
			owner, ok := keyspace.OwnerIn(kv.Key, keyspace.LedgersFamily)
			if !ok {
				return // verify reports it
			}
			ledger, err := layout.DecodeLedger(kv.Value)
			if s.unreadableLedger(owner, err) {
				return // the next measurement rebuilds it
			}
			o := &ownerLedger{Ledger: *ledger, owner: owner, revision: kv.ModRevision}
			for i, span := range o.Spans {
				if span.Last <= max(book.trimmedEpoch, o.TrimmedEpoch) {
					o.next = i + 1
				} else {
					o.kept += span.Bytes
				}
			}
			book.ledgers = append(book.ledgers, o)
		})
	return book, err
}

// cut drops the oldest spans in the book, each from the owner that has the most bytes at that moment, until the rest
// fits the budget. It returns the owners that lost spans.
func (b *ledgerBook) cut(budget int64) (cuts []*ownerLedger) {
	total := int64(0)
	var h mostFirst
	for _, o := range b.ledgers {
		if total += o.kept; o.kept > 0 {
			h = append(h, o)
		}
	}
	heap.Init(&h)
	had := make(map[*ownerLedger]bool)
	for total > budget && len(h) > 0 {
		o := h[0]
		if !had[o] {
			had[o], cuts = true, append(cuts, o)
		}
		span := o.Spans[o.next]
		o.next++
		o.TrimmedEpoch, o.kept, total = span.Last, o.kept-span.Bytes, total-span.Bytes
		heap.Fix(&h, 0)
		if h[0].kept == 0 {
			break // no owner has any bytes
		}
	}
	return cuts
}

// mostFirst is a heap of the owners with kept events. The owner with the most is its top.
type mostFirst []*ownerLedger

func (h mostFirst) Len() int { return len(h) }

func (h mostFirst) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[j].kept, h[i].kept), compareOwners(h[i].owner, h[j].owner)) < 0
}

func (h mostFirst) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *mostFirst) Push(o any) { *h = append(*h, o.(*ownerLedger)) }

func (h *mostFirst) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// recordCuts stores which events owners give up, before any of these events is removed. It
// reports false if another node has changed a ledger of a cut, or cell/swept: then the book
// must be read again.
func (s *retention) recordCuts(ctx context.Context, book *ledgerBook, cuts []*ownerLedger) (recorded bool, err error) {
	for some := range slices.Chunk(cuts, cutsAtOnce) {
		compares := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(keyspace.TrimmedKey), "=", book.guard)}
		puts := []clientv3.Op{clientv3.OpPut(keyspace.TrimmedKey, book.value)}
		for _, o := range some {
			key := keyspace.LedgerKey(o.owner)
			compares = append(compares, clientv3.Compare(clientv3.ModRevision(key), "=", o.revision))
			puts = append(puts, clientv3.OpPut(key, string(o.Encode())))
		}
		done, err := s.etcd.Txn(ctx, "cut_events", compares, puts, nil)
		if err != nil {
			return false, fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
		}
		if !done.Succeeded {
			return false, nil
		}
		book.guard = done.Header.Revision
		for _, o := range some {
			o.revision = book.guard
		}
	}
	if len(cuts) > 0 {
		most := cuts[0].owner
		s.log.Warn().Int("owners", len(cuts)).Str("account_id", most.AccountID).Str("mode", string(most.Mode)).
			Msg("events exceed --event-retention-bytes: removing the oldest events of the accounts with the most " +
				"bytes; account_id has the most")
	}
	return true, nil
}

// removeCuts removes the events that owners gave up, and then the spans of these events from their ledgers. After a
// crash in between, the spans show the next sweep which events remain.
func (s *retention) removeCuts(ctx context.Context, book *ledgerBook, most int) (removed int, err error) {
	var empty []*ownerLedger
	for _, o := range book.ledgers {
		if o.MeasuredEpoch() <= book.trimmedEpoch {
			empty = append(empty, o)
			continue
		}
		if !o.Unremoved() {
			continue
		}
		done, err := s.removeEvents(ctx, o.owner, 0, o.TrimmedEpoch+1, most-removed)
		removed += done
		if err != nil || removed >= most {
			return removed, err
		}
		o.Forget(o.TrimmedEpoch)
		key := keyspace.LedgerKey(o.owner)
		// If the ledger has changed since, the next pass finds no events and drops the spans.
		_, err = s.etcd.Txn(ctx, "trim_ledger",
			[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", o.revision)},
			[]clientv3.Op{clientv3.OpPut(key, string(o.Encode()))}, nil)
		if err != nil {
			return removed, fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
		}
	}
	return removed, s.dropLedgers(ctx, empty)
}

// dropLedgers removes ledgers of which every epoch is too old: cell/swept covers them.
func (s *retention) dropLedgers(ctx context.Context, empty []*ownerLedger) error {
	for some := range slices.Chunk(empty, etcd.MaxOps) {
		var compares []clientv3.Cmp
		var deletes []clientv3.Op
		for _, o := range some {
			key := keyspace.LedgerKey(o.owner)
			compares = append(compares, clientv3.Compare(clientv3.ModRevision(key), "=", o.revision))
			deletes = append(deletes, clientv3.OpDelete(key))
		}
		if _, err := s.etcd.Txn(ctx, "drop_ledgers", compares, deletes, nil); err != nil {
			return fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
		}
	}
	return nil
}

const (
	// budgetSpans is about how many spans one owner's events have if they fill the budget: an owner over its share
	// loses whole spans.
	budgetSpans = 64
	// ageSpans is the least number of spans of an owner that writes all the time, within the age for which events are
	// kept. If some events of a span are too old, the span still counts as one.
	ageSpans = 16
)
