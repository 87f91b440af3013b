package kv

import (
	"errors"
	"fmt"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/node/store"
)

const (
	// Requests under way at a time, of writes and of reads: two keep etcd busy while its disk syncs, and more would
	// only make the batches smaller. If the waiting items fill a request, more are under way.
	fewFlights  = 2
	mostFlights = 8
	// nestedAfterLoss is how many batches are sent nested after a flat batch was lost.
	// One rival suggests more rivals.
	nestedAfterLoss = 8
	// readAfterLoss is the same for batches of checks.
	readAfterLoss = 8
)

// requests sends the changes and the reads of many callers in requests that the callers share.
type requests struct {
	*epochs
	slots         *slotMap
	writes, reads batcher
	nested        atomic.Int32                   // how many batches to send nested from the start
	checksLost    atomic.Int32                   // how many batches of checks to read from the start
	firstBlock    func(count int) keyspace.Block // see randomBlock
}

func newRequests(e *epochs, slots *slotMap) *requests {
	s := &requests{epochs: e, slots: slots, firstBlock: randomBlock}
	s.writes = batcher{few: fewFlights, most: mostFlights, send: s.guarded(s.sendWrites), apart: true, guard: s.guard}
	s.reads = batcher{few: fewFlights, most: mostFlights, send: s.guarded(s.sendReads), guard: s.guard}
	return s
}

// sendWrites makes the changes of a batch in one request. A flat request has every compare at the top, so one loser
// makes the whole request fail; but it costs etcd and this process less than a request with a nested transaction for
// each change. So sendWrites sends a batch flat first, and nested after a loss.
//
// A request that a fence has refused has changed nothing, and is sent again; see fences.
func (s *requests) sendWrites(batch []*batchItem) {
	s.counts.writes.Observe(float64(len(batch)))
	if s.etcd.Space() == store.SpaceFull {
		if batch = refusePuts(batch); len(batch) == 0 {
			return
		}
	}
	if err := s.payEpoch(batch); err != nil {
		fail(batch, err)
		return
	}
	for range fenceTries {
		top, send, lost := s.fence(batch)
		s.sendLost(lost)
		if len(send) == 0 {
			return
		}
		traceSent(send)
		moved, err := s.sendFenced(top, send)
		if err != nil {
			s.refuse(send, err)
			return
		}
		if !moved {
			return
		}
		batch = send
	}
	fail(batch, errFence)
}

// refusePuts refuses the items of a batch that put a key, and returns the others: a full etcd still executes removals.
func refusePuts(batch []*batchItem) (removals []*batchItem) {
	for _, p := range batch {
		if etcd.Puts(p.then) {
			fail([]*batchItem{p}, etcd.ErrFull)
		} else {
			removals = append(removals, p)
		}
	}
	return removals
}

// fenceTries bounds how often a batch is sent again because a fence has moved. Fences move about once a second.
const fenceTries = 16

// sendFenced makes the changes of a batch, unless a fence has moved. If sendFenced fails, no item has an answer.
func (s *requests) sendFenced(top fenced, batch []*batchItem) (moved bool, err error) {
	if len(batch) == 1 {
		return s.sendAlone(top, batch[0])
	}
	if !s.nestNext(batch) {
		made, moved, err := s.sendFlat(top, batch)
		if made || moved || err != nil {
			return moved, err
		}
		s.metrics.StoreBatchesLost.Inc()
		traceEvent(batch, "batch lost")
		s.nested.Store(nestedAfterLoss)
	}
	return s.sendNested(top, batch)
}

// sendAlone makes the change of one item.
func (s *requests) sendAlone(top fenced, p *batchItem) (moved bool, err error) {
	request := &etcdserverpb.TxnRequest{Compare: p.compares, Failure: etcd.Gets(p.reads)}
	if len(top.gets) > 0 {
		request.Compare = append(top.compares, p.compares...)
		request.Failure = etcd.AppendGets(request.Failure, top.gets, true)
	}
	request.Success = etcd.Branch(p.then, max(len(request.Compare), len(request.Failure)))
	response, err := s.etcd.Transact("swap", request)
	if err != nil {
		return false, err
	}
	r := reply{succeeded: response.Succeeded, revision: response.Header.Revision, responses: response.Responses}
	if !response.Succeeded {
		p.failedCompare = true
		if moved, err := s.movedSince(top, response.Responses[len(p.reads):]); moved || err != nil {
			return moved, err
		}
		r.responses = response.Responses[:len(p.reads)]
	}
	p.answer(r)
	return false, nil
}

// sendLost answers items whose owner has begun or ceased to listen since they were made.
// The answer contains the records as they are now. An earlier attempt in doubt can't land any
// more: the revision of keyspace.ListenKey that it compares is gone.
func (s *requests) sendLost(lost []*batchItem) {
	if len(lost) == 0 {
		return
	}
	request := &etcdserverpb.TxnRequest{}
	for _, p := range lost {
		request.Success = etcd.AppendGets(request.Success, p.reads, false)
	}
	response, err := s.etcd.Transact("swap", request)
	if err != nil {
		fail(lost, err)
		return
	}
	rest := response.Responses
	for _, p := range lost {
		count := len(p.reads)
		p.answer(reply{revision: response.Header.Revision, responses: rest[:count:count]})
		rest = rest[count:]
	}
}

// errPanicked is the error of items whose request ended in a panic. The request may have been sent.
var errPanicked = errors.New("panic")

// guarded answers a batch even if sending it panics.
func (s *requests) guarded(send func([]*batchItem)) func([]*batchItem) {
	return func(batch []*batchItem) {
		if !s.guard.Do("batch", func() { send(batch) }) {
			for _, p := range batch {
				p.answerOnce(reply{err: errPanicked})
			}
		}
	}
}

// nestNext reports whether to send the batch nested at once: an earlier copy of a change may have landed, and then
// the compare of the change fails in a flat request.
func (s *requests) nestNext(batch []*batchItem) bool {
	for _, p := range batch {
		if p.inDoubt {
			return true
		}
	}
	if s.nested.Load() <= 0 {
		return false
	}
	s.nested.Add(-1)
	return true
}

// sendFlat makes all changes of a batch or none. It answers the items only if the batch has landed.
func (s *requests) sendFlat(top fenced, batch []*batchItem) (made, moved bool, err error) {
	response, err := s.etcd.Transact("swap", s.flat(top, batch))
	if err != nil {
		return false, false, err
	}
	if !response.Succeeded {
		noteFailedCompare(batch)
		moved, err := s.movedSince(top, response.Responses[1:])
		return false, moved, err
	}
	for _, p := range batch {
		p.answer(reply{succeeded: true, revision: response.Header.Revision})
	}
	return true, false, nil
}

func (s *requests) flat(top fenced, batch []*batchItem) *etcdserverpb.TxnRequest {
	blocks := s.blocksOf(top.epoch, batch)
	request := &etcdserverpb.TxnRequest{
		Compare: make([]*etcdserverpb.Compare, 0, etcd.MaxOps),
		Success: make([]*etcdserverpb.RequestOp, 0, etcd.MaxOps),
		// Else contains a Get, since an empty branch is answered by any member,
		// without asking the others.
		Failure: etcd.AppendGets(etcd.Gets(batch[0].reads[:1]), top.gets, true),
	}
	request.Compare = append(append(request.Compare, top.compares...), blocks.compares...)
	for _, p := range batch {
		request.Compare = append(request.Compare, p.compares...)
		request.Success = p.appendThen(request.Success)
	}
	request.Success = append(request.Success, blocks.puts...)
	return request
}

// sendNested makes each change of a batch by itself, as a transaction nested in the request's transaction.
func (s *requests) sendNested(top fenced, batch []*batchItem) (moved bool, err error) {
	response, err := s.etcd.Transact("swap", nested(top, batch))
	if err != nil {
		return false, err
	}
	if !response.Succeeded {
		noteFailedCompare(batch)
		if moved, err := s.movedSince(top, response.Responses); moved || err != nil {
			return moved, err
		}
		return true, nil // the fence is back at the revision compared, which should not happen
	}
	for i, p := range batch {
		own := response.Responses[i].GetResponseTxn()
		p.answer(reply{succeeded: own.Succeeded, revision: response.Header.Revision, responses: own.Responses})
	}
	return false, nil
}

func nested(top fenced, batch []*batchItem) *etcdserverpb.TxnRequest {
	children := make([]*etcdserverpb.RequestOp, len(batch))
	for i, p := range batch {
		patchApart(top.epoch, p)
		children[i] = child(p)
	}
	return &etcdserverpb.TxnRequest{Compare: top.compares, Success: children,
		Failure: etcd.AppendGets(nil, top.gets, true)}
}

// refuse answers a batch whose request failed. If etcd has rejected the form of the request, refuse sends each item by
// itself, so that only the invalid item fails.
func (s *requests) refuse(batch []*batchItem, err error) {
	if etcd.Classify(err) != etcd.Rejected || len(batch) == 1 {
		fail(batch, err)
		return
	}
	s.log.Error().Err(err).Int("changes", len(batch)).
		Msg("etcd rejects the form of a batch; the node sends its changes one by one")
	for _, p := range batch {
		s.sendWrites([]*batchItem{p})
	}
}

// fail answers every item of a batch with the error of its request.
func fail(batch []*batchItem, err error) {
	for _, p := range batch {
		if p.failedCompare && etcd.Classify(err) == etcd.Refused {
			p.answer(reply{err: fmt.Errorf("%w: %v", errFailedCompare, err)})
			continue
		}
		p.answer(reply{err: err})
	}
}

// errFailedCompare is the error of items whose latest request was refused, although an earlier request was answered.
// If the network sent that earlier request twice, its first copy may have landed and its second copy failed. So the
// item counts as an item whose answer is lost.
var errFailedCompare = errors.New("the first request had a failed compare, and a later request was refused")

func noteFailedCompare(batch []*batchItem) {
	for _, p := range batch {
		p.failedCompare = true
	}
}

// child is a transaction within another.
func child(p *batchItem) *etcdserverpb.RequestOp {
	return &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestTxn{
		RequestTxn: &etcdserverpb.TxnRequest{Compare: p.compares, Success: p.then, Failure: etcd.Gets(p.reads)},
	}}
}
