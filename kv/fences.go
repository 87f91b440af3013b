package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/fair"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/licensing"
)

// fences caches the two fences: keyspace.EpochKey and keyspace.ListenKey.
type fences struct {
	mu        sync.Mutex
	epoch     keyspace.Epoch
	begun     chan struct{} // closed when epoch changes
	written   int64         // bytes of events that were sent into epoch
	listeners listeners

	owes       atomic.Bool  // OpenEpoch has begun no epoch yet
	markLooked atomic.Int64 // the revision of keyspace.WebhooksMark as of which no owner waits for a move; see moveLeft
}

// epochs opens epochs, and keeps track of the owners that listen and of the owners of events.
type epochs struct {
	*core
	fences    fences
	owners    *knownOwners
	moveEvery time.Duration                 // how long keyspace.ListenKey rests between two moves
	moveTurn  chan struct{}                 // contains one token while this store moves keyspace.ListenKey
	moveWaits *fair.Places[licensing.Owner] // see awaitMoves
}

// known returns the latest known epoch; 0 before the first one.
func (f *fences) known() keyspace.Epoch {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.epoch
}

// noteEpoch stores an epoch that etcd has just answered, and reports whether it differs from the known epoch. After a
// restore of the store the epoch may be lower than the known epoch, and is true all the same.
func (f *fences) noteEpoch(e keyspace.Epoch) (moved bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if moved = f.epoch != e; moved {
		f.begin(e)
	}
	return moved
}

// noteLaterEpoch stores an epoch that was read without a fence, unless it is lower than the known one: it may have been
// read before. If the store was restored instead, the next request that writes events shows it.
func (f *fences) noteLaterEpoch(e keyspace.Epoch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e > f.epoch {
		f.begin(e)
	}
}

// begin notes an epoch that has begun. The caller holds mu.
func (f *fences) begin(e keyspace.Epoch) {
	f.epoch, f.written = e, 0
	close(f.begun)
	f.begun = make(chan struct{})
}

// NewEvents returns a channel that closes once feeds may have more events than a page that was read before the call.
func (s *epochs) NewEvents() <-chan struct{} {
	s.fences.mu.Lock()
	defer s.fences.mu.Unlock()
	return s.fences.begun
}

func (f *fences) bytesIn(e keyspace.Epoch) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.epoch != e {
		return 0
	}
	return f.written
}

// fenced is the part of a batch's request that belongs to the fences.
type fenced struct {
	epoch             keyspace.Epoch
	listenersRevision int64 // the revision of keyspace.ListenKey
	compares          []*etcdserverpb.Compare
	gets              [][]byte // of the keys of compares, in their order
}

// fence prepares a batch for sending: it writes the epoch into the batch's events, and returns the compares for the top
// of the request. lost has the items whose owner is now known to have begun or ceased to listen. They must not be sent;
// see sendLost. All other items are sent unchanged, whichever other owners keyspace.ListenKey has moved for.
func (s *requests) fence(batch []*batchItem) (top fenced, send, lost []*batchItem) {
	top, send, lost = s.fences.split(batch)
	writes, checks, bytes := false, false, 0
	for _, p := range send {
		writes, checks = writes || len(p.eventWrites) > 0, checks || len(p.assumed) > 0
		patchApart(top.epoch, p)
		if len(p.eventWrites) > 0 {
			bytes += p.bytes
		}
	}
	demand := func(key string, revision int64) {
		k := []byte(key)
		top.compares, top.gets = append(top.compares, etcd.Unchanged(k, revision)), append(top.gets, k)
	}
	if writes {
		demand(keyspace.EpochKey, int64(top.epoch))
		s.fences.wrote(top.epoch, bytes)
	}
	if checks {
		demand(keyspace.ListenKey, top.listenersRevision)
	}
	return top, send, lost
}

// split returns the fences as known, the items of a batch whose assumptions agree with them, and the other items.
func (f *fences) split(batch []*batchItem) (top fenced, send, lost []*batchItem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	top.epoch, top.listenersRevision = f.epoch, f.listeners.revision
	for i, p := range batch {
		switch {
		case !f.listeners.agree(p.assumed):
			if lost == nil {
				send = append(send, batch[:i]...)
			}
			lost = append(lost, p)
		case lost != nil:
			send = append(send, p)
		}
	}
	if lost == nil {
		send = batch
	}
	return top, send, lost
}

// wrote adds the bytes of events that were sent into an epoch.
func (f *fences) wrote(e keyspace.Epoch, bytes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.epoch == e {
		f.written += int64(bytes)
	}
}

// fenceOps is how many compares the fences take at the top of a request.
const fenceOps = 2

// movedSince learns from a lost request whether a fence has moved. If one has, the loss says nothing about the changes.
// responses answer top.gets.
func (s *requests) movedSince(top fenced, responses []*etcdserverpb.ResponseOp) (bool, error) {
	moved := false
	for i, key := range top.gets {
		var revision int64
		if kv := etcd.First(responses, i); kv != nil {
			revision = kv.ModRevision
		}
		switch string(key) {
		case keyspace.EpochKey:
			if is := keyspace.Epoch(revision); is.RestoredSince(top.epoch) {
				return true, s.afterRestore(is)
			}
			moved = s.fences.noteEpoch(keyspace.Epoch(revision)) || keyspace.Epoch(revision) != top.epoch || moved
		case keyspace.ListenKey:
			if revision == top.listenersRevision {
				continue
			}
			moved = true
			if err := s.learnListening(context.Background()); err != nil {
				return true, err
			}
		}
	}
	return moved, nil
}

// afterRestore begins an epoch in a store that was restored while this node was up, even if another node has begun one
// there, see keyspace.RevisionBump: the current epoch may be the epoch of events that were lost with the old store. The
// cached owners may be lost too.
func (s *epochs) afterRestore(is keyspace.Epoch) error {
	if err := s.putOwnersAgain(context.Background(), is); err != nil {
		return fmt.Errorf("%w: %w", errFence, err)
	}
	if err := s.closeEpoch(context.Background(), is); err != nil {
		return fmt.Errorf("%w: %w", errFence, err)
	}
	return s.learnListening(context.Background())
}

// errFence answers items that were not sent because a fence could not be read.
const errFence = etcd.NotSent("a fence can't be read")

// OpenEpoch begins an epoch, as every node does at its start, and reads which owners listen. So events recorded after a
// restore never share an epoch with events that were recorded after the backup and are lost. While etcd's alarm NOSPACE
// is on, the store owes the epoch, and begins it before it first records an event.
func (s *epochs) OpenEpoch(ctx context.Context) error {
	if err := s.learnListening(ctx); err != nil {
		return etcd.Unavailable(err)
	}
	if _, err := s.listOwners(ctx); err != nil {
		return err
	}
	err := s.beginEpoch(ctx)
	if errors.Is(err, etcd.ErrFull) || errors.Is(err, rpctypes.ErrNoSpace) {
		s.fences.owes.Store(true)
		return nil
	}
	return err
}

// sealLabel names the requests that begin an epoch in the metrics, which keep the name of earlier versions.
const sealLabel = "seal"

func (s *epochs) beginEpoch(ctx context.Context) error {
	response, err := s.etcd.Txn(ctx, sealLabel, nil, []clientv3.Op{clientv3.OpPut(keyspace.EpochKey, "")}, nil)
	if err != nil {
		return etcd.Unavailable(err)
	}
	s.fences.noteEpoch(keyspace.Epoch(response.Header.Revision))
	return nil
}

// payEpoch begins the epoch that OpenEpoch owes, if a batch has events. If payEpoch fails, the batch must not be sent.
func (s *epochs) payEpoch(batch []*batchItem) error {
	if !s.fences.owes.Load() || !slices.ContainsFunc(batch, func(p *batchItem) bool { return len(p.eventWrites) > 0 }) {
		return nil
	}
	if err := s.beginEpoch(context.Background()); err != nil {
		return fmt.Errorf("%w: %w", errFence, err)
	}
	s.fences.owes.Store(false)
	return nil
}

// closeEpoch begins the epoch after from, unless another node has begun it.
func (s *epochs) closeEpoch(ctx context.Context, from keyspace.Epoch) error {
	response, err := s.etcd.Txn(ctx, sealLabel,
		[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(keyspace.EpochKey), "=", int64(from))},
		[]clientv3.Op{clientv3.OpPut(keyspace.EpochKey, "")}, []clientv3.Op{clientv3.OpGet(keyspace.EpochKey)})
	if err != nil {
		return etcd.Unavailable(err)
	}
	if response.Succeeded {
		s.fences.noteEpoch(keyspace.Epoch(response.Header.Revision))
	} else if kv := etcd.First(response.Responses, 0); kv != nil {
		s.fences.noteEpoch(keyspace.Epoch(kv.ModRevision))
	}
	return nil
}
