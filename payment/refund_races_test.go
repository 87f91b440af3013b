package payment_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"licet"
	"licet/payment"
)

// slowBank is a bank whose answers travel for a while: what happens meanwhile
// happens after it has decided, and before anybody hears of it.
type slowBank struct {
	*bank
	meanwhile func()
}

func (b *slowBank) Refund(ctx context.Context, o licet.Order) error {
	says := b.bank.Refund(ctx, o)
	if meanwhile := b.meanwhile; meanwhile != nil {
		b.meanwhile = nil
		meanwhile()
	}
	return says
}

// TestOldRefusal: a refusal that comes late must not withdraw another wish than the
// one that was refused, whose first try may have moved the money.
func TestOldRefusal(t *testing.T) {
	w := newTown(t)
	_, elsewhere := w.open(w.other, w.bank)
	o := w.paid()
	again := func(want error) {
		t.Helper()
		if _, _, err := elsewhere.Refund(w.ctx, owner, o.OrderNo, "", nil); !errors.Is(err, want) {
			t.Errorf("meanwhile: %v, want %v", err, want)
		}
	}
	slow := &slowBank{bank: w.bank}
	slow.meanwhile = func() {
		again(payment.ErrRefused) // which withdraws the wish
		again(errDown)            // a new wish, whose money moves
	}
	w.bank.next = []answer{{says: payment.ErrRefused}, {says: payment.ErrRefused}, {moves: true, says: errDown}}
	_, desk := w.open(w.store, slow)
	if _, _, err := desk.Refund(w.ctx, owner, o.OrderNo, "", nil); !errors.Is(err, providerFailed) {
		t.Errorf("the bank refused, and Refund says: %v", err)
	}
	if w.bank.returned[o.OrderNo] != 1 || !w.now(o).RefundDue {
		t.Errorf("the money went back %d times, and a refund is due: %v", w.bank.returned[o.OrderNo], w.now(o).RefundDue)
	}
	w.clock.ahead += time.Hour
	if err := elsewhere.SendRefundsDue(w.ctx); err != nil {
		t.Error(err)
	}
	w.check("in the end", o, licet.OrderRefunded)
	w.verify()
}
