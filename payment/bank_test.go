package payment_test

import (
	"context"
	"errors"
	"sync"

	"licet/licensing"
	"licet/node/store"
	"licet/payment"
)

// bank is a provider as real ones are: it outlives every node, takes the money of
// an order once and sends it back once however often it is asked, and says that
// money has come until somebody has taken note of it.
type bank struct {
	mu       sync.Mutex
	taken    map[string]string // of each order that was paid: the reference
	returned map[string]int    // how often money went back
	asked    map[string]int    // how often it was asked to send it back
	unheard  map[string]licensing.Order
	next     []answer // to the next calls of Refund
}

// answer is what becomes of a call of Refund: whether the money moves, and what is
// said of it, are two switches.
type answer struct {
	moves bool
	says  error
	hangs bool // until the caller has given up
}

var (
	errDown = errors.New("the bank is down")
	errDead = errors.New("the node is dead")
)

func newBank() *bank {
	return &bank{taken: map[string]string{}, returned: map[string]int{}, asked: map[string]int{}, unheard: map[string]licensing.Order{}}
}

func (b *bank) Begin(_ context.Context, o licensing.Order) (payment.Step, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, before := b.taken[o.OrderNo]; !before {
		b.taken[o.OrderNo], b.unheard[o.OrderNo] = "bank_"+o.OrderNo, o
	}
	return payment.Step{Payment: b.taken[o.OrderNo]}, nil
}

func (b *bank) Refund(ctx context.Context, o licensing.Order) error {
	b.mu.Lock()
	b.asked[o.OrderNo]++
	what := answer{moves: true}
	if len(b.next) > 0 {
		what, b.next = b.next[0], b.next[1:]
	}
	if _, taken := b.taken[o.OrderNo]; what.moves && taken && b.returned[o.OrderNo] == 0 {
		b.returned[o.OrderNo] = 1
	}
	b.mu.Unlock()
	if what.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return what.says
}

// tell tells a desk of all money that has come and that nobody has taken note of.
func (b *bank) tell(ctx context.Context, desk *payment.Desk) error {
	b.mu.Lock()
	unheard := make([]licensing.Order, 0, len(b.unheard))
	for _, o := range b.unheard {
		unheard = append(unheard, o)
	}
	b.mu.Unlock()
	for _, o := range unheard {
		if _, err := desk.Confirm(ctx, o, b.taken[o.OrderNo]); err != nil {
			return err
		}
		b.mu.Lock()
		delete(b.unheard, o.OrderNo)
		b.mu.Unlock()
	}
	return nil
}

// fuse kills a node after so many steps: what it does after that does not happen.
// A step is what is before, or after, a write to the store or a call of the bank.
type fuse struct {
	mu    sync.Mutex
	left  int
	blown bool
}

func (f *fuse) step() (alive bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blown = f.blown || f.left == 0
	f.left--
	return !f.blown
}

func (f *fuse) dead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.blown
}

// mortalStore is a store as a node with a fuse reaches it.
type mortalStore struct {
	store.Store
	fuse *fuse
}

func (s mortalStore) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	if s.fuse.dead() {
		return nil, licensing.ErrUnavailable
	}
	return s.Store.Load(ctx, wants...)
}

func (s mortalStore) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if !s.fuse.step() {
		return store.Outcome{}, licensing.ErrUnavailable
	}
	outcome, err := s.Store.Commit(ctx, change)
	if !s.fuse.step() {
		return store.Outcome{}, licensing.ErrOutcomeUnknown
	}
	return outcome, err
}

// mortalBank is the bank likewise.
type mortalBank struct {
	*bank
	fuse *fuse
}

func (b mortalBank) Begin(ctx context.Context, o licensing.Order) (payment.Step, error) {
	if !b.fuse.step() {
		return payment.Step{}, errDead
	}
	step, err := b.bank.Begin(ctx, o)
	if !b.fuse.step() {
		return payment.Step{}, errDead
	}
	return step, err
}

func (b mortalBank) Refund(ctx context.Context, o licensing.Order) error {
	if !b.fuse.step() {
		return errDead
	}
	err := b.bank.Refund(ctx, o)
	if !b.fuse.step() {
		return errDead
	}
	return err
}
