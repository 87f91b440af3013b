package stripe_test

import (
	"errors"
	"fmt"
	"testing"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/payment"
)

// TestAmounts: what Stripe charges for an amount of our minor units, and back.
func TestAmounts(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		currency     string
		ours, theirs int64
	}{
		{"USD", 4900, 4900}, {"EUR", 50, 50}, {"JPY", 5000, 5000}, {"KRW", 50, 50}, {"VND", 1, 1},
		{"ISK", 5, 500}, {"UGX", 5, 500}, // no decimals, and hundredths at Stripe
		{"MGA", 500, 5}, {"MGA", 100, 1}, // two decimals, and none at Stripe
		{"HUF", 17500, 17500}, {"TWD", 80045, 80045}, // payouts alone have no decimals
		{"KWD", 5120, 5120}, {"BHD", 10, 10}, // three decimals, the last of which is 0
		{"USD", 999_999_999_999, 999_999_999_999}, {"ISK", 9_999_999_999, 999_999_999_900},
	} {
		name := fmt.Sprint(c.ours, " ", c.currency)
		asked := licensing.OrderPayment{Amount: c.ours, Currency: c.currency}
		if err := f.provider.Accepts(licensing.Order{OrderPayment: asked}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		order, state := f.paid(c.ours, c.currency, fakestripe.CardPays)
		if f.fake.Kept(order.OrderNo) != c.theirs || state.Amount != c.ours || state.Currency != c.currency {
			t.Errorf("%s: Stripe has %d, want %d, and the state is %+v", name, f.fake.Kept(order.OrderNo), c.theirs,
				state)
		}
		back, err := f.provider.Refund(t.Context(), order, refund(order, "ref_"+order.OrderNo, c.ours))
		if err != nil || back.Amount != c.ours || f.fake.Kept(order.OrderNo) != 0 {
			t.Errorf("%s: the refund is %+v, %v", name, back, err)
		}
	}
}

// TestUnchargeable: amounts that Stripe does not charge are refused when the order is created, with what to do.
func TestUnchargeable(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		amount                   int64
		currency, field, problem string
	}{
		{49, "USD", "amount", "must be at least 50, the least that Stripe charges in USD"},
		{29, "GBP", "amount", "must be at least 30, the least that Stripe charges in GBP"},
		{17499, "HUF", "amount", "must be at least 17500, the least that Stripe charges in HUF"},
		{1_000_000_000_000, "USD", "amount", "must be at most 999999999999, the most that Stripe charges in USD"},
		{10_000_000_000, "ISK", "amount", "must be at most 9999999999, the most that Stripe charges in ISK"},
		{5121, "KWD", "amount", "must be a multiple of 10: Stripe charges no smaller parts of KWD"},
		{150, "MGA", "amount", "must be a multiple of 100: Stripe charges no smaller parts of MGA"},
		{5000, "IQD", "currency", "IQD can't be charged through Stripe"},
		{5000, "CLF", "currency", "CLF can't be charged through Stripe"},
	} {
		asked := licensing.OrderPayment{Amount: c.amount, Currency: c.currency}
		err := f.provider.Accepts(licensing.Order{OrderPayment: asked})
		var refused *licensing.Error
		if !errors.As(err, &refused) || refused.Reason != licensing.ReasonInvalidField || len(refused.Fields) != 1 ||
			refused.Fields[0] != (licensing.FieldProblem{Field: c.field, Problem: c.problem}) {
			t.Errorf("%d %s: %v", c.amount, c.currency, err)
		}
	}
	order, _ := f.paid(5000, "KWD", fakestripe.CardPays)
	if _, err := f.provider.Refund(t.Context(), order, refund(order, "ref_1", 5)); !errors.Is(err, payment.ErrRefused) {
		t.Errorf("a refund of 0.005 KWD: %v", err)
	}
}
