package stripe_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/payment"
	"licet/payment/stripe"
)

const refundsPath = "/v1/refunds"

// TestRefund: a refund moves money once for each number, also in parts.
func TestRefund(t *testing.T) {
	f := newFixture(t)
	order, _ := f.paid(4900, "USD", fakestripe.CardPays)
	for range 2 {
		state, err := f.provider.Refund(t.Context(), order, refund(order, "ref_1", 1900))
		if err != nil || state.Outcome != payment.OutcomeDone || state.Refund != "ref_1" || state.Amount != 1900 ||
			state.OrderNo != order.OrderNo || state.Payment != order.Payment || state.Currency != "USD" {
			t.Errorf("%+v, %v", state, err)
		}
	}
	if f.fake.Kept(order.OrderNo) != 3000 {
		t.Errorf("the shop keeps %d", f.fake.Kept(order.OrderNo))
	}
	f.fake.Advance(25 * time.Hour) // Stripe has forgotten the key: only the metadata tell of the refund
	if _, err := f.provider.Refund(t.Context(), order, refund(order, "ref_2", 3000)); err != nil {
		t.Error(err)
	}
	if state, err := f.provider.Refund(t.Context(), order, refund(order, "ref_1", 1900)); err != nil ||
		state.Outcome != payment.OutcomeDone || state.Amount != 1900 {
		t.Errorf("%+v, %v", state, err)
	}
	if _, err := f.provider.Refund(t.Context(), order, refund(order, "ref_3", 1)); !errors.Is(err, payment.ErrRefused) {
		t.Errorf("more than was paid: %v", err)
	}
	if f.fake.Kept(order.OrderNo) != 0 {
		t.Errorf("the shop keeps %d", f.fake.Kept(order.OrderNo))
	}
}

// TestRefundFaults: after every fault, the same call again sends the money back once.
func TestRefundFaults(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		fault fakestripe.Fault
		fails int // how many calls may fail
	}{
		{fakestripe.Busy, 1}, {fakestripe.BadGateway, 1}, {fakestripe.Lost, 1}, {fakestripe.After, 0},
		{fakestripe.Before, 1},
	} {
		order, _ := f.paid(4900, "USD", fakestripe.CardPays)
		f.fake.Fail(http.MethodPost, refundsPath, c.fault, 1)
		failed := 0
		for range 3 {
			state, err := f.provider.Refund(t.Context(), order, refund(order, "ref_"+order.OrderNo, 4900))
			if errors.Is(err, payment.ErrRefused) {
				t.Errorf("fault %d: %v", c.fault, err)
			}
			if err != nil {
				failed++
			} else if state.Outcome != payment.OutcomeDone {
				t.Errorf("fault %d: %+v", c.fault, state)
			}
		}
		if failed > c.fails || f.fake.Kept(order.OrderNo) != 0 {
			t.Errorf("fault %d: %d calls have failed, and the shop keeps %d", c.fault, failed,
				f.fake.Kept(order.OrderNo))
		}
	}
}

// TestRefundOfNothingLeft: if the shop has sent back all of a payment with tax in the dashboard, and the service has
// not learned of that yet, Stripe is not asked for a refund of nothing.
func TestRefundOfNothingLeft(t *testing.T) {
	f := newFixture(t)
	f.cfg.AutomaticTax = true
	f.provider = stripe.New(f.cfg)
	order, _ := f.paid(100, "USD", fakestripe.CardPays) // 120 with tax
	if _, err := f.fake.RefundInDashboard(order.Payment, 120); err != nil {
		t.Fatal(err)
	}
	order.Paid, order.Refunded, order.Refunds = 100, 99, 1
	order.RefundDue, order.RefundNo, order.Refunding = true, "ref_1", 1
	f.fake.Fail(http.MethodPost, refundsPath, fakestripe.BadGateway, 1)
	_, err := f.provider.Refund(t.Context(), order, refund(order, "ref_1", 1))
	if !errors.Is(err, payment.ErrRefused) {
		t.Error(err)
	}
}

// TestRefundLater: a refund may be pending, and may fail after it was done.
func TestRefundLater(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		card        string
		first, last payment.Outcome
		keeps       int64
	}{
		{fakestripe.CardRefundPending, payment.OutcomePending, payment.OutcomeDone, 0},
		{fakestripe.CardRefundFails, payment.OutcomeDone, payment.OutcomeFailed, 4900},
	} {
		order, _ := f.paid(4900, "USD", c.card)
		state, err := f.provider.Refund(t.Context(), order, refund(order, "ref_"+order.OrderNo, 4900))
		if err != nil || state.Outcome != c.first {
			t.Errorf("at once: %+v, %v", state, err)
		}
		f.fake.Advance(23 * time.Hour)
		f.fake.Advance(2 * time.Hour)
		if state := f.look(payment.ObjectRefund, state.ID); state.Outcome != c.last ||
			state.Refund != "ref_"+order.OrderNo {
			t.Errorf("later: %+v", state)
		}
		if f.fake.Kept(order.OrderNo) != c.keeps {
			t.Errorf("the shop keeps %d", f.fake.Kept(order.OrderNo))
		}
	}
}

// TestRefundInDashboard: a refund that was made at Stripe leads to the order, and has no number of ours.
func TestRefundInDashboard(t *testing.T) {
	f := newFixture(t)
	order, _ := f.paid(4900, "USD", fakestripe.CardPays)
	id, err := f.fake.RefundInDashboard(order.Payment, 900)
	if err != nil {
		t.Fatal(err)
	}
	if state := f.look(payment.ObjectRefund, id); state.Refund != "" || state.OrderNo != order.OrderNo ||
		state.Amount != 900 || state.Payment != order.Payment || state.Outcome != payment.OutcomeDone {
		t.Errorf("%+v", state)
	}
}

// TestDispute: a dispute leads to its payment; while it is not won, there is no refund.
func TestDispute(t *testing.T) {
	f := newFixture(t)
	for _, won := range []bool{true, false} {
		order, _ := f.paid(4900, "USD", fakestripe.CardDisputed)
		f.fake.Advance(2 * time.Hour)
		disputes := f.fake.Disputes()
		id := disputes[len(disputes)-1]
		state := f.look(payment.ObjectDispute, id)
		if state.Outcome != payment.OutcomeOpen || state.Payment != order.Payment || state.Amount != 4900 ||
			state.Fee == nil || *state.Fee != 1500 {
			t.Errorf("%+v", state)
		}
		if _, err := f.provider.Refund(t.Context(), order, refund(order, "ref_"+order.OrderNo, 4900)); !errors.Is(err,
			payment.ErrRefused) {
			t.Errorf("refund of a disputed payment: %v", err)
		}
		f.fake.Decide(id, won)
		want := map[bool]payment.Outcome{true: payment.OutcomeWon, false: payment.OutcomeLost}[won]
		if state := f.look(payment.ObjectDispute, id); state.Outcome != want || *state.Fee != 1500 {
			t.Errorf("%+v, want %s", state, want)
		}
	}
}

// TestPreventedDispute: the shop has lost a dispute that Stripe has resolved by giving the money back, and has won a
// dispute that Stripe has blocked.
func TestPreventedDispute(t *testing.T) {
	f := newFixture(t)
	for resolve, want := range map[bool]payment.Outcome{true: payment.OutcomeLost, false: payment.OutcomeWon} {
		order, _ := f.paid(4900, "USD", fakestripe.CardPays)
		id, err := f.fake.Prevent(order.Payment, resolve)
		if err != nil {
			t.Fatal(err)
		}
		state := f.look(payment.ObjectDispute, id)
		if state.Outcome != want || state.Amount != 4900 || (f.fake.Kept(order.OrderNo) == 0) != resolve {
			t.Errorf("resolved %t: %+v, want %s", resolve, state, want)
		}
	}
}

// TestRefundOfNothing: a payment that Stripe does not know is no refusal, as the key may be that of another account.
func TestRefundOfNothing(t *testing.T) {
	f := newFixture(t)
	order := f.order(4900, "USD")
	order.Payment = "pi_none"
	if _, err := f.provider.Refund(t.Context(), order, refund(order, "ref_1", 4900)); !errors.Is(err,
		payment.ErrUnknownObject) || errors.Is(err, payment.ErrRefused) {
		t.Error(err)
	}
	order, _ = f.paid(4900, "USD", fakestripe.CardPays)
	f.fake.Forbid(testKey, refundsPath) // a restricted key: the shop adds the permission, and a later try succeeds
	if _, err := f.provider.Refund(t.Context(), order, refund(order, "ref_2", 4900)); err == nil || errors.Is(err,
		payment.ErrRefused) {
		t.Error(err)
	}
}
