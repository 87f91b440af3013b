package payment_test

import (
	"fmt"
	"testing"
	"time"

	"licet"
	"licet/payment"
)

// TestCrashPoints kills a node at every step of what it does between the store and
// the bank, and lets another one go on. In the end the two agree.
func TestCrashPoints(t *testing.T) {
	w := newTown(t)
	_, elsewhere := w.open(w.other, w.bank)
	pass := func(licet.Order) error {
		w.clock.ahead += 2 * time.Hour
		return elsewhere.SendRefundsDue(w.ctx)
	}
	told := func(licet.Order) error { return w.bank.tell(w.ctx, elsewhere) }
	press := func(o licet.Order) error {
		_, _, err := elsewhere.Pay(w.ctx, w.now(o))
		return err
	}
	again := func(o licet.Order) error {
		_, _, err := elsewhere.Refund(w.ctx, owner, o.OrderNo, licet.RequestRefund{}, nil)
		return err
	}
	one := func(status licet.OrderStatus) func(licet.Order) licet.OrderStatus {
		return func(licet.Order) licet.OrderStatus { return status }
	}
	// Whether money was taken before the node died decides what it comes to.
	ifTaken := func(taken, not licet.OrderStatus) func(licet.Order) licet.OrderStatus {
		return func(o licet.Order) licet.OrderStatus {
			if _, is := w.bank.taken[o.OrderNo]; is {
				return taken
			}
			return not
		}
	}
	// Of a refund that was not even noted nobody knows but the one who asked.
	ifWished := func(o licet.Order) licet.OrderStatus {
		if o = w.now(o); o.RefundDue || !o.RefundedAt.IsZero() {
			return licet.OrderRefunded
		}
		return licet.OrderPaid
	}
	expired := func() licet.Order {
		o := w.create()
		w.clock.ahead += 25 * time.Hour
		return o
	}
	pay := func(desk *payment.Desk, o licet.Order) { _, _, _ = desk.Pay(w.ctx, o) }
	refund := func(desk *payment.Desk, o licet.Order) {
		_, _, _ = desk.Refund(w.ctx, owner, o.OrderNo, licet.RequestRefund{}, nil)
	}
	for _, c := range []struct {
		name  string
		make  func() licet.Order
		do    func(*payment.Desk, licet.Order) // the node dies in this
		goOn  []func(licet.Order) error        // others do this then
		want  func(licet.Order) licet.OrderStatus
		least int // steps there are at least
	}{
		{"refund, then a pass", w.paid, refund, []func(licet.Order) error{pass}, ifWished, 8},
		{"refund, then the same call", w.paid, refund, []func(licet.Order) error{again}, one(licet.OrderRefunded), 8},
		{"refund, then the pay page", w.paid, refund, []func(licet.Order) error{press}, ifWished, 8},
		{"pay, then the bank says so", w.create, pay, []func(licet.Order) error{told}, ifTaken(licet.OrderPaid, licet.OrderUnpaid), 4},
		{"pay, then the buyer presses again", w.create, pay, []func(licet.Order) error{press, told}, one(licet.OrderPaid), 4},
		{"pay, then the shop cancels, then the bank says so", w.create, pay, []func(licet.Order) error{
			func(o licet.Order) error { _, _ = elsewhere.Cancel(w.ctx, o); return nil }, told,
		}, func(o licet.Order) licet.OrderStatus {
			if w.now(o).LicenseKey != "" {
				return licet.OrderPaid
			}
			return ifTaken(licet.OrderRefunded, licet.OrderCanceled)(o)
		}, 4},
		{"pay late, then the bank says so", expired, pay, []func(licet.Order) error{told}, ifTaken(licet.OrderPaid, licet.OrderExpired), 4},
		{"pay a canceled order, then the bank says so", w.canceled, pay, []func(licet.Order) error{told}, ifTaken(licet.OrderRefunded, licet.OrderCanceled), 10},
		{"pay a canceled order, then a pass, then the bank says so", w.canceled, pay, []func(licet.Order) error{pass, told}, ifTaken(licet.OrderRefunded, licet.OrderCanceled), 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			steps := 0
			for ; ; steps++ {
				o := c.make()
				f := &fuse{left: steps}
				_, desk := w.open(mortalStore{w.store, f}, mortalBank{w.bank, f})
				c.do(desk, o)
				want := licet.OrderStatus("")
				if c.name == "refund, then a pass" || c.name == "refund, then the pay page" {
					want = c.want(o) // before others go on
				}
				for _, next := range c.goOn {
					if err := next(o); err != nil {
						t.Errorf("killed at step %d: going on: %v", steps, err)
					}
				}
				if want == "" {
					want = c.want(o)
				}
				w.check(fmt.Sprintf("killed at step %d", steps), o, want)
				if !f.dead() {
					break
				}
			}
			if steps < c.least {
				t.Errorf("there were %d steps, want at least %d", steps, c.least)
			}
		})
	}
	w.clock.ahead += 2 * time.Hour
	if err := elsewhere.SendRefundsDue(w.ctx); err != nil {
		t.Error(err)
	}
	w.verify()
}
