package payment_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/node/store"
	"licet/payment"
	"licet/payment/stripe"
)

// dispute disputes a payment at Stripe, and delivers the callback.
func (s *subscriber) dispute(intent string) (id string) {
	s.t.Helper()
	id, err := s.fake.Dispute(intent)
	if err != nil {
		s.t.Fatal(err)
	}
	s.fixtureCalled(payment.Object{Kind: payment.ObjectDispute, ID: id})
	return id
}

// decide ends a dispute at Stripe, and delivers the callback.
func (s *subscriber) decide(id string, won bool) {
	s.t.Helper()
	s.fake.Decide(id, won)
	s.fixtureCalled(payment.Object{Kind: payment.ObjectDispute, ID: id})
	s.verify()
}

// status returns the status of an order's license, and how much of all payments has gone back.
func (s *subscriber) status(o licensing.Order) (licensing.Status, int64) {
	s.t.Helper()
	l, now := s.license(o), s.order(o)
	return l.Status(s.node.Now()), now.AmountRefunded()
}

// TestDisputeOfRenewal: the dispute of a renewal suspends the license meanwhile. A lost one takes back the period that
// the invoice paid for, and the license stays valid for what the other payments pay for.
func TestDisputeOfRenewal(t *testing.T) {
	s := atStripe(t, func(c *stripe.Config) { c.SuspendOnDispute = true })
	o, invoice := s.renewed(fakestripe.CardPays)
	first, paid := o.PaidEnd, s.order(o).PaidEnd
	is := func(what string, status licensing.Status, back int64, until time.Time) {
		t.Helper()
		now, is, got := s.order(o), licensing.Status(""), int64(0)
		if is, got = s.status(o); is != status || got != back || now.Returned != back || now.Refunds != 0 ||
			!now.PaidEnd.Equal(until) || !s.license(o).ExpiresAt.Equal(until.AddDate(0, 0, 3)) ||
			!now.RefundedAt.IsZero() {
			t.Errorf("%s: the license is %s, %d is back, paid until %s, want %s; %+v", what, is, got, now.PaidEnd,
				until, now)
		}
	}
	id := s.dispute(invoice.ProviderID)
	is("open", licensing.Suspended, 0, paid)
	s.decide(id, false)
	is("lost", licensing.NotActivated, 900, first)
	if kept := s.fake.Kept(o.OrderNo); kept != 900 {
		t.Errorf("Stripe has %d", kept)
	}
	if _, _, err := s.desk.RefundInvoice(s.ctx, owner, o.OrderNo, invoice.Reference,
		licensing.RequestReturn{Amount: 1}, nil); licensing.ReasonOf(err) != licensing.ReasonInvalidField {
		t.Errorf("a refund after the lost dispute: %v", err)
	}
	s.decide(id, true)
	is("won after all", licensing.NotActivated, 0, paid)

	// A sweep finds the end of a dispute whose callback is lost.
	id = s.dispute(invoice.ProviderID)
	s.fake.Decide(id, false)
	s.advance(25 * time.Hour)
	if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
		t.Fatal(err)
	}
	if _, back := s.status(o); back != 900 {
		t.Errorf("after the sweep %d is back", back)
	}
	s.verify()

	// The dispute of the first payment still revokes the license.
	s.decide(s.dispute(o.Payment), false)
	if status, back := s.status(o); status != licensing.Revoked || back != 1800 || s.fake.Kept(o.OrderNo) != 0 {
		t.Errorf("the license is %s, and %d is back", status, back)
	}
}

// TestDisputeBeforeInvoice: the callback of a dispute may come before that of the disputed invoice.
func TestDisputeBeforeInvoice(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	s.advance(31 * 24 * time.Hour)
	invoices := s.fake.IDs("invoice")
	if len(invoices) != 2 {
		t.Fatal(invoices)
	}
	ledger := s.fake.Ledger()
	s.decide(s.dispute(ledger[len(ledger)-1].Payment), false)
	if now := s.order(o); now.Invoices != 1 || now.Returned != 900 {
		t.Errorf("%+v", now)
	}
}

// TestDisputeOfSecondPayment: a second payment that was lost in a dispute is back. No refund of it stays due, although
// Stripe refuses to refund it. The license of the order stays as it is.
func TestDisputeOfSecondPayment(t *testing.T) {
	s := atStripe(t, func(c *stripe.Config) { c.SuspendOnDispute = true })
	for _, won := range []bool{false, true} {
		o := s.paidOutside(func(o licensing.Order) {
			if _, _, err := s.desk.Pay(s.ctx, o); err != nil {
				t.Fatal(err)
			}
			if err := s.fake.Pay(s.order(o).Checkout, fakestripe.CardPays); err != nil {
				t.Fatal(err)
			}
		})
		intent := s.fake.PaymentOf(s.order(o).Checkout)
		id := s.dispute(intent) // which also tells of the payment; Stripe refuses to refund it
		sweep := func() {
			t.Helper()
			s.advance(25 * time.Hour)
			_ = s.desk.SendRefundsDue(s.ctx) // says that Stripe refuses, while the dispute is open
			if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
				t.Error(err)
			}
			s.verify()
		}
		sweep()
		now := s.order(o)
		if due, sum := now.RefundsDue(); !due || sum != o.Amount {
			t.Errorf("%d is due: %+v", sum, now)
		}
		s.fake.Decide(id, won) // the callback is lost
		sweep()
		sweep()
		now = s.order(o)
		status, back := s.status(now)
		if due, _ := now.RefundsDue(); due || back != o.Amount || status != licensing.NotActivated ||
			s.fake.Kept(o.OrderNo) != 0 {
			t.Errorf("won: %t: the license is %s, %d is back, and Stripe has %d: %+v", won, status, back,
				s.fake.Kept(o.OrderNo), now.OpenReturns())
		}
		list, err := s.node.ListPayments(s.ctx, owner, o.OrderNo, store.Page{Limit: 100})
		if err != nil || len(list.Items) != 3 && !won || len(list.Items) != 4 && won {
			t.Errorf("%v, %+v", err, list.Items)
		}
	}
}

// TestDisputeWhileRefunded: the bank decides about a renewal, at one node, while the shop refunds the renewal, at
// another. No more than all of the renewal goes back.
func TestDisputeWhileRefunded(t *testing.T) {
	s := atStripe(t)
	for range 3 {
		o, invoice := s.renewed(fakestripe.CardPays)
		id, err := s.fake.Dispute(invoice.ProviderID)
		if err != nil {
			t.Fatal(err)
		}
		s.fake.Decide(id, false)
		var group sync.WaitGroup
		for n := range 8 {
			desk := []*payment.Desk{s.desk, s.other}[n%2]
			group.Go(func() {
				if n < 4 {
					object := payment.Object{Kind: payment.ObjectDispute, ID: id}
					if err := desk.Called(s.ctx, owner, object); err != nil {
						t.Error(err)
					}
					return
				}
				// Stripe refuses, or all of the renewal is lost by then.
				_, _, _ = desk.RefundInvoice(s.ctx, owner, o.OrderNo, invoice.Reference, licensing.RequestReturn{}, nil)
			})
		}
		group.Wait()
		s.verify()
		// A refund that Stripe was asked for as the dispute was recorded lets a sweep count the dispute again.
		if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
			t.Error(err)
		}
		if now := s.order(o); now.Returned != 900 || len(now.OpenReturns()) != 0 {
			t.Errorf("%+v with %+v", now, now.OpenReturns())
		}
		s.verify()
	}
}

// TestDisputeOfRenewalCountsAgain: a renewal is lost in a dispute after its refund was made. Once the refund fails, the
// dispute counts.
func TestDisputeOfRenewalCountsAgain(t *testing.T) {
	s := atStripe(t)
	o, invoice := s.renewed(fakestripe.CardRefundFails)
	first := o.PaidEnd
	if _, _, err := s.desk.RefundInvoice(s.ctx, owner, o.OrderNo, invoice.Reference,
		licensing.RequestReturn{Amount: 400}, nil); err != nil {
		t.Fatal(err)
	}
	refunds := s.fake.IDs("refund")
	s.decide(s.dispute(invoice.ProviderID), false) // of the 500 that are left
	if now := s.order(o); now.Returned != 900 || !now.PaidEnd.Equal(first) {
		t.Errorf("%+v", now)
	}
	s.advance(25 * time.Hour)
	s.fixtureCalled(payment.Object{Kind: payment.ObjectRefund, ID: refunds[len(refunds)-1]})
	if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
		t.Error(err)
	}
	if now := s.order(o); now.Returned != 500 || s.fake.Kept(o.OrderNo) != 1800-500 {
		t.Errorf("Stripe has %d: %+v", s.fake.Kept(o.OrderNo), now)
	}
	s.verify()
}

// TestLostDisputeWaitsForRefund: Stripe's answer about the refund of a renewal is lost, and then the renewal is lost in
// a dispute. The dispute counts once Stripe has refused the refund. After that, no sweep asks any more.
func TestLostDisputeWaitsForRefund(t *testing.T) {
	s := atStripe(t)
	o, invoice := s.renewed(fakestripe.CardPays)
	s.fake.Fail("POST", "/v1/refunds", fakestripe.BadGateway, 1)
	if _, _, err := s.desk.RefundInvoice(s.ctx, owner, o.OrderNo, invoice.Reference,
		licensing.RequestReturn{}, nil); !errors.Is(err, providerFailed) {
		t.Errorf("Stripe's answer is lost: %v", err)
	}
	s.decide(s.dispute(invoice.ProviderID), false)
	if now := s.order(o); now.Returned != 0 || len(now.OpenReturns()) != 1 {
		t.Errorf("Stripe may have made the refund: %+v with %+v", now, now.OpenReturns())
	}
	s.advance(time.Hour)
	if err := s.desk.SendRefundsDue(s.ctx); !errors.Is(err, payment.ErrRefused) {
		t.Errorf("Stripe has refused the refund, and the sweep says: %v", err)
	}
	for _, wait := range []time.Duration{0, 25 * time.Hour} {
		s.advance(wait)
		if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
			t.Error(err)
		}
		if now := s.order(o); now.Returned != 900 || len(now.OpenReturns()) != 0 ||
			now.DisputeAskAt.IsZero() != (wait > 0) {
			t.Errorf("the dispute counts: %+v with %+v", now, now.OpenReturns())
		}
		s.verify()
	}
}

// TestDisputesOfBothPayments: only the disputes of the order's own payment suspend its licenses, whichever dispute
// begins and ends first.
func TestDisputesOfBothPayments(t *testing.T) {
	w := newFixture(t)
	const first, second = "first", "second"
	const open, won = licensing.PaymentOpen, licensing.PaymentWon
	type step struct {
		dispute string
		state   licensing.PaymentState
		want    licensing.Status
	}
	for _, quantity := range []int{1, 3} {
		for _, steps := range [][]step{
			{{first, open, licensing.Suspended}, {second, open, licensing.Suspended},
				{first, won, licensing.NotActivated}, {second, won, licensing.NotActivated}},
			{{second, open, licensing.NotActivated}, {first, open, licensing.Suspended},
				{second, won, licensing.Suspended}, {first, won, licensing.NotActivated}},
		} {
			o := w.paidFor(quantity)
			paid := licensing.Payment{Provider: o.PaidThrough(), Reference: "second_" + o.OrderNo, Amount: 100,
				Currency: "USD", PaidAt: w.node.Now()}
			if err := w.node.RecordSecond(w.ctx, o, paid); err != nil {
				t.Fatal(err)
			}
			for i, step := range steps {
				dispute := licensing.Payment{Kind: licensing.KindOfDispute, Provider: o.PaidThrough(),
					Reference: step.dispute + o.OrderNo, State: step.state, Amount: 100, Currency: "USD"}
				recorded, err := w.node.ReadPayment(w.ctx, owner, dispute)
				if err != nil {
					t.Fatal(err)
				}
				note := licensing.NoteDispute{Recorded: recorded, Dispute: dispute}
				if step.dispute == second {
					further, err := w.node.ReadPayment(w.ctx, owner, paid)
					if err != nil {
						t.Fatal(err)
					}
					note.Further = &licensing.FurtherDisputed{Payment: *further}
				}
				if err := w.node.NoteDispute(w.ctx, o, note, true); err != nil {
					t.Fatal(err)
				}
				if got := w.licenses(o); !slices.Equal(got, []licensing.Status{step.want}) {
					t.Errorf("%d licenses, step %d of %v: they are %v", quantity, i, steps, got)
				}
			}
		}
	}
	w.verify()
}
