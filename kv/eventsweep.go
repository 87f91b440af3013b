package kv

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet"
	"licet/node"
)

const (
	// sweepPage is how many keys of events one transaction removes.
	sweepPage = 500
	// sweepMost bounds how many one call does, about.
	sweepMost = 10_000
)

// SweepEvents removes events that are too old, or too many, the oldest first. What is
// to go is said first, for all to see, and then removed: who reads on in it is told
// so, and misses none. Any number of nodes may do it, at the same time too, and each
// goes on where another has ended. Where something was removed there may be more.
func (s *Store) SweepEvents(ctx context.Context, now time.Time, keep node.EventRetention) (removed int, err error) {
	state, err := s.feedState(ctx)
	if err != nil {
		return 0, err
	}
	owners, err := s.listEventOwners(ctx)
	if err != nil {
		return 0, err
	}
	marks, err := s.eventMarks(ctx)
	if err != nil {
		return 0, err
	}
	if marks, err = s.markEvents(ctx, now, owners, state, marks); err != nil {
		return 0, err
	}
	swept := state.swept
	if end := endOfKept(marks, swept, now, keep); end > swept {
		if swept, err = s.raiseSwept(ctx, end); err != nil {
			return 0, err
		}
	}
	from := epoch(0)
	for _, m := range marks {
		if m.epoch > swept {
			break
		}
		done, err := s.removeMarked(ctx, owners, from, m.epoch+1, sweepMost-removed)
		removed += done
		if err != nil || removed >= sweepMost {
			return removed, err
		}
		if _, err := s.txn(ctx, "sweep_mark", nil, []clientv3.Op{clientv3.OpDelete(markKey(m.epoch))}, nil); err != nil {
			return removed, fmt.Errorf("%w: %w", licet.ErrOutcomeUnknown, err)
		}
		from = m.epoch + 1
	}
	return removed, nil
}

// endOfKept gives the last epoch that is not to be kept: a mark's, or what it is now.
func endOfKept(marks []eventMark, swept epoch, now time.Time, keep node.EventRetention) epoch {
	kept := int64(0)
	for _, m := range marks {
		if m.epoch > swept {
			kept += m.bytes
		}
	}
	for _, m := range marks {
		if m.epoch <= swept {
			continue
		}
		if now.Sub(m.at) <= keep.Age && kept <= keep.Bytes {
			break
		}
		swept, kept = m.epoch, kept-m.bytes
	}
	return swept
}

// raiseSwept says that events up to an epoch are not kept any more, and gives what
// is said now: another node may have said more.
func (s *Store) raiseSwept(ctx context.Context, to epoch) (epoch, error) {
	for range sweptTries {
		response, err := s.scan(ctx, "read_swept", sweptKey, sweptKey+"\x00", 1, 0)
		if err != nil {
			return 0, err
		}
		revision := int64(0)
		if len(response.Kvs) > 0 {
			kv := response.Kvs[0]
			if len(kv.Value) != epochSize {
				return 0, broken(fmt.Errorf("the mark of swept events: %w", errMalformed))
			}
			if is := epoch(binary.BigEndian.Uint64(kv.Value)); is >= to {
				return is, nil
			}
			revision = kv.ModRevision
		}
		done, err := s.txn(ctx, "raise_swept",
			[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(sweptKey), "=", revision)},
			[]clientv3.Op{clientv3.OpPut(sweptKey, string(appendEpoch(nil, to)))}, nil)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", licet.ErrOutcomeUnknown, err)
		}
		if done.Succeeded {
			return to, nil
		}
	}
	return 0, fmt.Errorf("%w: others sweep events too", licet.ErrUnavailable)
}

// sweptTries bounds how often a sweep that others were faster than tries again.
const sweptTries = 8

// removeMarked removes events between two marks: all of them, or about so many.
func (s *Store) removeMarked(ctx context.Context, owners []licet.Owner, from, to epoch, most int) (removed int, err error) {
	for _, owner := range owners {
		err := s.walkEvents(ctx, "sweep_list", owner, from, to, sweepPage, func(begin, next string, _ *clientv3.GetResponse) error {
			if removed >= most {
				return errEnough
			}
			// The epochs are sealed: nothing can have come in between.
			response, err := s.txn(ctx, "sweep_events", nil, []clientv3.Op{clientv3.OpDelete(begin, clientv3.WithRange(next))}, nil)
			if err != nil {
				return fmt.Errorf("%w: %w", licet.ErrOutcomeUnknown, err)
			}
			removed += int(response.Responses[0].GetResponseDeleteRange().Deleted)
			return nil
		}, clientv3.WithKeysOnly())
		if err != nil || removed >= most {
			return removed, err
		}
	}
	return removed, nil
}
