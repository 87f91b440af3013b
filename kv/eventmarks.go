package kv

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
)

const (
	// markAfter is how old the latest mark gets before another is made. Events are
	// kept so much longer, at most.
	markAfter = 10 * time.Minute
	// markRevisions is after how many of the store's revisions it is made sooner.
	markRevisions = 20_000
	// marksPage is how many marks are read at a time: 0.8 MB.
	marksPage = 20_000
)

// retentionMarks reads all marks, the oldest first, some at a time. With
// events kept for 30 days there are 4,320, one in markAfter. Where more than 33
// revisions a second are written, whether they tell of events or not, there is one for
// each markRevisions: 38,880 at 300 a second, which take 1.5 MB, at 40 bytes each. One
// node, sweeping once a minute, makes no more than 43,200; several may.
func (s *Store) retentionMarks(ctx context.Context) ([]layout.RetentionMark, error) {
	var marks []layout.RetentionMark
	for next, more := layout.MarksPrefix, true; more; {
		page, err := s.etcd.Page(ctx, "list_marks", next, clientv3.GetPrefixRangeEnd(layout.MarksPrefix), marksPage, 0)
		if err != nil {
			return nil, err
		}
		for _, kv := range page.Kvs {
			mark, err := layout.DecodeMark(string(kv.Key[len(layout.MarksPrefix):]), kv.Value)
			if err != nil {
				return nil, layout.Internal(fmt.Errorf("a mark of events: %w", err))
			}
			marks = append(marks, mark)
			next = etcd.After(kv.Key)
		}
		more = page.More && len(page.Kvs) > 0
	}
	return marks, nil
}

// markEvents makes a mark behind what is sealed, if one is due, and returns all that
// there are. Another node may make a mark first: then that mark counts.
func (s *Store) markEvents(
	ctx context.Context, now time.Time, owners []licensing.Owner, state feedState, marks []layout.RetentionMark, g layout.SpanLimit,
) ([]layout.RetentionMark, error) {
	latest := layout.RetentionMark{Epoch: state.trimmedEpoch}
	if len(marks) > 0 {
		latest = marks[len(marks)-1]
		if now.Sub(latest.At) < markAfter && state.epoch <= latest.Epoch+markRevisions {
			return marks, nil
		}
	}
	mark := layout.RetentionMark{Epoch: state.epoch - 1, At: now, Measured: true}
	if state.epoch == 0 || mark.Epoch <= latest.Epoch {
		return marks, nil
	}
	from := state.trimmedEpoch + 1
	for _, m := range marks {
		if m.Measured {
			from = max(from, m.Epoch+1)
		}
	}
	if err := s.measureEvents(ctx, owners, measuring{from, state.epoch, state.trimmedEpoch, g, now}); err != nil {
		return nil, err
	}
	later := clientv3.CreateRevision(layout.MarkKey(latest.Epoch + 1)).WithRange(clientv3.GetPrefixRangeEnd(layout.MarksPrefix))
	response, err := s.etcd.Txn(ctx, "mark_events", []clientv3.Cmp{clientv3.Compare(later, "=", 0)},
		[]clientv3.Op{clientv3.OpPut(layout.MarkKey(mark.Epoch), string(mark.Encode()))}, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
	}
	if !response.Succeeded {
		return s.retentionMarks(ctx)
	}
	return append(marks, mark), nil
}
