package kv

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// maxSweep bounds the claims that one transaction removes, with two operations each: etcd allows 128
// operations in a transaction.
const maxSweep = 60

// dueWork finds the work that is due, and removes old claims.
type dueWork struct {
	*core
	claimsFrom atomic.Value // where the sweep of claims goes on, a string; see sweepClaims
}

// SweepClaims removes claims that were made before a moment, the oldest first.
func (s *dueWork) SweepClaims(ctx context.Context, before time.Time) (removed int, err error) {
	return s.sweepClaims(ctx, before, maxSweep)
}

// sweepClaims removes up to limit claims. A claim that was stored again has two places in the index by age: the older
// place goes first, alone, so that no place is left without its claim. A claim that can't be read stays. The next call
// continues after claims that can't be removed. It fails at the end if it met only such claims; the call after that
// begins with the oldest claim again.
func (s *dueWork) sweepClaims(ctx context.Context, before time.Time, limit int) (removed int, err error) {
	var unreadable error
	for {
		from, _ := s.claimsFrom.Load().(string)
		due, next, err := s.dueClaims(ctx, from, before, limit)
		if err != nil {
			return 0, err
		}
		removed, bad, err := s.sweepDue(ctx, due)
		if err != nil || removed > 0 {
			return removed, err
		}
		unreadable = cmp.Or(unreadable, bad)
		// None of these claims can be removed, and the claims after them must not wait.
		if s.claimsFrom.Store(next); next == "" {
			return 0, unreadable
		}
	}
}

// sweepDue removes claims, except unreadable claims; bad is the reason why a claim can't be read.
func (s *dueWork) sweepDue(ctx context.Context, due []dueClaim) (removed int, bad, err error) {
	if len(due) == 0 {
		return 0, nil, nil
	}
	var reads []clientv3.Op
	for _, c := range due {
		reads = append(reads, clientv3.OpGet(c.key))
	}
	found, err := s.etcd.Txn(ctx, "sweep_read", nil, reads, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	var compares []clientv3.Cmp
	var deletes []clientv3.Op
	var keys []removedKey // of deletes
	for i, c := range due {
		kv := etcd.First(found.Responses, i)
		var claim *licensing.Claim
		if kv != nil {
			claim, _, err = layout.DecodeClaim(kv.Value)
			if s.etcd.Unreadable(c.key, "a claim of "+keyspace.OwnerPath(c.owner), err) {
				bad = layout.Internal(err)
				continue // the other claims must not wait for this one
			}
		}
		removed++
		deletes = append(deletes, clientv3.OpDelete(c.place))
		keys = append(keys, removedKey{c.owner, layout.SizeOf(len(c.place), 0)})
		if claim != nil && !claim.CreatedAt.After(c.made) {
			compares = append(compares, clientv3.Compare(clientv3.ModRevision(c.key), "=", kv.ModRevision))
			deletes = append(deletes, clientv3.OpDelete(c.key))
			keys = append(keys, removedKey{c.owner, layout.SizeOf(len(c.key), len(kv.Value))})
		}
	}
	if removed == 0 {
		return 0, bad, nil
	}
	response, err := s.etcd.Txn(ctx, "sweep", compares, deletes, nil)
	if err != nil {
		// Whatever happened, the next sweep continues from there.
		return 0, bad, fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
	}
	if !response.Succeeded {
		return 0, nil, nil
	}
	for i, r := range keys {
		// Another node may have removed the same place.
		if response.Responses[i].GetResponseDeleteRange().Deleted > 0 {
			s.growth.note(r.owner, response.Header.Revision, licensing.Size{}.Minus(r.size))
		}
	}
	return removed, bad, nil
}

// dueClaim is an entry of the index by age whose time is over, and the key of its claim.
type dueClaim struct {
	key, place string
	made       time.Time // as the place says
	owner      licensing.Owner
}

// removedKey is a removed key, and how much less its owner stores without it.
type removedKey struct {
	owner licensing.Owner
	size  licensing.Size
}

// dueClaims returns up to limit claims that are due, in the order of their places from one on, or from the first one,
// and where the claims after them begin; empty if there are none.
func (s *dueWork) dueClaims(
	ctx context.Context, from string, before time.Time, limit int,
) (due []dueClaim, next string, err error) {
	old := etcd.SlotRange{From: keyspace.ClaimAges, To: keyspace.ClaimAges + keyspace.TimeInKey(before)}
	page, err := s.etcd.PageInSlots(ctx, "sweep_list", old, from, limit, 0, clientv3.WithKeysOnly())
	if err != nil {
		return nil, "", err
	}
	for _, kv := range page.Kvs {
		if c, ok := keyspace.ClaimOfAge(string(kv.Key)); ok { // else verify reports it
			due = append(due, dueClaim{c.Key, string(kv.Key), c.Made, c.Owner})
		}
	}
	return due, page.Next, nil
}

// DueSlots returns the slots in which work of a kind is due in a span of time.
func (s *dueWork) DueSlots(
	ctx context.Context, kind licensing.DueKind, span store.DueSpan,
) ([]licensing.Slot, error) {
	return s.etcd.SlotsWith(ctx, "due_slots", dueRange(kind, span))
}

// Due returns the records of a slot with work that is due in a span of time. The range that etcd counts is this span:
// work that is due later costs nothing.
func (s *dueWork) Due(
	ctx context.Context, kind licensing.DueKind, slot licensing.Slot, span store.DueSpan, from string, limit int,
) (store.DuePage, error) {
	due, index := dueRange(kind, span), keyspace.DueIndexOf(kind)
	prefix := keyspace.InSlot(slot, index.Family)
	since := keyspace.InSlot(slot, due.From)
	if from != "" {
		since = prefix + from
	}
	response, err := s.etcd.Page(ctx, "due_list", since, keyspace.InSlot(slot, due.To), int64(limit), 0)
	if err != nil {
		return store.DuePage{}, err
	}
	var page store.DuePage
	for _, kv := range response.Kvs {
		// A key that is not the key of an entry is left to verify.
		if _, ref, ok := index.Decode(slot, string(kv.Key[len(prefix):]), kv.Value); ok {
			page.Records = append(page.Records, ref)
		}
	}
	if response.More && len(response.Kvs) > 0 {
		page.Next = etcd.After(response.Kvs[len(response.Kvs)-1].Key[len(prefix):])
	}
	return page, nil
}

// dueRange returns the part of the index of due work that is a span of time.
func dueRange(kind licensing.DueKind, span store.DueSpan) etcd.SlotRange {
	family := keyspace.DueIndexOf(kind).Family
	at := func(t time.Time) string {
		return family + string(binary.BigEndian.AppendUint64(nil, uint64(max(t.UnixMilli(), 0))))
	}
	due := etcd.Family(family)
	if !span.Since.IsZero() {
		due.From = at(span.Since)
	}
	if !span.Until.IsZero() {
		due.To = at(span.Until.Add(time.Millisecond))
	}
	return due
}

// historyCompactor compacts etcd's history early.
type historyCompactor struct {
	*core
	lastRevision int64 // the store's revision at the latest call; 0 while the data leave enough room
}

// CompactHistory compacts etcd's history up to the revision of the previous call, while the data in use keep the store
// almost full. So a caller that calls about once a minute keeps the history of the last minute: a watch, or a read at a
// revision, that is further behind ends with an error. Current data stay.
// Several nodes may compact the same history. One goroutine at a time may call CompactHistory.
func (s *historyCompactor) CompactHistory(ctx context.Context) error {
	if !s.etcd.DataHigh() {
		s.lastRevision = 0
		return nil
	}
	read, err := s.etcd.List(ctx, "compact", keyspace.CheckKey, clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	until := s.lastRevision
	s.lastRevision = read.Header.Revision
	if until == 0 {
		return nil
	}
	if err := s.etcd.Compact(ctx, until); err != nil {
		return etcd.Unavailable(err)
	}
	s.log.Info().Int64("revision", until).Msg("etcd's history was compacted early, since the store is almost full")
	return nil
}
