package kv

import (
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"licet/kv/internal/etcd"
)

// sendReads makes the reads and checks of a batch in one request, which contains Gets and no writes, and so is
// linearizable.
//
// Checks are compares at the top, like the compares of flat changes: etcd answers all checks with one bit, which costs
// etcd and this process half as much as the revisions of as many keys. Checks nearly always succeed. If one fails,
// the request has read nothing, and sendReads reads revisions instead, also for some batches after that.
func (s *requests) sendReads(batch []*batchItem) {
	s.counts.reads.Observe(float64(len(batch)))
	traceSent(batch)
	succeeded, err := s.sendChecks(batch)
	if err == nil && !succeeded {
		err = s.sendGets(batch)
	}
	if err != nil {
		fail(batch, err)
	}
}

// sendChecks makes the reads of a batch if all of its checks succeed, and answers its items only then.
func (s *requests) sendChecks(batch []*batchItem) (succeeded bool, err error) {
	request := &etcdserverpb.TxnRequest{}
	for _, p := range batch {
		if p.isCheck() {
			request.Compare = append(request.Compare, p.compares...)
		} else {
			request.Success = etcd.AppendGets(request.Success, p.reads, false)
		}
	}
	if len(request.Compare) == 0 || s.readNext() {
		return false, nil
	}
	if len(request.Success) == 0 {
		// Without a Get any member answers, without asking the others.
		request.Success = etcd.AppendGets(nil, batch[0].reads[:1], true)
	}
	response, err := s.etcd.Transact("check", request)
	if err != nil || !response.Succeeded {
		s.checksLost.Store(readAfterLoss)
		return false, err
	}
	rest := response.Responses
	for _, p := range batch {
		r := reply{succeeded: true, revision: response.Header.Revision}
		if !p.isCheck() {
			count := len(p.reads)
			r.responses, rest = rest[:count:count], rest[count:]
		}
		p.answer(r)
	}
	return true, nil
}

// readNext reports whether the next batch of checks should read at once.
func (s *requests) readNext() bool {
	if s.checksLost.Load() <= 0 {
		return false
	}
	s.checksLost.Add(-1)
	return true
}

// sendGets reads all keys of a batch's reads, and the revisions of the keys of its checks.
func (s *requests) sendGets(batch []*batchItem) error {
	ops := make([]*etcdserverpb.RequestOp, 0, etcd.MaxOps)
	for _, p := range batch {
		ops = etcd.AppendGets(ops, p.reads, p.isCheck())
	}
	response, err := s.etcd.Transact("load", &etcdserverpb.TxnRequest{Success: ops})
	if err != nil {
		return err
	}
	rest := response.Responses
	for _, p := range batch {
		count := len(p.reads)
		own := rest[:count:count]
		rest = rest[count:]
		p.answer(reply{succeeded: p.satisfiedBy(own), revision: response.Header.Revision, responses: own})
	}
	return nil
}
