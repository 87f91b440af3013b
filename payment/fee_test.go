package payment_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/node/store"
	"licet/payment"
)

// charged returns the ids of the payments of an order at Stripe, oldest first.
func (s *subscriber) charged(o licensing.Order) (intents []string) {
	for _, e := range s.fake.Ledger() {
		if e.OrderNo == o.OrderNo && e.Kind == "charge" {
			intents = append(intents, e.Payment)
		}
	}
	return intents
}

// fees checks the fees of an order's payments against the stand-in's ledger. Of the oldest payments, as many are known.
func (s *subscriber) fees(what string, o licensing.Order, known int) {
	s.t.Helper()
	want, sum := map[string]int64{}, int64(0)
	for _, e := range s.fake.Ledger() {
		if e.OrderNo != o.OrderNo || e.Kind != "charge" || known == 0 {
			continue
		}
		known--
		sum += e.Fee
		want[e.Payment] = e.Fee
		if e.Invoice != "" {
			want[e.Invoice] = e.Fee
		}
	}
	list, err := s.node.ListPayments(s.ctx, owner, o.OrderNo, store.Page{Limit: 100})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range list.Items {
		fee, told := want[p.Reference]
		if told != (p.Fee != nil) || told && *p.Fee != fee {
			s.t.Errorf("%s: Stripe keeps %d (told: %t) of %+v", what, fee, told, p)
		}
	}
	if now := s.order(o); (now.Fee != nil) != (sum != 0) || now.Fee != nil && *now.Fee != sum {
		s.t.Errorf("%s: Stripe keeps %d of %+v", what, sum, now)
	}
	s.verify()
}

// TestFeesComeLater: Stripe tells the fee of a payment, of an invoice and of a second payment only after it has
// captured the money. The callback about the charge stores the fee once, whichever callback comes first.
func TestFeesComeLater(t *testing.T) {
	s := atStripe(t)
	sold, subscribed := s.sold(), s.subscribe()
	both := s.paidOutside(func(o licensing.Order) {
		if _, _, err := s.desk.Pay(s.ctx, o); err != nil {
			t.Fatal(err)
		}
		if err := s.fake.Pay(s.order(o).Checkout, fakestripe.CardPays); err != nil {
			t.Fatal(err)
		}
	})
	s.called(payment.ObjectCheckout, s.order(both).Checkout)
	orders := map[string]licensing.Order{"sold": sold, "subscribed": subscribed, "paid twice": both}
	for name, o := range orders {
		s.called(payment.ObjectCharge, s.charged(o)[0])
		s.fees(name+", not captured", o, 0)
	}
	s.advance(time.Minute)
	for range 2 {
		for name, o := range orders {
			s.called(payment.ObjectCharge, s.charged(o)[0])
			s.fees(name, o, 1)
		}
	}

	s.advance(31 * 24 * time.Hour)
	s.calledAboutInvoices()
	s.fees("renewed, not captured", subscribed, 1)
	s.advance(time.Minute)
	s.called(payment.ObjectCharge, s.charged(subscribed)[1])
	s.fees("renewed", subscribed, 2)
	s.advance(31 * 24 * time.Hour)
	s.advance(time.Minute)
	s.called(payment.ObjectCharge, s.charged(subscribed)[2])
	s.calledAboutInvoices()
	s.fees("renewed, first heard of the charge", subscribed, 3)

	first := s.checkout()
	if err := s.fake.Pay(first.Checkout, fakestripe.CardPays); err != nil {
		t.Fatal(err)
	}
	s.advance(time.Minute)
	s.called(payment.ObjectCharge, s.charged(first)[0])
	s.called(payment.ObjectCheckout, first.Checkout)
	if now := s.order(first); now.Status(s.node.Now()) != licensing.OrderPaid {
		t.Errorf("after the callback about the charge: %+v", now)
	}
	s.fees("first heard of the charge", first, 1)
}

// TestFeeOfLaterQuestion: any later question about a payment or an invoice stores the fee that its record lacks.
func TestFeeOfLaterQuestion(t *testing.T) {
	s := atStripe(t)
	sold, subscribed := s.sold(), s.subscribe()
	s.advance(31 * 24 * time.Hour)
	s.calledAboutInvoices()
	s.advance(time.Minute)
	s.called(payment.ObjectCheckout, sold.Checkout)
	s.fees("sold", sold, 1)
	s.calledAboutInvoices()
	s.fees("subscribed", subscribed, 2)
}

// countsQuestions counts the questions about subscriptions.
type countsQuestions struct {
	payment.Provider
	asked atomic.Int32
}

func (p *countsQuestions) Look(ctx context.Context, object payment.Object) (payment.State, error) {
	if object.Kind == payment.ObjectSubscription {
		p.asked.Add(1)
	}
	return p.Provider.Look(ctx, object)
}

// TestChargesOfRecordedInvoice: callbacks about the charge of a recorded invoice store its fee. They ask nothing about
// the subscription.
func TestChargesOfRecordedInvoice(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	s.advance(time.Minute)
	s.called(payment.ObjectCharge, s.charged(o)[0])
	s.advance(31 * 24 * time.Hour)
	s.calledAboutInvoices()
	s.fees("renewed, not captured", o, 1)
	s.advance(time.Minute)
	counts := &countsQuestions{Provider: s.provider}
	_, desk := s.open(s.store, counts)
	for range 2 {
		object := payment.Object{Kind: payment.ObjectCharge, ID: s.charged(o)[1]}
		if err := desk.Called(s.ctx, owner, object); err != nil {
			t.Fatal(err)
		}
		s.fees("renewed", o, 2)
	}
	if asked := counts.asked.Load(); asked != 0 {
		t.Errorf("%d questions about the subscription", asked)
	}
}

// TestForeignCharges: callbacks about charges that are of no order, or that the key may not read, need no repetition.
func TestForeignCharges(t *testing.T) {
	s := atStripe(t)
	subscribed := s.subscribe()
	s.advance(time.Minute)
	s.called(payment.ObjectCharge, "pi_foreign")
	for _, path := range []string{"/v1/invoice_payments", "/v1/payment_intents"} {
		s.fake.Forbid(fakeKey, path)
		s.called(payment.ObjectCharge, subscribed.Payment)
		s.fees("without the permission for "+path, subscribed, 0)
	}
}
