package payment_test

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/store"
	"licet/payment"
)

// bank is a provider like real ones. It outlives every node. It takes and refunds the money of an order once,
// however often a node asks, and reports a payment until a node acknowledges it.
type bank struct {
	payment.Sandbox
	mu             sync.Mutex
	taken          map[string]string // the reference of each paid order
	returned       map[string]int    // the number of refunds of each order
	asked          map[string]int    // the number of calls of Refund of each order
	unacknowledged map[string]licensing.Order
	next           []answer         // results of the next calls of Refund
	onHang         func()           // called when a call of Refund hangs
	sent           map[string]int64 // by the number of the refund
}

// answer is the result of a call of Refund. Whether the money moves and what the call returns are independent.
type answer struct {
	state payment.Outcome // "": done
	moves bool
	says  error
	hangs bool // until the caller's ctx ends
}

var (
	errDown = errors.New("the bank is down")
	errDead = errors.New("the node is dead")
)

func newBank() *bank {
	return &bank{
		taken:          map[string]string{},
		returned:       map[string]int{},
		asked:          map[string]int{},
		unacknowledged: map[string]licensing.Order{},
		sent:           map[string]int64{},
	}
}

func (b *bank) Begin(_ context.Context, o licensing.Order) (payment.Step, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, before := b.taken[o.OrderNo]; !before {
		b.taken[o.OrderNo], b.unacknowledged[o.OrderNo] = "bank_"+o.OrderNo, o
	}
	return payment.Step{Payment: b.taken[o.OrderNo]}, nil
}

func (b *bank) Refund(ctx context.Context, o licensing.Order, refund licensing.Payment) (payment.State, error) {
	b.mu.Lock()
	b.asked[o.OrderNo]++
	what := answer{moves: true}
	if len(b.next) > 0 {
		what, b.next = b.next[0], b.next[1:]
	}
	if _, taken := b.taken[o.OrderNo]; what.moves && taken && b.returned[o.OrderNo] == 0 {
		b.returned[o.OrderNo] = 1
	}
	if what.moves {
		b.sent[refund.Reference] = refund.Amount
	}
	b.mu.Unlock()
	if what.hangs {
		b.onHang()
		<-ctx.Done()
		return payment.State{}, ctx.Err()
	}
	id := payment.Object{Kind: payment.ObjectRefund, ID: "bank_" + refund.Reference}
	return payment.State{Object: id, Outcome: cmp.Or(what.state, payment.OutcomeDone)}, what.says
}

// report reports all unacknowledged payments to a desk.
func (b *bank) report(ctx context.Context, desk *payment.Desk) error {
	b.mu.Lock()
	unacknowledged := make([]licensing.Order, 0, len(b.unacknowledged))
	for _, o := range b.unacknowledged {
		unacknowledged = append(unacknowledged, o)
	}
	b.mu.Unlock()
	for _, o := range unacknowledged {
		if _, err := desk.Confirm(ctx, o, nodetest.SandboxPayment(b.taken[o.OrderNo])); err != nil {
			return err
		}
		b.mu.Lock()
		delete(b.unacknowledged, o.OrderNo)
		b.mu.Unlock()
	}
	return nil
}

// killSwitch kills a node after a number of steps: all later work of the node has no effect. There is a step
// before and after each write to the store and each call of the bank.
type killSwitch struct {
	mu        sync.Mutex
	left      int
	triggered bool
}

func (f *killSwitch) step() (alive bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.triggered = f.triggered || f.left == 0
	f.left--
	return !f.triggered
}

func (f *killSwitch) dead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.triggered
}

// killableStore is the store of a node with a kill switch.
type killableStore struct {
	store.Store
	killSwitch *killSwitch
}

func (s killableStore) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	if s.killSwitch.dead() {
		return nil, licensing.ErrUnavailable
	}
	return s.Store.Load(ctx, wants...)
}

func (s killableStore) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if !s.killSwitch.step() {
		return store.Outcome{}, licensing.ErrUnavailable
	}
	outcome, err := s.Store.Commit(ctx, change)
	if !s.killSwitch.step() {
		return store.Outcome{}, licensing.ErrOutcomeUnknown
	}
	return outcome, err
}

// killableBank is the bank of a node with a kill switch.
type killableBank struct {
	*bank
	killSwitch *killSwitch
}

func (b killableBank) Begin(ctx context.Context, o licensing.Order) (payment.Step, error) {
	if !b.killSwitch.step() {
		return payment.Step{}, errDead
	}
	step, err := b.bank.Begin(ctx, o)
	if !b.killSwitch.step() {
		return payment.Step{}, errDead
	}
	return step, err
}

func (b killableBank) Refund(
	ctx context.Context, o licensing.Order, refund licensing.Payment,
) (payment.State, error) {
	if !b.killSwitch.step() {
		return payment.State{}, errDead
	}
	state, err := b.bank.Refund(ctx, o, refund)
	if !b.killSwitch.step() {
		return payment.State{}, errDead
	}
	return state, err
}
