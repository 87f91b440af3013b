package payment_test

import (
	"sync"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
)

// theatre is a service whose orders are paid in the sandbox, with two nodes.
type theatre struct {
	*counter
	other *payment.Desk
}

func inSandbox(t *testing.T) *theatre {
	t.Helper()
	w := newFixture(t)
	second, _ := w.open(w.other, payment.Sandbox{})
	_, other := w.open(w.other, payment.Sandbox{Node: second})
	w.node, w.desk = w.open(w.store, payment.Sandbox{Node: w.node})
	return &theatre{&counter{fixture: w}, other}
}

// play plays one thing after the other, and each succeeds.
func (c *theatre) play(o licensing.Order, plays ...payment.Play) {
	c.t.Helper()
	for _, play := range plays {
		if _, err := c.desk.Play(c.ctx, c.order(o), play); err != nil {
			c.t.Fatalf("%s: %v", play, err)
		}
	}
}

// refused plays something that is refused.
func (c *theatre) refused(o licensing.Order, reason licensing.Reason, plays ...payment.Play) {
	c.t.Helper()
	for _, play := range plays {
		if _, err := c.desk.Play(c.ctx, c.order(o), play); licensing.ReasonOf(err) != reason {
			c.t.Errorf("%s: %v", play, err)
		}
	}
}

const (
	unpaid   = licensing.OrderUnpaid
	invalid  = licensing.ReasonInvalidOrderState
	notThere = licensing.ReasonPaymentNotConfigured
)

// TestSandboxPlays: each play leads to the state of the order that the same report of a provider leads to.
func TestSandboxPlays(t *testing.T) {
	c := inSandbox(t)
	for _, s := range []struct {
		name  string
		plays []payment.Play
		want  licensing.OrderStatus
		open  bool
	}{
		{"paid", []payment.Play{payment.PlayPay, payment.PlayPay}, licensing.OrderPaid, false},
		{"declined", []payment.Play{payment.PlayDecline, payment.PlayDecline}, unpaid, false},
		{"paid after a decline", []payment.Play{payment.PlayDecline, payment.PlayPay}, licensing.OrderPaid, false},
		{"pending", []payment.Play{payment.PlayPayLater}, unpaid, true},
		{"arrived", []payment.Play{payment.PlayPayLater, payment.PlayComplete}, licensing.OrderPaid, false},
		{"failed", []payment.Play{payment.PlayPayLater, payment.PlayFail}, unpaid, false},
		{"arrived at the second attempt", []payment.Play{payment.PlayPayLater, payment.PlayFail,
			payment.PlayPayLater, payment.PlayComplete}, licensing.OrderPaid, false},
		{"paid while pending", []payment.Play{payment.PlayPayLater, payment.PlayPay}, licensing.OrderPaid, false},
		{"twice", []payment.Play{payment.PlayCallbackTwice}, licensing.OrderPaid, false},
		{"late", []payment.Play{payment.PlayCallbackLate}, unpaid, true},
		{"late, and told", []payment.Play{payment.PlayCallbackLate, payment.PlayComplete}, licensing.OrderPaid, false},
		{"canceled", []payment.Play{payment.PlayCancel, payment.PlayCancel}, licensing.OrderCanceled, false},
		{"canceled while pending", []payment.Play{payment.PlayPayLater, payment.PlayCancel}, licensing.OrderCanceled,
			true},
		{"arrived after the cancellation", []payment.Play{payment.PlayPayLater, payment.PlayCancel,
			payment.PlayComplete}, licensing.OrderRefunded, false},
		{"failed after the cancellation", []payment.Play{payment.PlayPayLater, payment.PlayCancel, payment.PlayFail},
			licensing.OrderCanceled, false},
	} {
		o := c.create()
		c.play(o, s.plays...)
		stored := c.status(s.name, o, s.want, s.open)
		if paid := s.want == licensing.OrderPaid; stored.LicenseKey.IsZero() == paid {
			t.Errorf("%s: the license is %q", s.name, stored.LicenseKey)
		}
		played, err := c.desk.Played(c.ctx, stored)
		if s.name == "paid" && (stored.Attempt != 0 || played != licensing.SandboxOrder{}) ||
			s.name == "declined" && played.Outcome != licensing.SandboxFailed || err != nil {
			t.Errorf("%s: the order is %+v, and played was %+v, %v", s.name, stored, played, err)
		}
		if s.open && (len(c.desk.Plays(stored)) != 2 || c.desk.Plays(stored)[0] != payment.PlayComplete) ||
			s.want == licensing.OrderPaid && len(c.desk.Plays(stored)) != 1 ||
			s.want == unpaid && !s.open && len(c.desk.Plays(stored)) != 4 {
			t.Errorf("%s: the page offers %q", s.name, c.desk.Plays(stored))
		}
	}
	c.verify()
}

// TestSandboxRefuses: no play begins a second checkout, or a checkout of an order that can't be paid.
func TestSandboxRefuses(t *testing.T) {
	c := inSandbox(t)
	begins := []payment.Play{payment.PlayDecline, payment.PlayPayLater, payment.PlayCallbackTwice,
		payment.PlayCallbackLate}
	ends := []payment.Play{payment.PlayComplete, payment.PlayFail}

	o := c.create()
	c.refused(o, invalid, ends...)
	c.play(o, payment.PlayPayLater)
	c.refused(o, invalid, begins...)
	c.play(o, payment.PlayFail)
	c.refused(o, invalid, ends...)
	c.play(o, payment.PlayCallbackLate)
	c.refused(o, invalid, payment.PlayFail) // the buyer has paid
	c.play(o, payment.PlayComplete)
	c.refused(o, invalid, append(append(begins, ends...), payment.PlayCancel)...)

	canceled := c.canceled()
	c.refused(canceled, invalid, append(begins, ends...)...)
	expired := c.create()
	c.clock.advance(25 * time.Hour)
	c.refused(expired, invalid, append(begins, ends...)...)
	c.play(expired, payment.PlayPay)
	c.status("paid late", expired, licensing.OrderPaid, false)

	outside, _, err := c.node.CreateOrder(c.ctx, owner, service.NewOrder{ProductID: "pro", Amount: 100,
		Currency: "USD", Outside: true})
	if err != nil {
		t.Fatal(err)
	}
	c.refused(outside, notThere, append(begins, payment.PlayPay)...)
	if plays := c.desk.Plays(outside); plays != nil {
		t.Errorf("the page of an order that is paid outside offers %q", plays)
	}
	live := outside
	live.Owner.Mode, live.Provider = licensing.Live, ""
	if _, err := c.desk.Play(c.ctx, live, payment.PlayDecline); licensing.ReasonOf(err) != notThere {
		t.Errorf("a live order in the sandbox: %v", err)
	}
	if _, err := c.node.PlayInSandbox(c.ctx, live, licensing.PlayCheckout{Attempt: 1}); err == nil {
		t.Error("a live order has a record of the sandbox")
	}
	if _, err := c.desk.Play(c.ctx, c.create(), "nothing"); err == nil {
		t.Error("an unknown play succeeds")
	}
	c.verify()
}

// TestSandboxCallbackLate: a sweep finds a payment whose callback does not come, with the time when the buyer paid.
func TestSandboxCallbackLate(t *testing.T) {
	c := inSandbox(t)
	o, viewed, pending := c.create(), c.create(), c.create()
	c.play(o, payment.PlayCallbackLate)
	c.play(viewed, payment.PlayCallbackLate)
	c.play(pending, payment.PlayPayLater)
	paidAt := c.node.Now()
	if _, waits := c.desk.Check(c.ctx, c.order(viewed)); !waits {
		t.Error("the page does not say that a payment is on its way")
	}
	c.clock.advance(10 * time.Second)
	c.sweep()
	c.status("before its time", o, unpaid, true)
	c.clock.advance(90 * time.Second)
	c.sweep()
	stored := c.status("found by the sweep", o, licensing.OrderPaid, false)
	if late := stored.PaidAt.Sub(paidAt); late > time.Second {
		t.Errorf("the order was paid %s after the buyer paid", late)
	}
	c.status("found by the sweep after a visit", viewed, licensing.OrderPaid, false)
	c.status("pending", pending, unpaid, true)
	c.clock.advance(26 * time.Hour)
	c.sweep()
	c.status("a pending payment fails by itself", pending, licensing.OrderExpired, false)
	left := c.order(pending)
	if due := left.Due(); due.Kind == licensing.DueCheckout {
		t.Errorf("a sweep asks about it at %s", due.At)
	}
}

func (c *theatre) sweep() {
	c.t.Helper()
	if err := c.desk.AskCheckoutsDue(c.ctx); err != nil {
		c.t.Fatal(err)
	}
}

// TestSandboxRefundFails: a refund that fails is pending before, and leaves the order paid. The next refund succeeds.
func TestSandboxRefundFails(t *testing.T) {
	c := inSandbox(t)
	refund := func(o licensing.Order) {
		t.Helper()
		_, _, err := c.desk.Refund(c.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil)
		if err != nil && licensing.ReasonOf(err) != licensing.ReasonProviderFailed {
			t.Error(err)
		}
	}
	told, left := c.create(), c.create()
	c.refused(told, invalid, payment.PlayRefundFails)
	for _, o := range []licensing.Order{told, left} {
		c.play(o, payment.PlayPay)
		c.refused(o, invalid, payment.PlayFail)
		c.play(o, payment.PlayRefundFails, payment.PlayRefundFails)
		refund(o)
		stored := c.status("the refund is pending", o, licensing.OrderPaid, false)
		if plays := c.desk.Plays(stored); !stored.RefundDue || len(plays) != 1 || plays[0] != payment.PlayFail {
			t.Errorf("the refund is pending, and the page offers %q: %+v", plays, stored)
		}
		c.refused(o, invalid, payment.PlayRefundFails)
	}
	c.play(told, payment.PlayFail)
	c.clock.advance(2 * time.Minute)
	if err := c.desk.SendRefundsDue(c.ctx); err != nil && licensing.ReasonOf(err) != licensing.ReasonProviderFailed {
		t.Fatal(err)
	}
	for _, o := range []licensing.Order{told, left} {
		stored := c.status("the refund has failed", o, licensing.OrderPaid, false)
		view, err := c.node.License(c.ctx, owner, stored.LicenseKey, store.DevicePage{Limit: 1})
		if err != nil || stored.RefundDue || view.License.Status(c.node.Now()) == licensing.Revoked {
			t.Errorf("the refund has failed, and the order is %+v, its license %+v, %v", stored, view.License, err)
		}
		refund(o)
		c.status("the next refund", o, licensing.OrderRefunded, false)
		c.refused(o, invalid, payment.PlayRefundFails, payment.PlayFail)
	}
	c.verify()
}

// TestSandboxPlaysTogether: two nodes play everything at the same time about the same order. The order is paid at most
// once, and can be paid after that.
func TestSandboxPlaysTogether(t *testing.T) {
	c := inSandbox(t)
	for range 4 {
		o := c.create()
		var group sync.WaitGroup
		for _, name := range payment.PlayNames() {
			play := payment.Play(name)
			if play == payment.PlayCancel {
				continue
			}
			for _, desk := range []*payment.Desk{c.desk, c.other} {
				group.Go(func() {
					if _, err := desk.Play(c.ctx, c.order(o), play); err != nil &&
						licensing.ReasonOf(err) != licensing.ReasonInvalidOrderState {
						t.Errorf("%s: %v", play, err)
					}
				})
			}
		}
		group.Wait()
		c.play(o, payment.PlayPay)
		c.status("in the end", o, licensing.OrderPaid, false)
	}
	c.verify()
}

// TestSandboxSurvivesKills kills the node at each step of a play. The order can be paid after that, and a sweep finds
// each payment that the sandbox has taken.
func TestSandboxSurvivesKills(t *testing.T) {
	c := inSandbox(t)
	for steps := 0; ; steps++ {
		o := c.create()
		kill := &killSwitch{left: steps}
		dying, _ := c.open(killableStore{c.store, kill}, payment.Sandbox{})
		desk := payment.NewDesk(dying, payment.ForMode(licensing.Test, payment.Sandbox{Node: dying}))
		_, err := desk.Play(c.ctx, o, payment.PlayCallbackTwice)
		survived := !kill.dead()
		if !survived && err == nil {
			t.Errorf("killed at step %d, and the customer has an answer", steps)
		}
		c.clock.advance(2 * time.Minute)
		c.sweep()
		now := c.order(o)
		if now.Checkout != "" && now.PaidAt.IsZero() {
			t.Errorf("killed at step %d: the sweep does not find the payment of %+v", steps, now)
		}
		if now.PaidAt.IsZero() {
			c.play(o, payment.PlayPay)
		}
		c.status("in the end", o, licensing.OrderPaid, false)
		if survived {
			break
		}
	}
	c.verify()
}
