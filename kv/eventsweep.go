package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

const (
	// sweepPage is how many keys of events one transaction removes.
	sweepPage = 500
	// sweepMost bounds about how many keys one call removes.
	sweepMost = 10_000
)

// retention removes events that are too old, or more than the budget allows.
type retention struct{ *feeds }

// SweepEvents removes events that are too old, and, over the budget of bytes, the oldest events of the owners with the
// most, see [retention.cutEvents]. It first records which events go, and then removes them: a reader that resumes among
// these events gets licensing.ErrCursorExpired, so it never misses an event without knowing. Several nodes may sweep at
// the same time, and each continues where another stopped. If any event was removed, more may be due.
func (s *retention) SweepEvents(
	ctx context.Context, now time.Time, keep store.EventRetention,
) (removed int, err error) {
	// The marks are read before cell/swept: so no mark that another node removes is missing
	// above state.trimmed.
	retentionMarks, marksAt, err := s.retentionMarks(ctx)
	if err != nil {
		return 0, err
	}
	state, err := s.feedState(ctx)
	if err != nil {
		return 0, err
	}
	owners, err := s.listOwners(ctx)
	if err != nil {
		return 0, err
	}
	spans := layout.SpanLimit{Bytes: max(keep.Bytes/budgetSpans, 1), Age: keep.Age / ageSpans}
	if retentionMarks, err = s.markEvents(ctx, now, owners, state, retentionMarks, marksAt, spans); err != nil {
		return 0, err
	}
	trimmedEpoch := state.trimmedEpoch
	if end := endOfAge(retentionMarks, trimmedEpoch, now, keep.Age); end > trimmedEpoch {
		if trimmedEpoch, err = s.raiseTrimmedEpoch(ctx, end); err != nil {
			return 0, err
		}
	}
	if removed, err = s.removeAged(ctx, owners, retentionMarks, trimmedEpoch); err != nil || removed >= sweepMost {
		return removed, err
	}
	cut, err := s.cutEvents(ctx, keep.Bytes, sweepMost-removed)
	return removed + cut, err
}

// endOfAge returns the last epoch that is too old, from a mark or from cell/swept.
func endOfAge(
	retentionMarks []layout.RetentionMark, trimmedEpoch keyspace.Epoch, now time.Time, age time.Duration,
) keyspace.Epoch {
	for _, m := range retentionMarks {
		if m.Epoch <= trimmedEpoch {
			continue
		}
		if now.Sub(m.At) <= age {
			break
		}
		trimmedEpoch = m.Epoch
	}
	return trimmedEpoch
}

// raiseTrimmedEpoch records that the events of all owners up to an epoch are too old, and returns
// the recorded epoch: another node may have recorded a later one.
func (s *retention) raiseTrimmedEpoch(ctx context.Context, to keyspace.Epoch) (keyspace.Epoch, error) {
	for range sweepTries {
		response, err := s.etcd.Page(ctx, "read_swept", keyspace.TrimmedKey, etcd.After(keyspace.TrimmedKey), 1, 0)
		if err != nil {
			return 0, err
		}
		revision := int64(0)
		if len(response.Kvs) > 0 {
			if is := s.readTrimmedEpoch(response.Kvs[0]); is >= to {
				return is, nil
			}
			revision = response.Kvs[0].ModRevision
		}
		done, err := s.etcd.Txn(ctx, "raise_swept",
			[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(keyspace.TrimmedKey), "=", revision)},
			[]clientv3.Op{clientv3.OpPut(keyspace.TrimmedKey, string(keyspace.AppendEpoch(nil, to)))}, nil)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
		}
		if done.Succeeded {
			return to, nil
		}
	}
	return 0, fmt.Errorf("%w: another node sweeps events too", licensing.ErrUnavailable)
}

// sweepTries bounds how often a sweep tries again after another node was faster.
const sweepTries = 8

// removeAged removes the events of all owners up to the last swept epoch, mark by mark,
// of at most about sweepMost keys.
func (s *retention) removeAged(
	ctx context.Context, owners []licensing.Owner, retentionMarks []layout.RetentionMark, trimmedEpoch keyspace.Epoch,
) (removed int, err error) {
	from := keyspace.Epoch(0)
	for _, m := range retentionMarks {
		if m.Epoch > trimmedEpoch {
			break
		}
		for _, owner := range owners {
			done, err := s.removeEvents(ctx, owner, from, m.Epoch+1, sweepMost-removed)
			removed += done
			if err != nil || removed >= sweepMost {
				return removed, err
			}
		}
		// Marks before it that can't be read go along: the events up to them are removed.
		upTo := clientv3.OpDelete(keyspace.MarksPrefix, clientv3.WithRange(keyspace.MarkKey(m.Epoch+1)))
		if _, err := s.etcd.Txn(ctx, "sweep_mark", nil, []clientv3.Op{upTo}, nil); err != nil {
			return removed, fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
		}
		from = m.Epoch + 1
	}
	return removed, nil
}

// removeEvents removes an owner's events from one epoch up to another: all of them, or about `most` keys.
func (s *retention) removeEvents(
	ctx context.Context, owner licensing.Owner, from, to keyspace.Epoch, most int,
) (removed int, err error) {
	remove := func(begin, next string, _ *clientv3.GetResponse) error {
		if removed >= most {
			return errEnough
		}
		// The epochs are closed, so no event was added in between.
		response, err := s.etcd.Txn(ctx, "sweep_events", nil,
			[]clientv3.Op{clientv3.OpDelete(begin, clientv3.WithRange(next))}, nil)
		if err != nil {
			return fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
		}
		removed += int(response.Responses[0].GetResponseDeleteRange().Deleted)
		return nil
	}
	err = s.walkEvents(ctx, "sweep_list", owner, from, to, sweepPage, remove, clientv3.WithKeysOnly())
	return removed, err
}

const (
	// sliceKeys is about how many keys of events a slice has that walkEvents reads page by page.
	sliceKeys = 1000
	// firstWidth is how many epochs the first slice has: about as many as there are between two marks, so that one read
	// covers an owner with few events there.
	firstWidth = markRevisions
)

// errEnough ends a walk through events without an error.
var errEnough = errors.New("that is enough")

// walkEvents calls visit with each page of an owner's events from one epoch up to another, with the position at which
// the page begins and the position at which the next page begins. An error of visit ends the walk; after errEnough
// walkEvents returns no error. The options must leave the keys in their order.
//
// For each page etcd counts all keys up to the end of the range. So walkEvents reads the epochs in slices with few
// keys: etcd would count a range of a million events for each of thousands of pages. After a slice with few keys the
// next slice is wider. A slice that turns out to have many keys ends sooner: at half of its remaining epochs, or
// before. walkEvents still visits its page, so it wastes no read, wherever in the slice the keys are. It does not
// divide an epoch.
func (s *retention) walkEvents(
	ctx context.Context, operation string, owner licensing.Owner, from, to keyspace.Epoch, limit int64,
	visit func(begin, next string, page *clientv3.GetResponse) error, opts ...clientv3.OpOption,
) error {
	prefix := keyspace.EventsOf(owner)
	at := func(e keyspace.Epoch) string { return prefix + string(keyspace.AppendEpoch(nil, e)) }
	for width := keyspace.Epoch(firstWidth); from < to; {
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
				width = max((end-from)/keyspace.Epoch(page.Count/sliceKeys+1), 1)
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

// epochIn returns the epoch from the part of an event key behind the owner, also from a part that is too short.
func epochIn(rest []byte) keyspace.Epoch {
	var eight [keyspace.EpochSize]byte
	copy(eight[:], rest)
	return keyspace.Epoch(binary.BigEndian.Uint64(eight[:]))
}
