package kv

import (
	"context"
	"fmt"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/metrics/guard"
	"licet/metrics/tracing"
)

// Limits of one etcd request.
const (
	// maxBatchBytes keeps requests small: etcd keeps thousands of the latest in
	// memory, and its own limit is 1.5 MiB.
	maxBatchBytes = 256 << 10
	// hotOps is the number of operations from which an item is sent alone: a record with very many changes fills a
	// request by itself, and must not delay other records.
	hotOps = 32
	// maxWaiting bounds the items that wait in one batcher.
	maxWaiting = 8192
)

// batchItem is one caller's share of an etcd request: a change, whose reads happen only if a compare fails;
// reads alone; or a check of compares, whose reads are the compared keys, in their order. A batchItem names single
// keys, never ranges.
type batchItem struct {
	compares      []*etcdserverpb.Compare
	then          []*etcdserverpb.RequestOp // puts and deletes
	reads         [][]byte
	bytes         int  // about its size in the request
	inDoubt       bool // an earlier attempt may have landed
	failedCompare bool // etcd has refused an attempt, see errFailedCompare; the sender sets it

	eventWrites []eventWrite // the puts of events among then
	assumed     []layout.Listening

	span *tracing.Span // of the caller; nil: the caller is not traced

	done  chan struct{} // closed once what follows is set
	reply reply

	gone bool // the caller gave up before the item was sent; guarded by the batcher
	sent bool // guarded by the batcher
}

// reply is the result of an item.
type reply struct {
	succeeded bool
	revision  int64 // the store's, as of the request
	responses []*etcdserverpb.ResponseOp
	err       error
}

// width returns how many operations an item has by itself.
func (p *batchItem) width() int { return max(len(p.compares), len(p.then), len(p.reads)) }

// ops returns how many operations an item adds to a flat request, except for the puts of its events, which several
// items may share.
func (p *batchItem) ops() int {
	return max(len(p.compares), len(p.then)-len(p.eventWrites), len(p.reads))
}

// isCheck reports whether an item changes nothing and asks only whether its compares succeed.
func (p *batchItem) isCheck() bool { return len(p.compares) > 0 && len(p.then) == 0 }

// satisfiedBy reports whether the read keys satisfy the compares of the item. An item without compares is always
// satisfied.
func (p *batchItem) satisfiedBy(found []*etcdserverpb.ResponseOp) bool {
	for i, compare := range p.compares {
		var revision int64
		if kv := etcd.First(found, i); kv != nil {
			revision = kv.ModRevision
		}
		if revision != compare.GetModRevision() {
			return false
		}
	}
	return true
}

func (p *batchItem) answer(r reply) {
	p.reply = r
	close(p.done)
}

// answerOnce answers an item unless the item has an answer. Only the sender of an item may call answerOnce.
func (p *batchItem) answerOnce(r reply) {
	select {
	case <-p.done:
	default:
		p.answer(r)
	}
}

// batcher collects items that share a request. A few requests may be under way at a time. If a request is free, an
// item leaves at once and alone. Otherwise items wait, and leave together as soon as a request has returned. So an
// idle store delays no item, and batches grow with the load. If the waiting items fill a request, the batcher sends
// one more, up to most.
type batcher struct {
	few, most int
	send      func([]*batchItem)
	apart     bool // items whose keys meet must not share a request
	guard     *guard.Guard

	mu          sync.Mutex
	waiting     []*batchItem
	ops         int // operations of the waiting items, without their events
	eventKeys   eventKeys
	dispatching int
}

// free reports whether the batcher may send another request.
func (l *batcher) free() bool {
	return l.dispatching < l.few || l.dispatching < l.most && l.ops+l.eventKeys.keys >= etcd.MaxOps
}

// removed subtracts an item that no longer waits.
func (l *batcher) removed(p *batchItem) {
	l.ops -= p.ops()
	l.eventKeys.add(p.eventWrites, -1)
}

// do sends an item with a request and waits for the answer. If ctx ends before the item was sent, the item is never
// sent, and sent is false. If ctx ends later, the item is in doubt.
func (l *batcher) do(ctx context.Context, p *batchItem) (r reply, sent bool) {
	if ctx.Err() != nil {
		return reply{err: ctx.Err()}, false
	}
	p.done = make(chan struct{})
	if err := l.join(p); err != nil {
		return reply{err: err}, false
	}
	select {
	case <-p.done:
		return p.reply, true
	case <-ctx.Done():
	}
	l.mu.Lock()
	p.gone = !p.sent
	l.mu.Unlock()
	if p.gone {
		return reply{err: ctx.Err()}, false
	}
	select {
	case <-p.done:
		return p.reply, true
	default:
		return reply{err: ctx.Err()}, true
	}
}

func (l *batcher) join(p *batchItem) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxWaiting {
		return fmt.Errorf("%w: %d changes wait for the store", licensing.ErrOverloaded, len(l.waiting))
	}
	l.waiting = append(l.waiting, p)
	l.ops += p.ops()
	l.eventKeys.add(p.eventWrites, 1)
	if l.free() {
		l.dispatching++
		l.guard.Start("batcher", l.dispatch, l.abandon)
	}
	return nil
}

// dispatch sends batches for as long as items wait.
func (l *batcher) dispatch() {
	packer := newPacker(l.apart)
	for {
		batch := l.nextBatch(packer)
		if len(batch) == 0 {
			return
		}
		l.send(batch)
		l.mu.Lock()
		l.dispatching--
		again := l.free()
		if again {
			l.dispatching++
		}
		l.mu.Unlock()
		if !again {
			return
		}
	}
}

// abandon ends a request that panicked. The item that caused the panic may still wait, and would end each later
// request, too: so abandon answers all waiting items.
func (l *batcher) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.waiting
	l.waiting, l.ops, l.eventKeys = nil, 0, eventKeys{}
	l.dispatching--
	for _, p := range waiting {
		p.sent = true
		p.answerOnce(reply{err: errPanicked})
	}
}

// nextBatch takes the next batch from the waiting items, first come, first served. An item that does not fit keeps its
// position, and later items may pass it. If no item waits, nextBatch ends the dispatch.
func (l *batcher) nextBatch(packer *packer) []*batchItem {
	l.mu.Lock()
	defer l.mu.Unlock()
	packer.begin()
	var batch []*batchItem
	stay := l.waiting[:0]
	for i, p := range l.waiting {
		if packer.full() {
			stay = append(stay, l.waiting[i:]...)
			break
		}
		switch {
		case p.gone:
			l.removed(p)
		case packer.fits(p):
			l.removed(p)
			p.sent = true
			batch = append(batch, p)
		default:
			stay = append(stay, p)
		}
	}
	clear(l.waiting[len(stay):])
	l.waiting = stay
	if len(batch) == 0 {
		l.dispatching--
	}
	return batch
}
