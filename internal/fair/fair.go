package fair

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
)

// ErrFull reports that too many callers wait for a place already.
var ErrFull = errors.New("too many callers wait for a place")

// Places is a number of places that owners share. An owner may have as many places as are still free, so an owner
// alone takes half of the places, and every other owner finds one. Places is safe for concurrent use. Make it with
// [New].
type Places[K comparable] struct {
	each int // the most places of one owner

	mu          sync.Mutex
	free        int
	freeWaiting int             // how many more callers may wait
	owners      map[K]*owner[K] // who have places, or wait for places
	turns       []*owner[K]     // who wait, in the order in which they get a place
}

// owner is an owner who has places, or waits for places.
type owner[K comparable] struct {
	key     K
	held    int
	waiting []chan struct{} // closed when the caller has a place; the caller who came first is first
}

// Config configures [Places].
type Config struct {
	Places  int // how many there are
	Each    int // the most places of one owner; 0: only the places that are free limit the owner
	Waiting int // how many callers of Enter may wait; an owner may have as many waiting as may still join them
}

// New returns places that are all free.
func New[K comparable](cfg Config) *Places[K] {
	if cfg.Each == 0 {
		cfg.Each = cfg.Places
	}
	return &Places[K]{
		each: cfg.Each, free: cfg.Places, freeWaiting: cfg.Waiting, owners: make(map[K]*owner[K]),
	}
}

// NewLocks returns Places with one place for each owner: a lock for each owner.
func NewLocks[K comparable]() *Places[K] {
	return New[K](Config{Places: math.MaxInt, Each: 1, Waiting: math.MaxInt})
}

// TryEnter takes a place for an owner, and reports whether the owner may have one now. If so, Leave must follow.
func (p *Places[K]) TryEnter(key K) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.owner(key)
	if p.mayEnter(o) {
		p.enter(o)
		return true
	}
	p.forget(o)
	return false
}

// Enter takes a place for an owner. If the owner may not have one now, Enter waits until the owner may, or until ctx
// ends. Owners who wait take turns. After a nil error, Leave must follow. Enter returns [ErrFull] if no more callers
// may wait, and the error of ctx.
func (p *Places[K]) Enter(ctx context.Context, key K) error {
	entered, err := p.enterOrWait(key)
	if entered == nil {
		return err
	}
	select {
	case <-entered:
		return nil
	case <-ctx.Done():
		p.giveUp(key, entered)
		return ctx.Err()
	}
}

// Leave gives a place of an owner back.
func (p *Places[K]) Leave(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave(p.owners[key])
}

// Waiting returns how many callers of Enter wait for owners.
func (p *Places[K]) Waiting() (callers int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.turns {
		callers += len(o.waiting)
	}
	return callers
}

// enterOrWait takes a place, or returns the channel that is closed when the caller has one.
func (p *Places[K]) enterOrWait(key K) (entered chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.owner(key)
	if p.mayEnter(o) {
		p.enter(o)
		return nil, nil
	}
	if len(o.waiting) >= p.freeWaiting {
		p.forget(o)
		return nil, ErrFull
	}
	if len(o.waiting) == 0 {
		p.turns = append(p.turns, o)
	}
	p.freeWaiting--
	entered = make(chan struct{})
	o.waiting = append(o.waiting, entered)
	return entered, nil
}

// giveUp ends the wait of a caller, who may have got a place at the same moment.
func (p *Places[K]) giveUp(key K, entered chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.owners[key]
	i := slices.Index(o.waiting, entered)
	if i < 0 {
		p.leave(o)
		return
	}
	p.stopWaiting(o, i)
	if len(o.waiting) == 0 {
		turn := slices.Index(p.turns, o)
		p.turns = slices.Delete(p.turns, turn, turn+1)
	}
	p.forget(o)
}

// The caller of what follows holds mu.

func (p *Places[K]) owner(key K) *owner[K] {
	o := p.owners[key]
	if o == nil {
		o = &owner[K]{key: key}
		p.owners[key] = o
	}
	return o
}

// forget drops an owner who has no place and waits for none.
func (p *Places[K]) forget(o *owner[K]) {
	if o.held == 0 && len(o.waiting) == 0 {
		delete(p.owners, o.key)
	}
}

func (p *Places[K]) mayEnter(o *owner[K]) bool { return o.held < min(p.free, p.each) }

func (p *Places[K]) enter(o *owner[K]) {
	p.free--
	o.held++
}

func (p *Places[K]) stopWaiting(o *owner[K], i int) {
	o.waiting = slices.Delete(o.waiting, i, i+1)
	p.freeWaiting++
}

// leave frees a place of an owner and admits waiting callers. The search for the next owner passes only owners who have
// places, so the search is short, however many owners wait.
func (p *Places[K]) leave(o *owner[K]) {
	p.free++
	o.held--
	for p.free > 0 {
		turn := slices.IndexFunc(p.turns, p.mayEnter)
		if turn < 0 {
			break
		}
		next := p.turns[turn]
		p.turns = slices.Delete(p.turns, turn, turn+1)
		entered := next.waiting[0]
		p.stopWaiting(next, 0)
		p.enter(next)
		close(entered)
		if len(next.waiting) > 0 {
			p.turns = append(p.turns, next)
		}
	}
	p.forget(o)
}
