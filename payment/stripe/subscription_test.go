package stripe_test

import (
	"errors"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/payment"
)

// subscribed returns an order whose subscription has begun, and what the provider says about its checkout.
func (f *fixture) subscribed(amount int64, interval licensing.Period, with string) (licensing.Order, payment.State) {
	f.Helper()
	order := f.order(amount, "EUR")
	order.Interval = interval
	f.begin(&order)
	if err := f.fake.Pay(order.Checkout, with); err != nil {
		f.Fatal(err)
	}
	state := f.look(payment.ObjectCheckout, order.Checkout)
	order.Payment, order.Subscription = state.Payment, state.Subscription
	return order, state
}

var monthly = licensing.Period{Months: 1}

// TestSubscription: the checkout leads to the subscription and its first invoice; each renewal is an invoice.
func TestSubscription(t *testing.T) {
	f := newFixture(t)
	order, early := f.subscribed(1000, monthly, fakestripe.CardPays)
	if charge := f.look(payment.ObjectCharge, early.Payment); early.Fee != nil || charge.OrderNo != "" {
		t.Errorf("not captured: %+v, %+v", early, charge)
	}
	f.fake.Advance(time.Minute)
	state := f.look(payment.ObjectCheckout, order.Checkout)
	if state.Outcome != payment.OutcomeDone || state.Amount != 1000 || state.Payment == "" || state.Fee == nil ||
		state.Subscription == "" || state.Invoice == "" || state.PeriodEnd.Sub(state.At) < 27*24*time.Hour {
		t.Fatalf("checkout: %+v", state)
	}
	first := f.look(payment.ObjectInvoice, state.Invoice)
	if first.Outcome != payment.OutcomeDone || first.OrderNo != order.OrderNo || first.Amount != 1000 ||
		first.Currency != "EUR" || first.Subscription != state.Subscription || first.Payment != state.Payment ||
		!first.PeriodEnd.Equal(state.PeriodEnd) || first.Fee == nil {
		t.Errorf("first invoice: %+v", first)
	}
	charge := f.look(payment.ObjectCharge, state.Payment)
	if charge.Object != first.Object || *charge.Fee != *first.Fee {
		t.Errorf("charge of the first invoice: %+v", charge)
	}
	active := f.look(payment.ObjectSubscription, state.Subscription)
	if active.Outcome != payment.OutcomeDone || active.OrderNo != order.OrderNo || active.Amount != 1000 ||
		!active.PeriodEnd.Equal(state.PeriodEnd) || !active.CancelAt.IsZero() {
		t.Errorf("subscription: %+v", active)
	}
	f.fake.Advance(state.PeriodEnd.Sub(f.fake.Now()) + time.Hour)
	invoices := f.fake.IDs("invoice")
	if len(invoices) != 2 || f.fake.Kept(order.OrderNo) != 2000 {
		t.Fatalf("%d invoices, %d cents", len(invoices), f.fake.Kept(order.OrderNo))
	}
	if second := f.look(payment.ObjectInvoice, invoices[1]); second.Outcome != payment.OutcomeDone ||
		!second.PeriodEnd.After(state.PeriodEnd) || second.Payment == state.Payment {
		t.Errorf("second invoice: %+v", second)
	}
}

// TestPastDue: a renewal that fails is past due. It is paid with another card, or the subscription ends.
func TestPastDue(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		card string
		want payment.Outcome
	}{{fakestripe.CardPays, payment.OutcomeDone}, {fakestripe.CardNoFunds, payment.OutcomeEnded}} {
		order, state := f.subscribed(1000, monthly, fakestripe.CardPays)
		f.fake.SetCard(order.Subscription, fakestripe.CardDeclined)
		f.fake.Advance(state.PeriodEnd.Sub(f.fake.Now()) + time.Hour)
		if now := f.look(payment.ObjectSubscription, order.Subscription); now.Outcome != payment.OutcomeFailed {
			t.Errorf("past due: %+v", now)
		}
		invoices := f.fake.IDs("invoice")
		last := invoices[len(invoices)-1]
		if now := f.look(payment.ObjectInvoice, last); now.Outcome != payment.OutcomeFailed ||
			now.OrderNo != order.OrderNo || now.Fee != nil {
			t.Errorf("invoice: %+v", now)
		}
		f.fake.SetCard(order.Subscription, c.card)
		f.fake.Advance(4 * 24 * time.Hour)
		f.fake.Advance(6 * 24 * time.Hour)
		if now := f.look(payment.ObjectSubscription, order.Subscription); now.Outcome != c.want {
			t.Errorf("with another card: %+v, want %s", now, c.want)
		}
		if _, err := f.provider.Change(t.Context(), order, payment.Change{End: payment.EndNow}); err != nil {
			t.Error(err)
		}
	}
}

// TestEndSubscription: a subscription ends with its period, unless it is resumed, or at once, and then stays ended.
func TestEndSubscription(t *testing.T) {
	f := newFixture(t)
	change := func(order licensing.Order, c payment.Change) payment.State {
		t.Helper()
		var state payment.State
		for range 2 {
			var err error
			if state, err = f.provider.Change(t.Context(), order, c); err != nil {
				t.Fatal(err)
			}
		}
		return state
	}
	order, begun := f.subscribed(1000, monthly, fakestripe.CardPays)
	if state := change(order, payment.Change{End: payment.EndOfPeriod}); !state.CancelAt.Equal(begun.PeriodEnd) ||
		state.Outcome != payment.OutcomeDone {
		t.Errorf("%+v", state)
	}
	if state := change(order, payment.Change{Resume: true}); !state.CancelAt.IsZero() {
		t.Errorf("%+v", state)
	}
	change(order, payment.Change{End: payment.EndOfPeriod})
	f.fake.Advance(begun.PeriodEnd.Sub(f.fake.Now()) + time.Hour)
	if state := f.look(payment.ObjectSubscription, order.Subscription); state.Outcome != payment.OutcomeEnded ||
		f.fake.Kept(order.OrderNo) != 1000 {
		t.Errorf("%+v, %d cents", state, f.fake.Kept(order.OrderNo))
	}
	if _, err := f.provider.Change(t.Context(), order, payment.Change{Resume: true}); !errors.Is(err,
		payment.ErrRefused) {
		t.Errorf("resume of an ended subscription: %v", err)
	}
	other, _ := f.subscribed(1000, monthly, fakestripe.CardPays)
	if state := change(other, payment.Change{End: payment.EndNow}); state.Outcome != payment.OutcomeEnded {
		t.Errorf("%+v", state)
	}
	unknown := licensing.Order{
		OrderPayment:      licensing.OrderPayment{Currency: "EUR"},
		OrderSubscription: licensing.OrderSubscription{Subscription: "sub_none"},
	}
	if _, err := f.provider.Change(t.Context(), unknown, payment.Change{End: payment.EndNow}); !errors.Is(err,
		payment.ErrUnknownObject) || errors.Is(err, payment.ErrRefused) {
		t.Errorf("an unknown subscription: %v", err)
	}
}

// TestChangeAmount: another amount counts from the next invoice on. With proration, the difference is an invoice now,
// which pays for no period. A declined card changes nothing.
func TestChangeAmount(t *testing.T) {
	f := newFixture(t)
	order, begun := f.subscribed(1000, monthly, fakestripe.CardPays)
	if state, err := f.provider.Change(t.Context(), order, payment.Change{Amount: 2000, Once: "chg_0"}); err != nil ||
		state.Amount != 2000 || !state.PeriodEnd.Equal(begun.PeriodEnd) {
		t.Errorf("%+v, %v", state, err)
	}
	if kept := f.fake.Kept(order.OrderNo); kept != 1000 {
		t.Errorf("%d cents", kept)
	}
	prorate := payment.Change{Amount: 5000, Prorate: true, Once: "chg_1"}
	for range 2 {
		if state, err := f.provider.Change(t.Context(), order, prorate); err != nil || state.Amount != 5000 {
			t.Errorf("%+v, %v", state, err)
		}
	}
	invoices := f.fake.IDs("invoice")
	if len(invoices) != 2 {
		t.Fatalf("%d invoices", len(invoices))
	}
	if proration := f.look(payment.ObjectInvoice, invoices[1]); !proration.PeriodEnd.IsZero() ||
		proration.Outcome != payment.OutcomeDone || proration.OrderNo != order.OrderNo {
		t.Errorf("proration: %+v", proration)
	}
	f.fake.SetCard(order.Subscription, fakestripe.CardDeclined)
	if _, err := f.provider.Change(t.Context(), order, payment.Change{Amount: 9000, Prorate: true,
		Once: "chg_2"}); !errors.Is(err, payment.ErrRefused) {
		t.Errorf("a declined card: %v", err)
	}
	if state := f.look(payment.ObjectSubscription, order.Subscription); state.Amount != 5000 {
		t.Errorf("%+v", state)
	}
}

// TestRefundOfInvoice: a refund in Stripe's dashboard leads to the order through the invoice, since the payment intent
// of an invoice has no metadata of ours.
func TestRefundOfInvoice(t *testing.T) {
	f := newFixture(t)
	order, begun := f.subscribed(1000, monthly, fakestripe.CardPays)
	f.fake.Advance(begun.PeriodEnd.Sub(f.fake.Now()) + time.Hour)
	for _, id := range f.fake.IDs("invoice") {
		invoice := f.look(payment.ObjectInvoice, id)
		refund, err := f.fake.RefundInDashboard(invoice.Payment, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if state := f.look(payment.ObjectRefund, refund); state.OrderNo != order.OrderNo || state.Invoice != id ||
			state.Payment != invoice.Payment || state.Amount != 1000 || state.Outcome != payment.OutcomeDone {
			t.Errorf("the refund of %s: %+v", id, state)
		}
	}
	f.fake.Forbid(testKey, "/v1/invoice_payments")
	object := payment.Object{Kind: payment.ObjectRefund, ID: f.fake.IDs("refund")[0]}
	if state, err := f.provider.Look(t.Context(), object); !errors.Is(err, payment.ErrForbidden) {
		t.Errorf("without the permission to read invoices: %+v, %v", state, err)
	}
}

// TestPortal: the buyer changes the card on a page of Stripe.
func TestPortal(t *testing.T) {
	f := newFixture(t)
	order, _ := f.subscribed(1000, monthly, fakestripe.CardPays)
	if url, err := f.provider.Portal(t.Context(), order); err != nil || len(url) <= len(f.fake.URL) {
		t.Errorf("%q, %v", url, err)
	}
	order.Subscription = "sub_none"
	if _, err := f.provider.Portal(t.Context(), order); !errors.Is(err, payment.ErrUnknownObject) {
		t.Errorf("%v", err)
	}
}

// TestIntervals: which intervals Stripe bills.
func TestIntervals(t *testing.T) {
	f := newFixture(t)
	for text, want := range map[string]bool{
		"P1M": true, "P1Y": true, "P3Y": true, "P36M": true, "P18M": true, "P7D": true, "P2W": true, "P1Y6M": true,
		"P4Y": false, "P37M": false, "PT10S": false, "P1M1D": false, "P1DT1H": false, "P2000D": false,
	} {
		interval, ok := licensing.ParsePeriod(text)
		order := f.order(1000, "EUR")
		order.Interval = interval
		if err := f.provider.Accepts(order); !ok || (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, interval := range []licensing.Period{{Days: 7}, {Years: 1}, {Months: 6}} {
		_, state := f.subscribed(1000, interval, fakestripe.CardPays)
		if want := interval.AddTo(state.At); want.Sub(state.PeriodEnd).Abs() > 3*24*time.Hour {
			t.Errorf("%s: until %s, want about %s", interval, state.PeriodEnd, want)
		}
	}
}
