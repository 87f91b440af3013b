package payment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
)

// dashboard is a bank where the shop refunds payments itself, and where refunds end and fail by themselves.
type dashboard struct {
	*bank
	mu      sync.Mutex
	refunds map[string]payment.State
	looked  func(id string) // before an answer is returned; nil: nothing happens
}

func newDashboard(b *bank) *dashboard {
	return &dashboard{bank: b, refunds: map[string]payment.State{}}
}

// set stores what has become of a refund with the provider's id. number is ours; empty: made in the dashboard.
func (d *dashboard) set(o licensing.Order, id, number string, amount int64, outcome payment.Outcome) payment.Object {
	d.mu.Lock()
	defer d.mu.Unlock()
	object := payment.Object{Kind: payment.ObjectRefund, ID: id}
	d.refunds[id] = payment.State{Object: object, OrderNo: o.OrderNo, Refund: number, Payment: "bank_" + o.OrderNo,
		Outcome: outcome, Amount: amount, Currency: o.Currency}
	return object
}

func (d *dashboard) Look(_ context.Context, object payment.Object) (payment.State, error) {
	d.mu.Lock()
	state, known := d.refunds[object.ID]
	looked := d.looked
	d.mu.Unlock()
	if !known {
		return payment.State{}, payment.ErrUnknownObject
	}
	if looked != nil {
		looked(object.ID)
	}
	return state, nil
}

// revoked reports whether the license of an order is revoked.
func (w *fixture) revoked(o licensing.Order) bool {
	w.t.Helper()
	view, err := w.node.License(w.ctx, owner, w.now(o).LicenseKey, store.DevicePage{Limit: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	return !view.License.RevokedAt.IsZero()
}

// called delivers a callback twice, to two nodes at once.
func (w *fixture) called(object payment.Object, desks ...*payment.Desk) {
	w.t.Helper()
	var group sync.WaitGroup
	for _, desk := range slices.Concat(desks, desks) {
		group.Go(func() {
			if err := desk.Called(w.ctx, owner, object); err != nil {
				w.t.Errorf("the callback about %s: %v", object.ID, err)
			}
		})
	}
	group.Wait()
}

// TestRefundInDashboard: refunds that the shop makes at the provider are recorded once, and the whole one revokes the
// license.
func TestRefundInDashboard(t *testing.T) {
	w := newFixture(t)
	d := newDashboard(w.bank)
	_, here := w.open(w.store, d)
	_, there := w.open(w.other, d)
	o := w.paid()
	for i, c := range []struct {
		amount int64
		states []payment.Outcome
	}{
		{30, []payment.Outcome{payment.OutcomeDone}},
		{20, []payment.Outcome{payment.OutcomePending, payment.OutcomeFailed}},
		{10, []payment.Outcome{payment.OutcomeFailed}}, // no callback came before it failed
		{70, []payment.Outcome{payment.OutcomePending, payment.OutcomeDone}},
	} {
		for _, outcome := range c.states {
			w.called(d.set(o, fmt.Sprint("re_", i), "", c.amount, outcome), here, there)
			now := w.now(o)
			if pending := outcome == payment.OutcomePending; now.RefundPending != pending ||
				pending && now.OpenRefund() != c.amount {
				t.Errorf("refund %d is %s: %+v", i, outcome, now)
			}
		}
	}
	if amounts, states := w.refunds(o); !slices.Equal(amounts, []int64{30, 20, 70}) ||
		!slices.Equal(states, []licensing.PaymentState{"", "failed", ""}) {
		t.Errorf("the records are of %v, %v", amounts, states)
	}
	if now := w.now(o); now.RefundedAmount() != 100 || now.RefundedAt.IsZero() || !w.revoked(o) || now.Refunds != 3 {
		t.Errorf("in the end the order is %+v", now)
	}
	w.verify()
}

// TestRefundInDashboardMeanwhile: a refund in the dashboard waits until the provider has answered about our own, so no
// more is refunded than was paid.
func TestRefundInDashboardMeanwhile(t *testing.T) {
	w := newFixture(t)
	d := newDashboard(w.bank)
	_, desk := w.open(w.store, d)
	for name, c := range map[string]struct {
		own      int64
		answer   answer // the second answer about our refund
		refunded int64
		fails    bool
	}{
		"ours is refused":  {80, answer{says: payment.ErrRefused}, 40, false},
		"ours is made":     {60, answer{moves: true}, 100, false},
		"ours is pending":  {60, answer{state: payment.OutcomePending}, 0, true},
		"a lost answer":    {60, answer{says: errDown}, 0, true},
		"whole, refused":   {0, answer{says: payment.ErrRefused}, 40, false},
		"more than it may": {80, answer{moves: true}, 80, true},
	} {
		o := w.paid()
		w.bank.next = []answer{{says: errDown}, c.answer}
		if _, _, err := desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{Amount: c.own},
			nil); !errors.Is(err, providerFailed) {
			t.Errorf("%s: the bank is down, and Refund says %v", name, err)
		}
		err := desk.Called(w.ctx, owner, d.set(o, "re_"+o.OrderNo, "", 40, payment.OutcomeDone))
		now := w.now(o)
		if (err != nil) != c.fails || now.RefundedAmount() != c.refunded || now.Refundable() < 0 {
			t.Errorf("%s: %v, %+v", name, err, now)
		}
		if c.refunded == 100 != w.revoked(o) {
			t.Errorf("%s: the license is revoked: %v", name, w.revoked(o))
		}
	}
	w.verify()
}

// TestOwnRefundByCallback: a pending refund ends by a callback, before any sweep.
func TestOwnRefundByCallback(t *testing.T) {
	w := newFixture(t)
	d := newDashboard(w.bank)
	_, here := w.open(w.store, d)
	_, there := w.open(w.other, d)
	for _, outcome := range []payment.Outcome{payment.OutcomeDone, payment.OutcomeFailed} {
		o := w.paid()
		w.bank.next = []answer{{state: payment.OutcomePending}}
		if _, _, err := here.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{By: "key_1"}, nil); err != nil {
			t.Fatal(err)
		}
		number := w.now(o).RefundNo
		for _, outcome := range []payment.Outcome{payment.OutcomePending, outcome} {
			w.called(d.set(o, "bank_"+number, number, 100, outcome), here, there)
		}
		done := outcome == payment.OutcomeDone
		if now := w.now(o); now.RefundDue || now.RefundedAt.IsZero() == done || w.revoked(o) != done ||
			now.Refunds != 1 {
			t.Errorf("%s: %+v", outcome, now)
		}
	}
	w.verify()
}

// TestRefundReturns: a refund that fails after it was made leaves amount_refunded, once; the order stays refunded and
// its license revoked, and the shop may refund again.
func TestRefundReturns(t *testing.T) {
	w := newFixture(t)
	d := newDashboard(w.bank)
	_, here := w.open(w.store, d)
	_, there := w.open(w.other, d)
	o := w.paid()
	for _, amount := range []int64{40, 60} {
		if _, _, err := here.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{Amount: amount}, nil); err != nil {
			t.Fatal(err)
		}
	}
	list, err := w.node.ListPayments(w.ctx, owner, o.OrderNo, store.Page{Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	last := list.Items[0]
	w.called(d.set(o, last.ProviderID, last.Reference, 60, payment.OutcomeFailed), here, there)
	if now := w.now(o); now.RefundedAmount() != 40 || now.RefundedAt.IsZero() || now.Refundable() != 60 ||
		!w.revoked(o) {
		t.Errorf("after the failure: %+v", now)
	}
	if _, states := w.refunds(o); !slices.Equal(states, []licensing.PaymentState{"", "failed"}) {
		t.Errorf("the records are %v", states)
	}
	w.verify()
	if again, _, err := here.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); err != nil ||
		again.RefundedAmount() != 100 || again.Refunds != 3 {
		t.Errorf("another refund: %+v, %v", again, err)
	}
	other := w.paid()
	w.called(d.set(other, "re_other", "", 100, payment.OutcomeDone), here)
	w.called(d.set(other, "re_other", "", 100, payment.OutcomeFailed), here, there)
	if now := w.now(other); now.RefundedAmount() != 0 || now.Refundable() != 100 || !w.revoked(other) {
		t.Errorf("after the failure of a refund in the dashboard: %+v", now)
	}
	w.verify()
}

// TestRefundFailsMeanwhile: a refund fails, and its callback is done, between the question about the refund and the
// record of the answer. The refund counts as failed.
func TestRefundFailsMeanwhile(t *testing.T) {
	w := newFixture(t)
	d := newDashboard(w.bank)
	_, here := w.open(w.store, d)
	_, there := w.open(w.other, d)
	for looks := range 3 {
		o := w.paid()
		var n atomic.Int64
		id := "re_" + o.OrderNo
		d.looked = func(string) {
			if n.Add(1) == int64(looks)+1 {
				w.called(d.set(o, id, "", 100, payment.OutcomeFailed), there)
			}
		}
		w.called(d.set(o, id, "", 100, payment.OutcomeDone), here)
		if now := w.now(o); now.RefundedAmount() != 0 || now.RefundDue {
			t.Errorf("it fails after look %d: %+v", looks, now)
		}
	}
	w.verify()
}

// TestRefundOfCanceledFails: the provider takes the refund of a payment that came after the cancellation, and the
// refund fails later. Then the next try makes another refund, or the shop refunds the payment in the dashboard.
func TestRefundOfCanceledFails(t *testing.T) {
	w := newFixture(t)
	d := newDashboard(w.bank)
	_, desk := w.open(w.store, d)
	for _, byCallback := range []bool{false, true} {
		for _, inDashboard := range []bool{false, true} {
			o := w.canceled()
			w.bank.taken[o.OrderNo] = "bank_" + o.OrderNo
			w.bank.next = []answer{{state: payment.OutcomePending}, {state: payment.OutcomeFailed}}
			o, err := desk.Confirm(w.ctx, o, nodetest.SandboxPayment("bank_"+o.OrderNo))
			if err != nil || !o.RefundPending {
				t.Fatalf("the refund is taken: %v, %+v", err, o)
			}
			if byCallback {
				w.called(d.set(o, "bank_"+o.OrderNo, o.OrderNo, 100, payment.OutcomeFailed), desk)
				w.bank.next = nil
			} else {
				w.clock.advance(time.Minute) // the page does not repeat a refund that a node has just tried
				if _, _, err := desk.Pay(w.ctx, o); !errors.Is(err, providerFailed) {
					t.Errorf("the refund fails: %v", err)
				}
			}
			if now := w.now(o); !now.RefundDue || now.RefundPending || now.RefundedAmount() != 0 {
				t.Errorf("after the refund has failed: %+v", now)
			}
			if inDashboard {
				w.bank.returned[o.OrderNo] = 1
				w.called(d.set(o, "re_"+o.OrderNo, "", 100, payment.OutcomeDone), desk)
			} else {
				w.clock.advance(time.Hour)
				if err := desk.SendRefundsDue(w.ctx); err != nil {
					t.Error(err)
				}
			}
			w.check("in the end", o, licensing.OrderRefunded)
			if _, states := w.refunds(o); !slices.Equal(states, []licensing.PaymentState{"failed", ""}) {
				t.Errorf("the records are %v", states)
			}
		}
	}
	w.verify()
}

// TestRefundOfCanceledFailsAtOnce: the provider makes the refund of a payment that came after the cancellation, and the
// refund has failed when the service learns of it. The provider answers about its number with the failure for good, so
// the next try has another number.
func TestRefundOfCanceledFailsAtOnce(t *testing.T) {
	w := newFixture(t)
	d := newDashboard(w.bank)
	_, desk := w.open(w.store, d)
	for _, byCallback := range []bool{false, true} {
		o := w.canceled()
		w.bank.taken[o.OrderNo] = "bank_" + o.OrderNo
		w.bank.next = []answer{{state: payment.OutcomeFailed}}
		if byCallback {
			w.bank.next = []answer{{says: errDown}}
		}
		_, err := desk.Confirm(w.ctx, o, nodetest.SandboxPayment("bank_"+o.OrderNo))
		if !errors.Is(err, providerFailed) {
			t.Errorf("the refund fails at once: %v", err)
		}
		if byCallback {
			w.called(d.set(o, "bank_"+o.OrderNo, o.OrderNo, 100, payment.OutcomeFailed), desk)
		}
		if now := w.now(o); !now.RefundDue || now.RefundPending || now.RefundNo == "" || now.Refunds != 1 {
			t.Errorf("after the refund has failed: %+v", now)
		}
		w.clock.advance(time.Hour)
		if err := desk.SendRefundsDue(w.ctx); err != nil {
			t.Error(err)
		}
		w.check("in the end", o, licensing.OrderRefunded)
		if _, states := w.refunds(o); !slices.Equal(states, []licensing.PaymentState{"failed", ""}) {
			t.Errorf("the records are %v", states)
		}
	}
	w.verify()
}

// TestRefundInDashboardCrash kills a node at every step of a callback about a whole refund of an order for several
// licenses. The callback comes again to another node, or a sweep continues.
func TestRefundInDashboardCrash(t *testing.T) {
	w := newFixture(t)
	d := newDashboard(w.bank)
	_, elsewhere := w.open(w.other, d)
	for _, sweeps := range []bool{false, true} {
		for steps := 0; ; steps++ {
			o, _, err := w.node.CreateOrder(w.ctx, owner,
				service.NewOrder{ProductID: "pro", Amount: 100, Currency: "USD", Quantity: 3})
			if err == nil {
				o, _, err = w.desk.Pay(w.ctx, o)
			}
			if err != nil {
				t.Fatal(err)
			}
			f := &killSwitch{left: steps}
			_, desk := w.open(killableStore{w.store, f}, d)
			object := d.set(o, "re_"+o.OrderNo, "", 100, payment.OutcomeDone)
			_ = desk.Called(w.ctx, owner, object)
			if sweeps && w.now(o).RefundDue { // the rest is stored
				w.clock.advance(time.Hour)
				err = elsewhere.SendRefundsDue(w.ctx)
			} else {
				err = elsewhere.Called(w.ctx, owner, object)
			}
			if now := w.now(o); err != nil || now.RefundedAmount() != 100 || now.RefundedAt.IsZero() || !w.revoked(o) {
				t.Errorf("killed at step %d: %v, %+v", steps, err, now)
			}
			if !f.dead() {
				break
			}
		}
	}
	w.verify()
}

// TestForeignRefunds: callbacks about refunds of other payments, currencies and modes change nothing.
func TestForeignRefunds(t *testing.T) {
	w := newFixture(t)
	d := newDashboard(w.bank)
	_, desk := w.open(w.store, d)
	o := w.paid()
	for name, edit := range map[string]func(*payment.State){
		"another payment": func(s *payment.State) { s.Payment = "bank_other" },
		"euros":           func(s *payment.State) { s.Currency = "EUR" },
		"live":            func(s *payment.State) { s.Live = true },
		"no order":        func(s *payment.State) { s.OrderNo = "" },
		"nobody's order": func(s *payment.State) {
			s.OrderNo = licensing.NewOrderNo(owner, strings.Repeat("0", 26))
		},
	} {
		object := d.set(o, "re_"+name, "", 100, payment.OutcomeDone)
		state := d.refunds[object.ID]
		edit(&state)
		d.refunds[object.ID] = state
		if err := desk.Called(w.ctx, owner, object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := w.now(o); now.RefundedAmount() != 0 || now.RefundDue {
		t.Errorf("the order is %+v", now)
	}
	w.verify()
}
