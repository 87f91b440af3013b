package stripe_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/payment"
	"licet/payment/stripe"
)

const sessionsPath = "/v1/checkout/sessions"

// TestOneCheckout: all calls for an attempt lead to one session, from any number of nodes; another attempt has its own.
func TestOneCheckout(t *testing.T) {
	f := newFixture(t)
	f.fake.SetFaults(fakestripe.Faults{Slow: 20 * time.Millisecond})
	order := f.order(4900, "USD")
	found := make(map[string]int)
	var mu sync.Mutex
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			step, err := stripe.New(f.cfg).Begin(t.Context(), order)
			mu.Lock()
			defer mu.Unlock()
			if err == nil { // else the request of another call is under way
				found[step.Checkout]++
			}
		})
	}
	calls.Wait()
	step := f.begin(&order)
	if found[step.Checkout] == 0 || len(found) != 1 || len(f.fake.IDs("checkout.session")) != 1 {
		t.Errorf("calls have led to %v, the last one to %s", found, step.Checkout)
	}
	if !strings.HasPrefix(step.Redirect, f.fake.URL) || step.EndsAt.Sub(order.CreatedAt) > 24*time.Hour {
		t.Errorf("step %+v", step)
	}
	order.Attempt, order.Checkout = 2, ""
	if again := f.begin(&order); again.Checkout == step.Checkout {
		t.Error("the second attempt has the session of the first")
	}
}

// TestPaidCheckout: the state of a checkout tells everything that the desk compares, and the fee once Stripe has
// captured the money.
func TestPaidCheckout(t *testing.T) {
	f := newFixture(t)
	order := f.order(4900, "USD")
	step := f.begin(&order)
	open := f.look(payment.ObjectCheckout, step.Checkout)
	if open.Outcome != payment.OutcomeOpen || open.URL != step.Redirect || !open.EndsAt.Equal(step.EndsAt) ||
		open.Payment != "" || open.Fee != nil {
		t.Errorf("open: %+v", open)
	}
	if err := f.fake.Pay(step.Checkout, fakestripe.CardPays); err != nil {
		t.Fatal(err)
	}
	early := f.look(payment.ObjectCheckout, step.Checkout)
	if early.Outcome != payment.OutcomeDone || early.Fee != nil {
		t.Errorf("paid, not captured: %+v", early)
	}
	f.fake.Advance(time.Minute)
	paid := f.look(payment.ObjectCheckout, step.Checkout)
	if paid.Outcome != payment.OutcomeDone || paid.OrderNo != order.OrderNo || paid.Amount != 4900 ||
		paid.Currency != "USD" || paid.Live || !strings.HasPrefix(paid.Payment, "pi_") || paid.URL != "" ||
		paid.Fee == nil || *paid.Fee != 172 || paid.At.Before(order.CreatedAt) {
		t.Errorf("paid: %+v", paid)
	}
	for _, kind := range []payment.ObjectKind{payment.ObjectPayment, payment.ObjectCharge} {
		same := f.look(kind, paid.Payment)
		if same.Outcome != payment.OutcomeDone || same.Kind != payment.ObjectPayment || same.OrderNo != order.OrderNo ||
			same.Amount != 4900 || same.Payment != paid.Payment || *same.Fee != 172 {
			t.Errorf("%s: %+v", kind, same)
		}
	}
	// Stripe repeats the session as it was made. The buyer must not be sent there again.
	order.Checkout = ""
	if again, err := f.provider.Begin(t.Context(), order); err != nil || again.Checkout != step.Checkout ||
		again.Redirect != "" {
		t.Errorf("begin of a paid attempt: %+v, %v", again, err)
	}
}

// TestCards: what each test card does to the checkout and its payment.
func TestCards(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		card string
		says error
		want payment.Outcome
	}{
		{fakestripe.CardPays, nil, payment.OutcomeDone},
		{fakestripe.CardDeclined, fakestripe.ErrDeclined, payment.OutcomeOpen},
		{fakestripe.CardNoFunds, fakestripe.ErrDeclined, payment.OutcomeOpen},
		{fakestripe.CardAuthentication, fakestripe.ErrAuthenticate, payment.OutcomeOpen},
		{fakestripe.BankPays, nil, payment.OutcomePending},
	} {
		order := f.order(1000, "EUR")
		f.begin(&order)
		if err := f.fake.Pay(order.Checkout, c.card); !errors.Is(err, c.says) {
			t.Errorf("%s: %v, want %v", c.card, err, c.says)
		}
		if state := f.look(payment.ObjectCheckout, order.Checkout); state.Outcome != c.want {
			t.Errorf("%s: %+v, want %s", c.card, state, c.want)
		}
	}
	order := f.order(1000, "EUR")
	f.begin(&order)
	_ = f.fake.Pay(order.Checkout, fakestripe.CardDeclined)
	_ = f.fake.Pay(order.Checkout, fakestripe.CardAuthentication)
	if err := f.fake.Authenticate(order.Checkout, true); err != nil {
		t.Fatal(err)
	}
	if state := f.look(payment.ObjectCheckout, order.Checkout); state.Outcome != payment.OutcomeDone {
		t.Errorf("authenticated: %+v", state)
	}
}

// TestDelayedPayment: a payment that takes days is pending, then paid or failed.
func TestDelayedPayment(t *testing.T) {
	f := newFixture(t)
	for account, want := range map[string]payment.Outcome{
		fakestripe.BankPays: payment.OutcomeDone, fakestripe.BankFails: payment.OutcomeFailed,
	} {
		order := f.order(1000, "EUR")
		f.begin(&order)
		if err := f.fake.Pay(order.Checkout, account); err != nil {
			t.Fatal(err)
		}
		if state := f.look(payment.ObjectCheckout, order.Checkout); state.Outcome != payment.OutcomePending {
			t.Errorf("at once: %+v", state)
		}
		f.fake.Advance(4 * 24 * time.Hour)
		if state := f.look(payment.ObjectCheckout, order.Checkout); state.Outcome != want {
			t.Errorf("later: %+v, want %s", state, want)
		}
	}
}

// TestError500 covers attempts for which Stripe answers 500, and repeats the answer.
func TestError500(t *testing.T) {
	f := newFixture(t)
	f.fake.Fail(http.MethodPost, sessionsPath, fakestripe.Before, 1)
	order := f.order(4900, "USD")
	for range 2 { // the fake repeats the error
		if _, err := f.provider.Begin(t.Context(), order); !errors.Is(err, payment.ErrAttemptSpent) {
			t.Fatalf("without a session: %v", err)
		}
	}
	order.Attempt++
	f.begin(&order)

	f.fake.Fail(http.MethodPost, sessionsPath, fakestripe.After, 1)
	made := f.order(4900, "USD")
	step := f.begin(&made)
	if made.Checkout = ""; f.begin(&made).Checkout != step.Checkout {
		t.Error("the second call has found another session")
	}
	if err := f.fake.Pay(step.Checkout, fakestripe.CardPays); err != nil {
		t.Error(err)
	}

	// A lost answer says nothing about the attempt. The next request gets the session: of the next call, or of Go's
	// HTTP client, which repeats a request with an idempotency key if a connection ends that it has used before.
	f.fake.Fail(http.MethodPost, sessionsPath, fakestripe.Lost, 1)
	sessions := len(f.fake.IDs("checkout.session"))
	lost := f.order(4900, "USD")
	if _, err := f.provider.Begin(t.Context(), lost); errors.Is(err, payment.ErrAttemptSpent) {
		t.Fatalf("lost: %v", err)
	}
	if f.begin(&lost); len(f.fake.IDs("checkout.session")) != sessions+1 {
		t.Error("there is a second session")
	}
	for _, fault := range []fakestripe.Fault{fakestripe.Busy, fakestripe.BadGateway} {
		f.fake.Fail(http.MethodPost, sessionsPath, fault, 1)
		busy := f.order(4900, "USD")
		if _, err := f.provider.Begin(t.Context(), busy); err == nil || errors.Is(err, payment.ErrAttemptSpent) {
			t.Fatalf("fault %d: %v", fault, err)
		}
		f.begin(&busy)
	}
}

// TestSessionTimes: at any moment of an order, and if a request comes late by Stripe's clock, Stripe accepts the end of
// the session, which is at most 31 minutes after the end of the order.
func TestSessionTimes(t *testing.T) {
	f := newFixture(t)
	for _, life := range []time.Duration{30 * time.Minute, time.Hour, 23 * time.Hour, 24 * time.Hour} {
		for _, waits := range []time.Duration{
			0, time.Minute, life / 2, life - time.Minute, life - 2*time.Second, life + 50*time.Second,
		} {
			order := f.order(4900, "USD")
			order.ExpiresAt = order.CreatedAt.Add(life)
			f.fake.Advance(waits)
			if end := f.begin(&order).EndsAt; end.After(order.ExpiresAt.Add(31 * time.Minute)) {
				t.Errorf("an order of %s pressed after %s has a checkout until %s after its end", life, waits,
					end.Sub(order.ExpiresAt))
			}
		}
	}
	// The same attempt after hours, also across the moment when a new session would end later: no second session.
	order := f.order(4900, "USD")
	step := f.begin(&order)
	f.fake.Advance(3 * time.Hour)
	if order.Checkout = ""; f.begin(&order).Checkout != step.Checkout {
		t.Error("the same attempt has another session later")
	}
}

// TestEnd: no buyer can pay in the checkout of an ended order, and a payment that was faster stays.
func TestEnd(t *testing.T) {
	f := newFixture(t)
	order := f.order(4900, "USD")
	f.begin(&order)
	for range 2 {
		if err := f.provider.End(t.Context(), order); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.fake.Pay(order.Checkout, fakestripe.CardPays); !errors.Is(err, fakestripe.ErrNotOpen) {
		t.Errorf("pay in an ended checkout: %v", err)
	}
	if state := f.look(payment.ObjectCheckout, order.Checkout); state.Outcome != payment.OutcomeEnded {
		t.Errorf("ended: %+v", state)
	}
	if step := f.begin(&order); step.Redirect != "" {
		t.Errorf("begin leads to an ended checkout: %+v", step)
	}

	faster, _ := f.paid(4900, "USD", fakestripe.CardPays)
	if err := f.provider.End(t.Context(), faster); err != nil {
		t.Errorf("end of a paid checkout: %v", err)
	}
	unknown := f.order(4900, "USD")
	if err := f.provider.End(t.Context(), unknown); err != nil {
		t.Errorf("end of an order without a checkout: %v", err)
	}
	// A node has died before it stored the id of the session.
	f.begin(&unknown)
	id := unknown.Checkout
	unknown.Checkout = ""
	if err := f.provider.End(t.Context(), unknown); err != nil {
		t.Fatal(err)
	}
	if state := f.look(payment.ObjectCheckout, id); state.Outcome != payment.OutcomeEnded {
		t.Errorf("a session whose id is not stored: %+v", state)
	}
	f.fake.Fail(http.MethodPost, sessionsPath+"/"+id+"/expire", fakestripe.Busy, 1)
	unknown.Checkout = id
	if err := f.provider.End(t.Context(), unknown); err == nil {
		t.Error("End reports no failure")
	}
}

// TestExpiredSession: an unpaid session ends by itself.
func TestExpiredSession(t *testing.T) {
	f := newFixture(t)
	order := f.order(4900, "USD")
	f.begin(&order)
	f.fake.Advance(25 * time.Hour)
	state := f.look(payment.ObjectCheckout, order.Checkout)
	if state.Outcome != payment.OutcomeEnded || state.URL != "" {
		t.Errorf("%+v", state)
	}
}

// TestAutomaticTax: the amount to compare is without the tax that Stripe has added.
func TestAutomaticTax(t *testing.T) {
	f := newFixture(t)
	f.cfg.AutomaticTax = true
	f.provider = stripe.New(f.cfg)
	order, state := f.paid(1000, "EUR", fakestripe.CardPays)
	if state.Amount != 1000 || f.fake.Kept(order.OrderNo) != 1200 {
		t.Errorf("%+v, and the buyer has paid %d", state, f.fake.Kept(order.OrderNo))
	}
	for _, now := range []bool{true, false} { // the setting may change while the buyer pays
		f.cfg.AutomaticTax = now
		f.provider = stripe.New(f.cfg)
		for _, object := range []payment.Object{
			{Kind: payment.ObjectPayment, ID: order.Payment}, {Kind: payment.ObjectCheckout, ID: order.Checkout},
		} {
			if state := f.look(object.Kind, object.ID); state.Amount != 1000 || state.Currency != "EUR" {
				t.Errorf("the setting is %t: %+v", now, state)
			}
		}
	}
	order, _ = f.paid(1000, "EUR", fakestripe.CardPays) // without tax
	f.cfg.AutomaticTax = true
	f.provider = stripe.New(f.cfg)
	if state := f.look(payment.ObjectPayment, order.Payment); state.Amount != 1000 {
		t.Errorf("without tax: %+v", state)
	}
}

// TestRefundOfTax: a refund of the price, whole or in parts, sends back the tax too, to the last cent.
func TestRefundOfTax(t *testing.T) {
	f := newFixture(t)
	f.cfg.AutomaticTax = true
	f.provider = stripe.New(f.cfg)
	for _, c := range []struct {
		price  int64
		parts  []int64 // of the price, through us
		before int64   // with tax, in the dashboard
	}{
		{price: 1000, parts: []int64{1000}},
		{price: 999, parts: []int64{333, 333, 333}},
		{price: 103, parts: []int64{1, 1, 1, 100}},
		{price: 1003, parts: []int64{919}, before: 101},
	} {
		order, _ := f.paid(c.price, "EUR", fakestripe.CardPays)
		order.Paid = order.Amount
		if c.before > 0 {
			id, err := f.fake.RefundInDashboard(order.Payment, c.before)
			if err != nil {
				t.Fatal(err)
			}
			state := f.look(payment.ObjectRefund, id)
			if state.Charged != 1203 || state.AllBack {
				t.Errorf("%+v", state)
			}
			order.Refunded, order.Refunds = payment.Share(state.Amount, state.Charged, order.Amount), 1
		}
		for i, part := range c.parts {
			number := fmt.Sprint("ref_", order.OrderNo, i)
			order.RefundDue, order.RefundNo, order.Refunding = true, number, part
			for order.RefundTries = range 3 {
				state, err := f.provider.Refund(t.Context(), order, refund(order, number, part))
				if err != nil || state.Outcome != payment.OutcomeDone {
					t.Errorf("%+v: %+v, %v", c, state, err)
				}
			}
			order.Refunded, order.Refunds = order.Refunded+part, order.Refunds+1
		}
		if kept := f.fake.Kept(order.OrderNo); kept != 0 {
			t.Errorf("%+v: the shop keeps %d", c, kept)
		}
	}
}

// TestHidden: neither an error nor a request tells the buyer's address, the key or the machine.
func TestHidden(t *testing.T) {
	f := newFixture(t)
	f.secrets.Key = "sk_test_wrong0123456789"
	_, err := f.provider.Begin(t.Context(), f.order(4900, "USD"))
	if err == nil || strings.Contains(err.Error(), "wrong0123456789") || !strings.Contains(err.Error(), "401") {
		t.Errorf("%v", err)
	}
	f.secrets.Key = testKey
	order := f.order(4900, "USD")
	order.ExpiresAt = order.CreatedAt.Add(-time.Hour)
	_, err = f.provider.Begin(t.Context(), order)
	if err == nil || strings.Contains(err.Error(), order.BuyerEmail) || !strings.Contains(err.Error(), "expires_at") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.provider.Begin(ctx, f.order(4900, "USD")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestUnknownObjects: another account's objects, and objects that are not there, are unknown.
func TestUnknownObjects(t *testing.T) {
	f := newFixture(t)
	order, state := f.paid(4900, "USD", fakestripe.CardPays)
	const other = "sk_test_other0123456789"
	f.fake.AddKey(other)
	for _, o := range []payment.Object{
		{Kind: payment.ObjectCheckout, ID: order.Checkout}, {Kind: payment.ObjectPayment, ID: state.Payment},
		{Kind: payment.ObjectRefund, ID: "re_1"}, {Kind: payment.ObjectDispute, ID: "../charges"}, {Kind: "other"},
	} {
		f.secrets.Key = other
		if _, err := f.provider.Look(t.Context(), o); !errors.Is(err, payment.ErrUnknownObject) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := f.provider.End(t.Context(), licensing.Order{Checkout: order.Checkout}); err != nil {
		t.Errorf("end: %v", err)
	}
}
