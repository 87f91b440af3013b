package payment_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
)

// court is a bank where buyers dispute their payments, for shops that want the licenses suspended meanwhile, or not.
type court struct {
	*dashboard
	suspends bool
}

func (c *court) SuspendOnDispute() bool { return c.suspends }

// rule stores what has become of the dispute of an order's payment.
func (c *court) rule(o licensing.Order, amount int64, outcome payment.Outcome) payment.Object {
	return c.ruleAbout("du_"+o.OrderNo, o, amount, outcome)
}

func (c *court) ruleAbout(id string, o licensing.Order, amount int64, outcome payment.Outcome) payment.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	object := payment.Object{Kind: payment.ObjectDispute, ID: id}
	c.refunds[object.ID] = payment.State{Object: object, Payment: "bank_" + o.OrderNo, Outcome: outcome, Amount: amount,
		Currency: o.Currency}
	return object
}

// licenses returns the states of all licenses of an order, without repetitions.
func (w *fixture) licenses(o licensing.Order) []licensing.Status {
	w.t.Helper()
	now := w.now(o)
	keys, err := w.node.OrderKeys(w.ctx, &now)
	if err != nil {
		w.t.Fatal(err)
	}
	var states []licensing.Status
	for _, key := range keys {
		view, err := w.node.License(w.ctx, owner, key, store.DevicePage{Limit: 1})
		if err != nil {
			w.t.Fatal(err)
		}
		states = append(states, view.License.Status(w.node.Now()))
	}
	slices.Sort(states)
	return slices.Compact(states)
}

// paidFor returns a paid order for several licenses.
func (w *fixture) paidFor(quantity int) licensing.Order {
	w.t.Helper()
	o, _, err := w.node.CreateOrder(w.ctx, owner,
		service.NewOrder{ProductID: "pro", Amount: 100, Currency: "USD", Quantity: quantity})
	if err == nil {
		o, _, err = w.desk.Pay(w.ctx, o)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// TestDisputes: each change of a dispute reaches the order and its licenses once, whatever comes before or after it.
func TestDisputes(t *testing.T) {
	const open, won, lost = payment.OutcomeOpen, payment.OutcomeWon, payment.OutcomeLost
	const valid, suspended, revoked = licensing.NotActivated, licensing.Suspended, licensing.Revoked
	w := newFixture(t)
	c := &court{dashboard: newDashboard(w.bank)}
	_, here := w.open(w.store, c)
	_, there := w.open(w.other, c)
	type step struct {
		says     payment.Outcome
		refunded int64
		licenses licensing.Status
	}
	for name, test := range map[string]struct {
		suspends bool
		quantity int
		amount   int64
		steps    []step
	}{
		"won":                {true, 1, 100, []step{{open, 0, suspended}, {open, 0, suspended}, {won, 0, valid}}},
		"lost":               {true, 1, 100, []step{{open, 0, suspended}, {lost, 100, revoked}}},
		"lost at once":       {true, 3, 100, []step{{lost, 100, revoked}}},
		"lost a part":        {true, 3, 40, []step{{open, 0, suspended}, {lost, 40, valid}}},
		"many licenses":      {true, 3, 100, []step{{open, 0, suspended}, {won, 0, valid}, {open, 0, suspended}}},
		"not suspended":      {false, 3, 100, []step{{open, 0, valid}, {lost, 100, revoked}}},
		"reversed":           {true, 1, 100, []step{{lost, 100, revoked}, {won, 0, revoked}, {lost, 100, revoked}}},
		"a part, reversed":   {true, 1, 40, []step{{lost, 40, valid}, {won, 0, valid}, {open, 0, suspended}}},
		"more than was paid": {true, 1, 140, []step{{open, 0, suspended}, {lost, 100, revoked}}},
	} {
		c.suspends = test.suspends
		o := w.paidFor(test.quantity)
		for i, s := range test.steps {
			w.called(c.rule(o, test.amount, s.says), here, there)
			now := w.now(o)
			got := w.licenses(o)
			if now.RefundedAmount() != s.refunded || !slices.Equal(got, []licensing.Status{s.licenses}) ||
				len(now.OpenDisputes()) > 0 != (s.says == open) || now.RefundedAt.IsZero() == (s.licenses == revoked) {
				t.Errorf("%s, step %d: %v, %+v", name, i, got, now)
			}
		}
	}
	w.verify()
}

// TestDisputeOfTheShop: a license that the shop has suspended stays so after the dispute, and a license that the shop
// has reinstated stays so during the dispute.
func TestDisputeOfTheShop(t *testing.T) {
	w := newFixture(t)
	c := &court{newDashboard(w.bank), true}
	_, desk := w.open(w.store, c)
	do := func(o licensing.Order, cmd licensing.Command) {
		t.Helper()
		if _, err := w.node.Do(w.ctx, licensing.LicenseRef(o.LicenseKey), cmd); err != nil {
			t.Fatal(err)
		}
	}
	is := func(o licensing.Order, want licensing.Status) {
		t.Helper()
		if got := w.licenses(o); got[0] != want {
			t.Errorf("the license is %s, want %s", got[0], want)
		}
	}
	o := w.paid()
	do(o, licensing.SuspendLicense{Target: licensing.Target{Key: o.LicenseKey}, Reason: "fraud"})
	for _, outcome := range []payment.Outcome{payment.OutcomeOpen, payment.OutcomeWon} {
		w.called(c.rule(o, 100, outcome), desk)
		is(o, licensing.Suspended)
	}
	o = w.paid()
	w.called(c.rule(o, 100, payment.OutcomeOpen), desk)
	is(o, licensing.Suspended)
	do(o, licensing.ReinstateLicense{Target: licensing.Target{Key: o.LicenseKey}})
	w.called(c.rule(o, 100, payment.OutcomeOpen), desk)
	is(o, licensing.NotActivated)

	// The shop suspends a license that the dispute has suspended.
	for _, reason := range []string{"", "fraud"} {
		o = w.paid()
		w.called(c.rule(o, 100, payment.OutcomeOpen), desk)
		do(o, licensing.SuspendLicense{Target: licensing.Target{Key: o.LicenseKey}, Reason: reason})
		w.called(c.rule(o, 100, payment.OutcomeWon), desk)
		is(o, licensing.Suspended)
	}

	// Only the end of the last dispute ends the suspension.
	o = w.paid()
	for _, id := range []string{"a", "b"} {
		w.called(c.ruleAbout(id, o, 50, payment.OutcomeOpen), desk)
	}
	w.called(c.ruleAbout("a", o, 50, payment.OutcomeWon), desk)
	is(o, licensing.Suspended)
	w.called(c.ruleAbout("b", o, 50, payment.OutcomeLost), desk)
	is(o, licensing.NotActivated)

	// A dispute of a refunded payment counts nothing.
	o = w.paid()
	if _, _, err := desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); err != nil {
		t.Fatal(err)
	}
	for _, outcome := range []payment.Outcome{payment.OutcomeOpen, payment.OutcomeLost} {
		w.called(c.rule(o, 100, outcome), desk)
		if now := w.now(o); now.RefundedAmount() != 100 || now.Refunds != 1 {
			t.Errorf("a dispute after a refund: %+v", now)
		}
		is(o, licensing.Revoked)
	}
	w.verify()
}

// TestDisputeMeanwhile: an older answer never replaces a newer answer, and a lost dispute and a refund never send back
// more than was paid.
func TestDisputeMeanwhile(t *testing.T) {
	w := newFixture(t)
	c := &court{newDashboard(w.bank), true}
	_, here := w.open(w.store, c)
	_, there := w.open(w.other, c)
	for _, quantity := range []int{1, 3} {
		o := w.paidFor(quantity)
		c.looked = func(string) {
			c.looked = nil
			w.called(c.rule(o, 100, payment.OutcomeWon), there)
		}
		w.called(c.rule(o, 100, payment.OutcomeOpen), here)
		if now := w.now(o); now.Disputes != "" ||
			!slices.Equal(w.licenses(o), []licensing.Status{licensing.NotActivated}) {
			t.Errorf("the older answer is the last: %+v, %v", now, w.licenses(o))
		}
	}
	for _, end := range []payment.Outcome{payment.OutcomeDone, payment.OutcomeFailed} {
		o := w.paid()
		w.bank.next = []answer{{state: payment.OutcomePending}}
		if _, _, err := here.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{Amount: 60}, nil); err != nil {
			t.Fatal(err)
		}
		number := w.now(o).RefundNo
		w.called(c.rule(o, 100, payment.OutcomeLost), here, there)
		if now := w.now(o); now.RefundedAmount() != 40 || !now.RefundedAt.IsZero() {
			t.Errorf("a refund is pending: %+v", now)
		}
		w.called(c.set(o, "bank_"+number, number, 60, end), here)
		done := end == payment.OutcomeDone
		if now := w.now(o); (now.RefundedAmount() == 100) != done || w.revoked(o) != done {
			t.Errorf("the refund is %s: %+v", end, now)
		}
		w.verify()
		w.recounted("a refund was pending", o, here)
	}
	w.verify()
}

// recounted lets a sweep ask about the lost dispute of the whole payment of an order. All of the payment is lost then.
func (w *fixture) recounted(what string, o licensing.Order, desk *payment.Desk) {
	w.t.Helper()
	if err := desk.AskCheckoutsDue(w.ctx); err != nil {
		w.t.Error(err)
	}
	if now := w.now(o); now.RefundedAmount() != 100 || now.RefundedAt.IsZero() || now.RefundDue || !w.revoked(o) ||
		!now.DisputeAskAt.IsZero() {
		w.t.Errorf("%s, and the lost dispute counts: %+v", what, now)
	}
	w.verify()
}

// TestDisputeCountsAgain: a lost dispute counts all that the bank has taken, whatever becomes of refunds of the payment
// before and after.
func TestDisputeCountsAgain(t *testing.T) {
	w := newFixture(t)
	c := &court{newDashboard(w.bank), true}
	_, here := w.open(w.store, c)
	_, there := w.open(w.other, c)
	lose := func(o licensing.Order) { w.called(c.rule(o, 100, payment.OutcomeLost), here, there) }

	for _, amount := range []int64{0, 60} { // the answer about a refund is lost, then the dispute is lost
		for _, made := range []bool{false, true} {
			o := w.paid()
			w.bank.next = []answer{{says: errDown, moves: made}}
			if _, _, err := here.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{Amount: amount},
				nil); !errors.Is(err, providerFailed) {
				t.Error(err)
			}
			lose(o)
			now, asked := w.now(o), cmp.Or(amount, 100)
			if !now.RefundDue || now.OpenRefund() != asked || now.RefundedAmount() != 100-asked {
				t.Errorf("the bank may have made the refund of %d: %+v", asked, now)
			}
			if w.verify(); made {
				w.called(c.set(o, "bank_"+now.RefundNo, now.RefundNo, asked, payment.OutcomeDone), here, there)
				if got := w.now(o); got.RefundedAmount() != 100 || got.Uncounted != asked || !w.revoked(o) {
					t.Errorf("the bank has made the refund of %d: %+v", asked, got)
				}
				w.called(c.rule(o, 100, payment.OutcomeWon), here, there)
				if got := w.now(o); got.RefundedAmount() != asked || got.RefundDue {
					t.Errorf("the dispute is won after all: %+v", got)
				}
				w.verify()
				continue
			}
			w.bank.next = []answer{{says: payment.ErrRefused}} // since the dispute is lost
			w.clock.advance(time.Hour)
			if err := here.SendRefundsDue(w.ctx); !errors.Is(err, payment.ErrRefused) {
				t.Errorf("the bank has refused, and the sweep says: %v", err)
			}
			w.recounted("a refund was refused", o, here)
			if err := here.SendRefundsDue(w.ctx); err != nil || w.bank.asked[o.OrderNo] != 2 {
				t.Errorf("the bank was asked %d times: %v", w.bank.asked[o.OrderNo], err)
			}
		}
	}

	o := w.paid() // the refund is made, then the dispute is lost, then the refund fails
	if _, _, err := here.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{Amount: 60}, nil); err != nil {
		t.Fatal(err)
	}
	lose(o)
	number := w.refundOf(o)
	w.called(c.set(o, "bank_"+number, number, 60, payment.OutcomeFailed), here, there)
	w.recounted("a refund has failed after it was made", o, there)

	o = w.paid() // two disputes of the same money
	lose(o)
	w.called(c.ruleAbout("second_"+o.OrderNo, o, 100, payment.OutcomeLost), here, there)
	if now := w.now(o); now.RefundedAmount() != 100 || now.Uncounted != 100 {
		t.Errorf("two lost disputes: %+v", now)
	}
	w.called(c.rule(o, 100, payment.OutcomeWon), here, there)
	w.recounted("one of two lost disputes is won after all", o, here)
}

// refundOf returns the number of the only refund of an order that has a record.
func (w *fixture) refundOf(o licensing.Order) string {
	w.t.Helper()
	list, err := w.node.ListPayments(w.ctx, owner, o.OrderNo, store.Page{Limit: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range list.Items {
		if p.Kind == licensing.KindOfRefund {
			return p.Reference
		}
	}
	w.t.Fatalf("no refund among %+v", list.Items)
	return ""
}

// TestDisputeSweep: a sweep asks about open disputes each day.
func TestDisputeSweep(t *testing.T) {
	w := newFixture(t)
	c := &court{newDashboard(w.bank), true}
	_, desk := w.open(w.store, c)
	o := w.paid()
	w.called(c.rule(o, 100, payment.OutcomeOpen), desk)
	c.rule(o, 100, payment.OutcomeLost)
	for _, after := range []time.Duration{time.Hour, 25 * time.Hour} {
		w.clock.advance(after)
		if err := desk.AskCheckoutsDue(w.ctx); err != nil {
			t.Fatal(err)
		}
		if w.revoked(o) != (after > 24*time.Hour) {
			t.Errorf("after %s the license is revoked: %v", after, w.revoked(o))
		}
	}
	w.verify()
}

// TestDisputeCrash kills a node at every step of a callback. The callback comes again to another node.
func TestDisputeCrash(t *testing.T) {
	w := newFixture(t)
	c := &court{newDashboard(w.bank), true}
	_, elsewhere := w.open(w.other, c)
	for _, end := range []payment.Outcome{payment.OutcomeWon, payment.OutcomeLost} {
		for steps := 0; ; steps++ {
			o := w.paidFor(3)
			dead := false
			for _, outcome := range []payment.Outcome{payment.OutcomeOpen, end} {
				f := &killSwitch{left: steps}
				_, desk := w.open(killableStore{w.store, f}, c)
				object := c.rule(o, 100, outcome)
				_ = desk.Called(w.ctx, owner, object)
				if err := elsewhere.Called(context.Background(), owner, object); err != nil {
					t.Errorf("killed at step %d: %v", steps, err)
				}
				dead = dead || f.dead()
			}
			want := map[payment.Outcome]licensing.Status{
				payment.OutcomeWon: licensing.NotActivated, payment.OutcomeLost: licensing.Revoked}[end]
			if got := w.licenses(o); !slices.Equal(got, []licensing.Status{want}) {
				t.Errorf("killed at step %d: the licenses are %v, want %s", steps, got, want)
			}
			if !dead {
				break
			}
		}
	}
	w.verify()
}
