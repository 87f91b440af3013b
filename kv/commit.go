package kv

import (
	"context"
	"fmt"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/metrics/tracing"
	"licet/node/store"
)

// Commit makes a change and resolves its outcome: if the answer of an attempt is lost, Commit sends the same swap
// again, under the same number, until an attempt is answered or ctx ends.
func (s *Store) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	span := s.etcd.StartSpan(ctx, "swap")
	outcome, err := s.commit(ctx, change, span)
	s.counts.swap(change, outcome, err)
	endSwap(span, outcome, err)
	return outcome, err
}

func (s *Store) commit(ctx context.Context, change store.Change, span *tracing.Span) (store.Outcome, error) {
	me := s.NextWriter()
	swap, err := s.newSwap(change, me)
	if err != nil {
		return store.Outcome{}, layout.Internal(err)
	}
	if err := s.slots.checkHere(swap.reads...); err != nil {
		return store.Outcome{}, err
	}
	if swap.creates {
		if err := s.registerOwner(ctx, swap.owner); err != nil {
			return store.Outcome{}, etcd.Unavailable(err)
		}
	}
	if err := s.readyForEvents(ctx, swap.eventWrites); err != nil {
		return store.Outcome{}, etcd.Unavailable(err)
	}
	var r reply
	inDoubt := false // an earlier attempt may have landed, or may still land
	attempts := 0
	err = s.etcd.Resend(ctx, "swap", &inDoubt, func() error {
		if attempts++; attempts > 1 {
			traceRetry(span, attempts)
		}
		sent := false
		if r, sent = s.writes.do(ctx, &batchItem{
			compares: swap.compares, then: swap.then, reads: swap.reads,
			bytes: swap.bytes, inDoubt: inDoubt,
			eventWrites: swap.eventWrites, assumed: swap.assumed,
			span: span,
		}); !sent {
			return fmt.Errorf("%w: %w", errNotSent, r.err)
		}
		return r.err
	})
	switch {
	case err != nil:
		if inDoubt {
			s.forget(swap)
		}
		return store.Outcome{}, err
	case !r.succeeded:
		return s.lost(ctx, swap, r, me, inDoubt)
	}
	s.landed(swap, r.revision)
	s.growth.note(swap.owner, r.revision, swap.growth)
	if swap.pends {
		if err := s.awaitMove(ctx, r.revision); err != nil {
			return store.Outcome{}, etcd.GaveUp(true, err) // stored, and not in effect yet
		}
	}
	return store.Outcome{Landed: true, Bytes: swap.bytes}, nil
}

// errNotSent is the error of an attempt that the batcher did not send.
const errNotSent = etcd.NotSent("the change was not sent")

// landed remembers what a swap wrote.
func (s *Store) landed(sw *swap, revision int64) {
	for i := range sw.fresh {
		f := &sw.fresh[i]
		f.slot.note(cachedValue{revision: revision, value: f.value, spilled: f.spilled})
		for _, d := range f.written {
			s.memory.devices.note(f.id, d.id, d.value != nil)
		}
		if f.spilled {
			if due := s.memory.deviceCaches.follow(f, revision); due != nil {
				s.startDeviceScan(f.id, due)
			}
		}
	}
	for _, id := range sw.gone {
		s.memory.licenses.Invalidate(id)
	}
	for i := range sw.touches {
		t := &sw.touches[i]
		s.memory.deviceCaches.touched(t.id, t.device, t.from, revision)
	}
}

// lost returns the winners of a swap that did not land.
func (s *Store) lost(ctx context.Context, sw *swap, r reply, me layout.Writer, inDoubt bool) (store.Outcome, error) {
	rivals, err := s.readSnapshots(sw.queries, r.responses, true)
	if err != nil {
		// The winner's value can't be read, so it is unknown whether the swap lost.
		return store.Outcome{}, layout.Internal(err)
	}
	s.checkSnapshots(rivals)
	outcome, err := sw.explainLoss(rivals, me, inDoubt)
	if err == nil && outcome.Landed {
		// An earlier copy of the swap has landed, not after the revision that its record has now.
		at := r.revision
		if token, exists := rivals[0].Token.(*stored); exists && token.revision > 0 {
			at = token.revision
		}
		s.growth.note(sw.owner, at, sw.growth)
	}
	if err == nil {
		if err := s.awaitMoves(ctx, rivals); err != nil {
			return store.Outcome{}, etcd.GaveUp(inDoubt || outcome.Landed, err)
		}
	}
	for i := range rivals {
		if q := &sw.queries[i]; q.incomplete(rivals[i]) {
			outcome.Rivals = nil
			s.memory.deviceCaches.forgetBefore(q.Ref.LicenseID(), rivals[i].Token.(*stored).revision)
		}
	}
	return outcome, err
}

// forget forgets the devices of the licenses that a swap may have changed.
func (s *Store) forget(sw *swap) {
	for i := range sw.fresh {
		s.memory.deviceCaches.forget(sw.fresh[i].id)
	}
}

// explainLoss reports for a swap that did not land whether an earlier copy of the swap has landed, by its first record.
// Commit calls explainLoss even if no attempt was in doubt: the client may have sent a request twice by itself.
func (sw *swap) explainLoss(rivals []store.Snapshot, me layout.Writer, inDoubt bool) (store.Outcome, error) {
	token, exists := rivals[0].Token.(*stored)
	if sw.removes && !exists && inDoubt {
		// The record is gone, as the change demands, whichever writer removed the record.
		return store.Outcome{Landed: true, Bytes: sw.bytes}, nil
	}
	if exists {
		switch verdict := layout.FindSwap(token.writers, sw.before, me); {
		case verdict == layout.SwapLanded:
			return store.Outcome{Landed: true, Bytes: sw.bytes}, nil
		case verdict == layout.SwapEvicted && inDoubt:
			return store.Outcome{}, etcd.GaveUp(inDoubt, layout.ErrEvicted)
		}
	}
	return store.Outcome{Rivals: rivals}, nil
}
