package payment_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/store"
	"licet/payment"
	"licet/payment/stripe"
)

// renewed returns an order whose subscription has renewed once, paid with a card, and the latest invoice.
func (s *subscriber) renewed(card string) (o licensing.Order, invoice licensing.Payment) {
	s.t.Helper()
	o = s.subscribeWith(card)
	s.advance(31 * 24 * time.Hour)
	s.calledAboutInvoices()
	list, err := s.node.ListPayments(s.ctx, owner, o.OrderNo, store.Page{Limit: 1})
	if err != nil || list.Items[0].Kind != licensing.KindOfInvoice {
		s.t.Fatalf("%+v, %v", list, err)
	}
	return o, list.Items[0]
}

// returned checks what has gone back of the renewal of an order, and until when the order is paid.
func (s *subscriber) returned(what string, o licensing.Order, amount, kept int64, until time.Time) {
	s.t.Helper()
	now := s.order(o)
	if due, sum := now.RefundsDue(); due || sum != 0 || now.Returned != amount || now.Refunds != 0 ||
		!now.PaidEnd.Equal(until) || !s.license(o).ExpiresAt.Equal(until.AddDate(0, 0, 3)) ||
		s.fake.Kept(o.OrderNo) != kept {
		s.t.Errorf("%s: Stripe has %d, want %d; %d is back, paid until %s, want %s; the license ends at %s; open: %+v",
			what, s.fake.Kept(o.OrderNo), kept, now.Returned, now.PaidEnd, until, s.license(o).ExpiresAt,
			now.OpenReturns())
	}
	s.verify()
}

// TestRefundInvoice: the shop refunds a renewal in parts, with the tax. Each part goes back once, whatever is repeated,
// and the last one takes back the period.
func TestRefundInvoice(t *testing.T) {
	for _, taxed := range []bool{false, true} {
		t.Run(fmt.Sprint("taxed: ", taxed), func(t *testing.T) {
			s := atStripe(t, func(c *stripe.Config) { c.AutomaticTax = taxed })
			o, invoice := s.renewed(fakestripe.CardPays)
			first, paid := o.PaidEnd, s.order(o).PaidEnd
			charged := func(amount int64) int64 {
				if taxed {
					return amount * 120 / 100
				}
				return amount
			}
			refund := func(desk *payment.Desk, amount int64, key string) error {
				_, _, err := desk.RefundInvoice(s.ctx, owner, o.OrderNo, invoice.Reference,
					licensing.RequestReturn{By: "key_1", Amount: amount}, nodetest.Once(key, fmt.Sprint(amount)))
				return err
			}
			if err := refund(s.desk, 901, "too much"); licensing.ReasonOf(err) != licensing.ReasonInvalidField {
				t.Errorf("more than was paid: %v", err)
			}
			for range 2 {
				if err := refund(s.desk, 300, "part"); err != nil {
					t.Fatal(err)
				}
			}
			s.returned("a part", o, 300, charged(1500), paid)
			s.fake.Fail("POST", "/v1/refunds", fakestripe.Busy, 1)
			if err := refund(s.desk, 200, "busy"); licensing.ReasonOf(err) != licensing.ReasonProviderFailed {
				t.Errorf("Stripe is busy: %v", err)
			}
			if err := refund(s.other, 1, "meanwhile"); licensing.ReasonOf(err) != licensing.ReasonInvalidOrderState {
				t.Errorf("another refund meanwhile: %v", err)
			}
			s.advance(time.Hour)
			if err := s.other.SendRefundsDue(s.ctx); err != nil {
				t.Fatal(err)
			}
			s.returned("after Stripe was busy", o, 500, charged(1300), paid)
			var group sync.WaitGroup
			for i := range 4 {
				group.Go(func() { // all that is left: any number of requests is one
					desk := []*payment.Desk{s.desk, s.other}[i%2]
					if _, _, err := desk.RefundInvoice(s.ctx, owner, o.OrderNo, invoice.Reference,
						licensing.RequestReturn{}, nil); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			s.returned("all of the invoice", o, 900, charged(900), first)
			for _, id := range s.fake.IDs("refund") {
				s.called(payment.ObjectRefund, id)
			}
			s.returned("callbacks", o, 900, charged(900), first)
			if _, _, err := s.desk.Refund(s.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); err != nil {
				t.Fatal(err)
			}
			if now := s.order(o); now.AmountRefunded() != 1800 || s.fake.Kept(o.OrderNo) != 0 {
				t.Errorf("all is refunded: %+v, and Stripe has %d", now, s.fake.Kept(o.OrderNo))
			}
			s.verify()
		})
	}
}

// TestTaxedInvoiceInDashboard: the callbacks of two refunds of a renewal with tax come after both were made. Each is of
// its part, and the second one takes back the period.
func TestTaxedInvoiceInDashboard(t *testing.T) {
	s := atStripe(t, func(c *stripe.Config) { c.AutomaticTax = true })
	o, invoice := s.renewed(fakestripe.CardPays)
	first, paid := o.PaidEnd, s.order(o).PaidEnd
	var refunds []string
	for range 2 {
		id, err := s.fake.RefundInDashboard(invoice.ProviderID, 540) // of 1080
		if err != nil {
			t.Fatal(err)
		}
		refunds = append(refunds, id)
	}
	s.called(payment.ObjectRefund, refunds[0])
	s.returned("the first callback", o, 450, 1080, paid)
	s.called(payment.ObjectRefund, refunds[1])
	s.returned("the second callback", o, 900, 1080, first)
}

// TestRefundOfInvoiceFails: a refund of a renewal that is pending takes the period back once Stripe has sent the money.
// The period comes back if the refund fails later, and the shop may ask again.
func TestRefundOfInvoiceFails(t *testing.T) {
	for name, card := range map[string]string{
		"fails": fakestripe.CardRefundFails, "is pending": fakestripe.CardRefundPending,
	} {
		t.Run(name, func(t *testing.T) {
			s, fails := atStripe(t), card == fakestripe.CardRefundFails
			o, invoice := s.renewed(card)
			first, paid := o.PaidEnd, s.order(o).PaidEnd
			request := func() licensing.Order {
				t.Helper()
				now, _, err := s.desk.RefundInvoice(s.ctx, owner, o.OrderNo, invoice.Reference,
					licensing.RequestReturn{}, nil)
				if err != nil {
					t.Fatal(err)
				}
				return now
			}
			now := request()
			if _, sum := now.RefundsDue(); fails == (sum > 0) || fails != now.PaidEnd.Equal(first) {
				t.Errorf("right after the request: %+v with %+v", now, now.OpenReturns())
			}
			s.verify()
			s.advance(25 * time.Hour)
			for _, id := range s.fake.IDs("refund") {
				s.called(payment.ObjectRefund, id)
			}
			if !fails {
				s.returned("sent later", o, 900, 900, first)
				return
			}
			s.returned("failed later", o, 0, 1800, paid)
			request()
			s.returned("again", o, 900, 900, first)
		})
	}
}

// TestRefundOfForeignInvoice: only an invoice among the payments of the order can be refunded with it.
func TestRefundOfForeignInvoice(t *testing.T) {
	s := atStripe(t)
	o, _ := s.renewed(fakestripe.CardPays)
	_, foreign := s.renewed(fakestripe.CardPays)
	for _, reference := range []string{"in_0", o.Payment, foreign.Reference} {
		_, _, err := s.desk.RefundInvoice(s.ctx, owner, o.OrderNo, reference, licensing.RequestReturn{}, nil)
		if licensing.ReasonOf(err) != licensing.ReasonInvalidField {
			t.Errorf("%s: %v", reference, err)
		}
	}
	if n := len(s.fake.IDs("refund")); n != 0 {
		t.Errorf("there are %d refunds", n)
	}
}
