package payment_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
	"licet/node/store/storetest"
	"licet/payment"
)

// slowBank is a bank whose results arrive late: meanwhile runs after the bank's decision, and before the caller
// gets the result.
type slowBank struct {
	*bank
	meanwhile func()
}

func (b *slowBank) Refund(
	ctx context.Context, o licensing.Order, refund licensing.Payment,
) (payment.State, error) {
	state, says := b.bank.Refund(ctx, o, refund)
	if meanwhile := b.meanwhile; meanwhile != nil {
		b.meanwhile = nil
		meanwhile()
	}
	return state, says
}

// TestOldRefusal: a late refusal must not withdraw a later request for a refund, whose first try may have moved
// the money.
func TestOldRefusal(t *testing.T) {
	w := newFixture(t)
	_, elsewhere := w.open(w.other, w.bank)
	o := w.paid()
	again := func(want error) {
		t.Helper()
		if _, _, err := elsewhere.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); !errors.Is(err,
			want) {
			t.Errorf("meanwhile: %v, want %v", err, want)
		}
	}
	slow := &slowBank{bank: w.bank}
	slow.meanwhile = func() {
		again(payment.ErrRefused) // withdraws the request
		again(errDown)            // a new request, which moves the money
	}
	w.bank.next = []answer{{says: payment.ErrRefused}, {says: payment.ErrRefused}, {moves: true, says: errDown}}
	_, desk := w.open(w.store, slow)
	if _, _, err := desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); !errors.Is(err,
		providerFailed) {
		t.Errorf("the bank refused, and Refund says: %v", err)
	}
	if w.bank.returned[o.OrderNo] != 1 || !w.now(o).RefundDue {
		t.Errorf("the money went back %d times, and a refund is due: %v", w.bank.returned[o.OrderNo],
			w.now(o).RefundDue)
	}
	w.clock.advance(time.Hour)
	if err := elsewhere.SendRefundsDue(w.ctx); err != nil {
		t.Error(err)
	}
	w.check("in the end", o, licensing.OrderRefunded)
	w.verify()
}

// TestStoredRefundIsNotUnavailable: once a refund is stored as due, no error says that nothing was changed.
func TestStoredRefundIsNotUnavailable(t *testing.T) {
	w := newFixture(t)
	for _, says := range []*licensing.Error{licensing.ErrUnavailable, licensing.ErrOverloaded} {
		for name, do := range map[string]func(*payment.Desk) (licensing.Order, error){
			"refund": func(desk *payment.Desk) (licensing.Order, error) {
				o := w.paid()
				_, _, err := desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil)
				return o, err
			},
			"refund under a key": func(desk *payment.Desk) (licensing.Order, error) {
				o := w.paid()
				_, _, err := desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, w.once())
				return o, err
			},
			"payment of a canceled order": func(desk *payment.Desk) (licensing.Order, error) {
				o := w.canceled()
				_, _, err := desk.Pay(w.ctx, o)
				return o, err
			},
		} {
			// The store fails from the request to the provider on.
			store := &storetest.Faulty{Store: w.store, OnCommit: func(change store.Change) (fault storetest.Fault) {
				if o := change.Writes[0].Record.Order; o != nil && o.RefundTries > 0 {
					fault = storetest.Fault{Skip: true, Say: says}
				}
				return fault
			}}
			_, desk := w.open(store, w.bank)
			o, err := do(desk)
			if !w.now(o).RefundDue {
				t.Fatalf("%s: the case is wrong: no refund is due", name)
			}
			if !errors.Is(err, licensing.ErrOutcomeUnknown) || errors.Is(err, says) {
				t.Errorf("%s: the refund is due, and the caller gets: %v", name, err)
			}
			if err := w.desk.SendRefundsDue(w.ctx); err != nil {
				t.Error(err)
			}
			w.check(name, o, licensing.OrderRefunded)
		}
	}
}

// TestFailedReadIsNoReplay: if the request of an Idempotency-Key was withdrawn and can't be stored again, the error
// is no replay of an earlier result.
func TestFailedReadIsNoReplay(t *testing.T) {
	w := newFixture(t)
	o, once := w.paid(), w.once()
	w.bank.next = []answer{{says: payment.ErrRefused}}
	if _, _, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, once); !errors.Is(err,
		providerFailed) {
		t.Fatal(err)
	}
	_, desk := w.open(&storetest.Faulty{Store: w.store, OnCommit: func(store.Change) storetest.Fault {
		return storetest.Fault{Skip: true, Say: licensing.ErrUnavailable}
	}}, w.bank)
	if _, replayed, err := desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, once); replayed ||
		!errors.Is(err, licensing.ErrUnavailable) {
		t.Errorf("replayed %v, %v", replayed, err)
	}
	w.check("withdrawn", o, licensing.OrderPaid)
}

// fragile is a provider that panics over one order.
type fragile struct {
	*bank
	orderNo string
}

func (f fragile) Refund(
	ctx context.Context, o licensing.Order, refund licensing.Payment,
) (payment.State, error) {
	if o.OrderNo == f.orderNo {
		panic(fmt.Sprint("no refund of ", o.OrderNo))
	}
	return f.bank.Refund(ctx, o, refund)
}

// TestPassSurvivesPanic: a provider that panics over one order must not end the process of any node, and must not
// delay the refunds of other orders.
func TestPassSurvivesPanic(t *testing.T) {
	w := newFixture(t)
	orders := []licensing.Order{w.paid(), w.paid(), w.paid()}
	w.bank.next = []answer{{says: errDown}, {says: errDown}, {says: errDown}}
	for _, o := range orders {
		if _, _, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); !errors.Is(err,
			providerFailed) {
			t.Fatal(err)
		}
	}
	w.clock.advance(time.Minute)
	_, desk := w.open(w.other, fragile{w.bank, orders[1].OrderNo})
	if err := desk.SendRefundsDue(w.ctx); !errors.Is(err, licensing.ErrInternal) {
		t.Errorf("the pass says: %v", err)
	}
	w.check("another's", orders[0], licensing.OrderRefunded)
	w.check("another's", orders[2], licensing.OrderRefunded)
	if !w.now(orders[1]).RefundDue {
		t.Error("its own is not due any more")
	}
}

// TestProviderGone: without a provider, a request for a refund that no provider was asked for is withdrawn, even
// after the refusal of an earlier request. If a provider was asked, it is unknown whether the money moved.
func TestProviderGone(t *testing.T) {
	w := newFixture(t)
	poor := payment.NewDesk(w.node, nil)
	for name, c := range map[string]struct {
		says error
		due  bool
	}{
		"refused":      {payment.ErrRefused, false},
		"not answered": {errDown, true},
	} {
		o := w.paid()
		w.bank.next = []answer{{says: c.says}}
		if _, _, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); !errors.Is(err,
			providerFailed) {
			t.Fatal(err)
		}
		for range 2 {
			if _, _, err := poor.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); !errors.Is(err,
				licensing.ErrPaymentNotConfigured) {
				t.Errorf("%s: %v", name, err)
			}
			if due := w.now(o).RefundDue; due != c.due {
				t.Errorf("%s: a refund is due: %v, want %v", name, due, c.due)
			}
		}
	}
	w.verify()
}

// TestProviderReplaced: the provider that an owner has now is not asked for a payment of the owner's earlier provider.
// Both a request and the sweep end as without a provider.
func TestProviderReplaced(t *testing.T) {
	w := newFixture(t)
	_, till := w.open(w.store, newTill(w.clock.now))
	o := w.paid()
	for range 2 {
		if _, _, err := till.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); !errors.Is(err,
			licensing.ErrPaymentNotConfigured) {
			t.Errorf("%v", err)
		}
		if w.now(o).RefundDue {
			t.Error("a refund is due")
		}
	}
	if _, _, _, err := w.node.RequestRefund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := till.SendRefundsDue(w.ctx); !errors.Is(err, licensing.ErrPaymentNotConfigured) {
		t.Errorf("the sweep returns %v", err)
	}
	if w.now(o).RefundDue {
		t.Error("after the sweep, a refund is due")
	}
	w.check("the provider is replaced", o, licensing.OrderPaid)
	w.verify()
}

// TestPassAfterAnother: a pass finds a refund that another node tries first. The other node reports the result;
// this pass neither calls the provider nor returns an error.
func TestPassAfterAnother(t *testing.T) {
	w := newFixture(t)
	o := w.paid()
	w.bank.next = []answer{{says: errDown}, {says: errDown}}
	if _, _, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); !errors.Is(err,
		providerFailed) {
		t.Fatal(err)
	}
	w.clock.advance(time.Minute)
	first := true
	_, late := w.open(&storetest.Faulty{Store: w.other, OnLoad: func([]store.Want) error {
		if first {
			first = false
			if err := w.desk.SendRefundsDue(w.ctx); !errors.Is(err, providerFailed) {
				t.Errorf("the pass before says: %v", err)
			}
		}
		return nil
	}}, w.bank)
	if err := late.SendRefundsDue(w.ctx); err != nil || first {
		t.Errorf("the pass says: %v", err)
	}
	if w.bank.asked[o.OrderNo] != 2 {
		t.Errorf("the bank was asked %d times", w.bank.asked[o.OrderNo])
	}
}
