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

// What one etcd request may hold.
const (
	// maxBatchBytes keeps requests small: etcd holds thousands of the latest in
	// memory, and its own limit is 1.5 MiB.
	maxBatchBytes = 256 << 10
	// hotOps is from how many operations on a part travels alone: a record that
	// is stormed fills a request by itself, and must not hold up others.
	hotOps = 32
	// maxWaiting bounds the parts that wait in one line.
	maxWaiting = 8192
)

// part is one caller's share of an etcd request: a change, whose reads are made
// only where a compare does not hold; reads alone; or a check of compares, whose
// reads are their keys, in their order. It names single keys, never ranges.
type part struct {
	compares []*etcdserverpb.Compare
	then     []*etcdserverpb.RequestOp // puts and deletes
	reads    [][]byte
	bytes    int  // about what it adds to the request
	doubted  bool // an earlier attempt may have been made
	undone   bool // etcd has answered that it has not made it, see errUndone; set by who sends it

	tellings []telling // of the puts in then, those of events
	assumed  []layout.Listening

	span *tracing.Span // of whoever asks; nil: it is not traced

	done  chan struct{} // closed once what follows is set
	reply reply

	gone bool // its caller has given up before it was sent; guarded by the line
	sent bool // guarded by the line
}

// reply is what became of a part.
type reply struct {
	succeeded bool
	revision  int64 // the store's, as of the request
	responses []*etcdserverpb.ResponseOp
	err       error
}

// width is how many operations a part has by itself.
func (p *part) width() int { return max(len(p.compares), len(p.then), len(p.reads)) }

// ops is how many operations a part adds to a flat request, but for those of its events,
// which it may share with others.
func (p *part) ops() int { return max(len(p.compares), len(p.then)-len(p.tellings), len(p.reads)) }

// isCheck tells whether a part changes nothing and asks only whether its compares
// hold.
func (p *part) isCheck() bool { return len(p.compares) > 0 && len(p.then) == 0 }

// holds tells whether what was read of the keys of compares is what they demand; a
// part without compares demands nothing.
func (p *part) holds(found []*etcdserverpb.ResponseOp) bool {
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

func (p *part) answer(r reply) {
	p.reply = r
	close(p.done)
}

// answerOnce answers a part unless it has been answered. Only who sends a part
// may call it.
func (p *part) answerOnce(r reply) {
	select {
	case <-p.done:
	default:
		p.answer(r)
	}
}

// line is where parts wait to travel in one request. A few requests are under
// way at a time; whoever finds one free leaves at once, alone, and what comes
// meanwhile leaves together as soon as a request is back. So an idle store waits
// for nothing, and under load batches grow by themselves. Where what waits fills
// a request, one more is sent, up to most.
type line struct {
	few, most int
	send      func([]*part)
	apart     bool // parts whose keys meet must not share a request
	guard     *guard.Guard

	mu      sync.Mutex
	waiting []*part
	ops     int // of those that wait, without what they tell
	told    toldKeys
	flying  int
}

// free tells whether there is a request to be sent.
func (l *line) free() bool {
	return l.flying < l.few || l.flying < l.most && l.ops+l.told.keys >= etcd.MaxOps
}

// leaves takes off a part that waits no more.
func (l *line) leaves(p *part) {
	l.ops -= p.ops()
	l.told.add(p.tellings, -1)
}

// do takes a part through a request. Where ctx ends before it was sent, it
// never will be, and sent is false; a part that was sent is in doubt then.
func (l *line) do(ctx context.Context, p *part) (r reply, sent bool) {
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

func (l *line) join(p *part) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxWaiting {
		return fmt.Errorf("%w: %d changes wait for the store", licensing.ErrOverloaded, len(l.waiting))
	}
	l.waiting = append(l.waiting, p)
	l.ops += p.ops()
	l.told.add(p.tellings, 1)
	if l.free() {
		l.flying++
		l.guard.Start("line", l.fly, l.abandon)
	}
	return nil
}

// fly sends batches for as long as parts wait.
func (l *line) fly() {
	packer := newPacker(l.apart)
	for {
		batch := l.board(packer)
		if len(batch) == 0 {
			return
		}
		l.send(batch)
		l.mu.Lock()
		l.flying--
		again := l.free()
		if again {
			l.flying++
		}
		l.mu.Unlock()
		if !again {
			return
		}
	}
}

// abandon ends a flight that a panic has ended. What has made it panic may wait still, and would
// end each later flight too: so abandon answers all parts that wait.
func (l *line) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.waiting
	l.waiting, l.ops, l.told = nil, 0, toldKeys{}
	l.flying--
	for _, p := range waiting {
		p.sent = true
		p.answerOnce(reply{err: errPanicked})
	}
}

// board takes the next batch from those who wait, first come, first served. Who
// does not fit stays in place, and others may pass. If no part waits, board ends the flight.
func (l *line) board(packer *packer) []*part {
	l.mu.Lock()
	defer l.mu.Unlock()
	packer.begin()
	var batch []*part
	stay := l.waiting[:0]
	for i, p := range l.waiting {
		if packer.full() {
			stay = append(stay, l.waiting[i:]...)
			break
		}
		switch {
		case p.gone:
			l.leaves(p)
		case packer.fits(p):
			l.leaves(p)
			p.sent = true
			batch = append(batch, p)
		default:
			stay = append(stay, p)
		}
	}
	clear(l.waiting[len(stay):])
	l.waiting = stay
	if len(batch) == 0 {
		l.flying--
	}
	return batch
}
