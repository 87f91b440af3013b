package kv

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/backoff"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// Every change of a license compares keyspace.ListenKey, so each write of it makes every node send the requests under
// way again. No owner may cause that at its own pace. A change of an owner's endpoints that makes the owner listen, or
// no longer listen, therefore writes a request: keyspace.ListenRequestKey. Any node then moves keyspace.ListenKey for
// all owners that wait, at most once in moveEvery. The change is acknowledged after that move, so every activation that
// begins after the acknowledgment obeys the request.
//
// A request names its owner's wish; the move names the owners and puts or deletes their keys below
// keyspace.ListenersPrefix. Requests up to the fence's moved revision are in effect, and are removed after the move. If
// the mover dies in between, the next mover removes them.
const (
	moveEvery = time.Second
	// moveOwners bounds the owners of one move. The others wait for the next move, in the order of their requests.
	moveOwners = 500
	// moveWaits bounds the look-ups and repeated requests of one owner that wait on a node for the next move, that is
	// for the next write of keyspace.ListenKey. Each of them holds a place that other owners need too.
	moveWaits = 8
	// maxMoveWaits bounds the waiting requests of all owners: 1 in 8 of the places of the largest node.
	maxMoveWaits = 1024
	// moveChild is how many keys one nested transaction of a move writes: etcd.MaxOps counts by depth.
	moveChild = 100
)

// requestListening adds an owner's request to listen, or no longer to listen, to the swap.
func (sw *swap) requestListening(owner licensing.Owner, listens bool) {
	sw.put([]byte(keyspace.ListenRequestKey(owner)), layout.EncodeListenRequest(listens))
	sw.pends = true
}

// awaitMove returns once requests to listen up to a revision of the store are in effect. It moves keyspace.ListenKey
// itself if a move is due and no other request of this store is making one.
func (s *epochs) awaitMove(ctx context.Context, revision int64) error {
	for attempt := 0; ; {
		moved, wait, news := s.fences.nextMove(revision, s.moveEvery)
		if moved {
			return nil
		}
		if wait > 0 {
			if !backoff.SleepUnless(ctx, wait+rand.N(s.moveEvery/20+1), news) { // the nodes shall not all try at once
				return ctx.Err()
			}
			continue
		}
		left := true
		var err error
		select {
		case s.moveTurn <- struct{}{}:
			left, err = s.moveInTurn(ctx, revision)
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
		switch {
		case err == nil && !left:
			return nil // no request waits, so the one of that revision does not
		case err == nil:
		case ctx.Err() != nil || etcd.Classify(err) == etcd.Rejected || errors.Is(err, etcd.ErrFull):
			return err
		default:
			etcd.PauseBeforeResend(ctx, attempt)
			attempt++
		}
	}
}

// nextMove reports whether requests up to a revision of the store are in effect, else how
// long keyspace.ListenKey must rest before its next move, and a channel that closes when keyspace.ListenKey
// moves.
func (f *fences) nextMove(revision int64, every time.Duration) (moved bool, wait time.Duration, news <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &f.listeners
	if l.moved >= revision {
		return true, 0, nil
	}
	return false, every - time.Since(l.learned), l.news
}

// awaitMoves waits for the moves that snapshots of endpoints depend on: no response shows these endpoints before the
// move. If moveWaits calls for an owner wait already, awaitMoves returns licensing.ErrOverloaded.
func (s *epochs) awaitMoves(ctx context.Context, snapshots []store.Snapshot) error {
	for _, snapshot := range snapshots {
		token, _ := snapshot.Token.(*stored)
		if token == nil || token.request == 0 {
			continue
		}
		owner := snapshot.Record.Webhooks.Owner
		if !s.moveWaits.TryEnter(owner) {
			return licensing.ErrOverloaded
		}
		err := s.awaitMove(ctx, token.request)
		s.moveWaits.Leave(owner)
		if err != nil {
			return err
		}
	}
	return nil
}

// moveInTurn calls moveListeners, and then frees the turn that the caller holds.
func (s *epochs) moveInTurn(ctx context.Context, revision int64) (left bool, err error) {
	defer func() { <-s.moveTurn }()
	return s.moveListeners(ctx, revision)
}

// moveListeners moves keyspace.ListenKey for the owners that wait, unless it has moved lately, requests
// up to a revision of the store are in effect, or another node is first. It reports whether any
// owner may still wait. The caller has the turn to move.
func (s *epochs) moveListeners(ctx context.Context, revision int64) (left bool, err error) {
	if moved, wait, _ := s.fences.nextMove(revision, s.moveEvery); moved || wait > 0 {
		return true, nil // another request here has learned of a move, or made one, meanwhile
	}
	response, err := s.etcd.Txn(ctx, "list_listen_requests", nil, []clientv3.Op{
		clientv3.OpGet(keyspace.ListenKey),
		clientv3.OpGet(keyspace.ListenRequests, clientv3.WithPrefix(), clientv3.WithLimit(moveOwners),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend)),
	}, nil)
	if err != nil {
		return true, err
	}
	was := etcd.First(response.Responses, 0)
	if err := s.noteListening(ctx, was, response.Header.Revision); err != nil {
		return true, err
	}
	fence, after := s.readListenFence(was)
	waiting := response.Responses[1].GetResponseRange()
	due, done := splitRequests(waiting.Kvs, waiting.More, fence.Moved)
	if len(due) == 0 {
		return waiting.More, s.removeRequests(ctx, done)
	}
	if _, wait, _ := s.fences.nextMove(due[0].ModRevision, s.moveEvery); wait > 0 {
		return true, nil
	}
	move := layout.ListenMove{After: after}
	for _, kv := range due {
		change, err := readListenRequest(kv)
		if s.etcd.Unreadable(string(kv.Key), "cell/a/"+keyspace.OwnerPath(change.Owner), err) {
			if change.Owner == (licensing.Owner{}) {
				continue // the key names no owner
			}
			change.Listens = true // unwanted events are harmless, missing events are not
		}
		move.Changes = append(move.Changes, change)
	}
	next := fence.Next(move, due[len(due)-1].ModRevision)
	landed, err := s.etcd.Txn(ctx, "move_listeners",
		[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(keyspace.ListenKey), "=", after)},
		moveOps(next, move.Changes), []clientv3.Op{clientv3.OpGet(keyspace.ListenKey)})
	if err != nil {
		return true, err // keyspace.ListenKey is read again: only one move after this revision can land
	}
	if !landed.Succeeded {
		return true, s.noteListening(ctx, etcd.First(landed.Responses, 0), landed.Header.Revision)
	}
	at := landed.Header.Revision
	if !s.fences.advance(at, at, next) {
		return true, s.readListeners(ctx)
	}
	if err := s.removeRequests(ctx, append(done, due...)); err != nil {
		s.log.Debug().Err(err).Msg("can't remove requests to listen that have taken effect; the next move removes them")
	}
	return waiting.More, nil
}

// splitRequests separates requests that wait for a move from requests that are in effect. All requests of one revision
// are due together: if more requests follow, the last revision may be incomplete, and its requests wait.
func splitRequests(found []*mvccpb.KeyValue, more bool, moved int64) (due, done []*mvccpb.KeyValue) {
	first := slices.IndexFunc(found, func(kv *mvccpb.KeyValue) bool { return kv.ModRevision > moved })
	if first < 0 {
		return nil, found
	}
	due, done = found[first:], found[:first:first]
	if last := due[len(due)-1].ModRevision; more && due[0].ModRevision < last {
		due = due[:slices.IndexFunc(due, func(kv *mvccpb.KeyValue) bool { return kv.ModRevision == last })]
	}
	return due, done
}

// moveOps are the operations of a move: the fence, and the listeners' keys in nested
// transactions without a compare.
func moveOps(fence *layout.ListenFence, changes []layout.Listening) []clientv3.Op {
	ops := []clientv3.Op{clientv3.OpPut(keyspace.ListenKey, string(fence.Encode()))}
	for some := range slices.Chunk(changes, moveChild) {
		keys := make([]clientv3.Op, len(some))
		for i, c := range some {
			if c.Listens {
				keys[i] = clientv3.OpPut(keyspace.ListenerKey(c.Owner), "")
			} else {
				keys[i] = clientv3.OpDelete(keyspace.ListenerKey(c.Owner))
			}
		}
		ops = append(ops, clientv3.OpTxn(nil, keys, nil))
	}
	return ops
}

// removeRequests removes requests that are in effect, unless their owners have made new requests.
// Requests that it leaves are harmless: the next mover removes them.
func (s *epochs) removeRequests(ctx context.Context, done []*mvccpb.KeyValue) error {
	for some := range slices.Chunk(done, moveChild) {
		ops := make([]clientv3.Op, len(some))
		for i, kv := range some {
			key := string(kv.Key)
			ops[i] = clientv3.OpTxn(
				[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", kv.ModRevision)},
				[]clientv3.Op{clientv3.OpDelete(key)}, nil)
		}
		if _, err := s.etcd.Txn(ctx, "remove_listen_requests", nil, ops, nil); err != nil {
			return err
		}
	}
	return nil
}

// moveLeft moves keyspace.ListenKey for owners whose node died before the move: their endpoints have
// changed, as keyspace.WebhooksMark tells, and no caller waits for the move.
func (s *epochs) moveLeft(ctx context.Context, mark int64) error {
	if mark == s.fences.markLooked.Load() {
		return nil
	}
	select {
	case s.moveTurn <- struct{}{}:
	default:
		return nil // a request here is about to move it; the next call looks again
	}
	left, err := s.moveInTurn(ctx, math.MaxInt64)
	if err != nil {
		return fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	if !left {
		s.fences.markLooked.Store(mark)
	}
	return nil
}
