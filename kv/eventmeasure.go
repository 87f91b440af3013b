package kv

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
)

const (
	// measurePage is how many keys of events are read at a time to be measured.
	measurePage = 200
	// measureOwners is how many owners one request asks for: for each it reads the
	// ledger, and counts the keys of new events.
	measureOwners = etcd.MaxOps / 2
	// countWidth is the most epochs that such a count spans, since etcd writes nothing while
	// it counts. A pass over more epochs reads each owner's events slice by slice instead.
	countWidth = 4 * markRevisions
)

// measuring is a pass that counts the bytes of events into their owners' ledgers.
type measuring struct {
	from, to     layout.Epoch // events before from are measured or swept; to is not sealed
	trimmedEpoch layout.Epoch // of all owners
	grain        layout.SpanLimit
	now          time.Time
}

// measureEvents brings the ledgers of owners up to date. An owner without new events
// costs a share of a request, and no write. It is safe for several nodes at a time.
func (s *Store) measureEvents(ctx context.Context, owners []licensing.Owner, m measuring) error {
	for some := range slices.Chunk(owners, measureOwners) {
		if err := s.measureSome(ctx, some, m); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) measureSome(ctx context.Context, owners []licensing.Owner, m measuring) error {
	for range sweptTries {
		var reads, puts []clientv3.Op
		var compares []clientv3.Cmp
		for _, owner := range owners {
			reads = append(reads, clientv3.OpGet(layout.LedgerKey(owner)))
		}
		counts := m.to-m.from <= countWidth
		for _, owner := range owners {
			if prefix := layout.EventsOf(owner); counts {
				reads = append(reads, clientv3.OpGet(prefix+string(layout.AppendEpoch(nil, m.from)),
					clientv3.WithRange(prefix+string(layout.AppendEpoch(nil, m.to))), clientv3.WithCountOnly()))
			}
		}
		found, err := s.etcd.Txn(ctx, "read_ledgers", nil, reads, nil)
		if err != nil {
			return etcd.Unavailable(err)
		}
		for i, owner := range owners {
			if counts && found.Responses[len(owners)+i].GetResponseRange().Count == 0 {
				continue
			}
			ledger, revision := &layout.Ledger{}, int64(0)
			if kv := etcd.First(found.Responses, i); kv != nil {
				revision = kv.ModRevision
				if ledger, err = layout.DecodeLedger(kv.Value); err != nil {
					s.log.Error().Err(err).Str("account_id", owner.AccountID).
						Msg("the ledger of an account's events can't be read; run licet store verify")
					continue
				}
			}
			grown, err := s.measureOwner(ctx, owner, ledger, m)
			if err != nil {
				return err
			}
			if grown {
				key := layout.LedgerKey(owner)
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
	return fmt.Errorf("%w: others measure events too", licensing.ErrUnavailable)
}

// measureOwner counts an owner's new events into the ledger, and reports whether there are
// any.
func (s *Store) measureOwner(
	ctx context.Context, owner licensing.Owner, ledger *layout.Ledger, m measuring,
) (grown bool, err error) {
	prefix := len(layout.EventsOf(owner))
	from := max(m.from, ledger.MeasuredEpoch()+1)
	ledger.Forget(m.trimmedEpoch)
	count := func(_, _ string, page *clientv3.GetResponse) error {
		for _, kv := range page.Kvs {
			at, ok := layout.ReadEventsKey(kv.Key[prefix:])
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
