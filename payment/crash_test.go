package payment_test

import (
	"fmt"
	"testing"
	"time"

	"licet/licensing"
	"licet/payment"
)

// TestCrashPoints kills a node at every step between the store and the bank, and lets another node continue. In
// the end, store and bank agree.
func TestCrashPoints(t *testing.T) {
	w := newFixture(t)
	_, elsewhere := w.open(w.other, w.bank)
	pass := func(licensing.Order) error {
		w.clock.advance(2 * time.Hour)
		return elsewhere.SendRefundsDue(w.ctx)
	}
	reported := func(licensing.Order) error { return w.bank.report(w.ctx, elsewhere) }
	press := func(o licensing.Order) error {
		w.clock.advance(time.Minute) // the page does not repeat a refund that a node has just tried
		_, _, err := elsewhere.Pay(w.ctx, w.now(o))
		return err
	}
	again := func(o licensing.Order) error {
		_, _, err := elsewhere.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil)
		return err
	}
	one := func(status licensing.OrderStatus) func(licensing.Order) licensing.OrderStatus {
		return func(licensing.Order) licensing.OrderStatus { return status }
	}
	// The status depends on whether the bank took the money before the node died.
	ifTaken := func(taken, not licensing.OrderStatus) func(licensing.Order) licensing.OrderStatus {
		return func(o licensing.Order) licensing.OrderStatus {
			if _, is := w.bank.taken[o.OrderNo]; is {
				return taken
			}
			return not
		}
	}
	// Only the caller knows of a refund that the node has not stored.
	ifWished := func(o licensing.Order) licensing.OrderStatus {
		if o = w.now(o); o.RefundDue || !o.RefundedAt.IsZero() {
			return licensing.OrderRefunded
		}
		return licensing.OrderPaid
	}
	expired := func() licensing.Order {
		o := w.create()
		w.clock.advance(25 * time.Hour)
		return o
	}
	pay := func(desk *payment.Desk, o licensing.Order) { _, _, _ = desk.Pay(w.ctx, o) }
	refund := func(desk *payment.Desk, o licensing.Order) {
		_, _, _ = desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil)
	}
	for _, c := range []struct {
		name  string
		make  func() licensing.Order
		do    func(*payment.Desk, licensing.Order) // the node dies during do
		goOn  []func(licensing.Order) error        // another node then runs these
		want  func(licensing.Order) licensing.OrderStatus
		least int // the smallest number of steps
	}{
		{"refund, then a pass", w.paid, refund, []func(licensing.Order) error{pass}, ifWished, 8},
		{"refund, then the same call", w.paid, refund, []func(licensing.Order) error{again},
			one(licensing.OrderRefunded), 8},
		{"refund, then the pay page", w.paid, refund, []func(licensing.Order) error{press}, ifWished, 8},
		{"pay, then the bank says so", w.create, pay, []func(licensing.Order) error{reported},
			ifTaken(licensing.OrderPaid, licensing.OrderUnpaid), 4},
		{"pay, then the buyer presses again", w.create, pay, []func(licensing.Order) error{press, reported},
			one(licensing.OrderPaid), 4},
		{"pay, then the shop cancels, then the bank says so", w.create, pay, []func(licensing.Order) error{
			func(o licensing.Order) error { _, _ = elsewhere.Cancel(w.ctx, o); return nil }, reported,
		}, func(o licensing.Order) licensing.OrderStatus {
			if !w.now(o).LicenseKey.IsZero() {
				return licensing.OrderPaid
			}
			return ifTaken(licensing.OrderRefunded, licensing.OrderCanceled)(o)
		}, 4},
		{"pay late, then the bank says so", expired, pay, []func(licensing.Order) error{reported},
			ifTaken(licensing.OrderPaid, licensing.OrderExpired), 4},
		{"pay a canceled order, then the bank says so", w.canceled, pay, []func(licensing.Order) error{reported},
			ifTaken(licensing.OrderRefunded, licensing.OrderCanceled), 10},
		{"pay a canceled order, then a pass, then the bank says so", w.canceled, pay,
			[]func(licensing.Order) error{pass, reported}, ifTaken(licensing.OrderRefunded, licensing.OrderCanceled),
			10},
	} {
		t.Run(c.name, func(t *testing.T) {
			steps := 0
			for ; ; steps++ {
				o := c.make()
				f := &killSwitch{left: steps}
				_, desk := w.open(killableStore{w.store, f}, killableBank{w.bank, f})
				c.do(desk, o)
				want := licensing.OrderStatus("")
				if c.name == "refund, then a pass" || c.name == "refund, then the pay page" {
					want = c.want(o) // before another node continues
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
	w.clock.advance(2 * time.Hour)
	if err := elsewhere.SendRefundsDue(w.ctx); err != nil {
		t.Error(err)
	}
	w.verify()
}
