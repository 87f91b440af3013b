package payment_test

import (
	"fmt"
	"testing"

	"licet/licensing"
	"licet/payment"
)

// TestRefundOfTaxInDashboard: refunds in the dashboard are of price and tax. The order counts their parts of the price,
// and is refunded once nothing is left of the payment.
func TestRefundOfTaxInDashboard(t *testing.T) {
	w := newFixture(t)
	d := newDashboard(w.bank)
	_, desk := w.open(w.store, d)
	for name, c := range map[string]struct {
		sent, counted []int64
		smallest      int64
	}{
		"whole":          {[]int64{119}, []int64{100}, 1},
		"in parts":       {[]int64{40, 40, 39}, []int64{34, 34, 32}, 1},
		"in whole parts": {[]int64{40, 40, 39}, []int64{30, 30, 40}, 10},
		"rounded up":     {[]int64{1, 1, 1, 116}, []int64{1, 1, 1, 97}, 1},
		"rounds to 0":    {[]int64{118, 1}, []int64{99, 1}, 1},
	} {
		o, left := w.paid(), int64(119)
		for i, amount := range c.sent {
			left -= amount
			object := d.set(o, fmt.Sprint("re_", o.OrderNo, i), "", amount, payment.OutcomeDone)
			state := d.refunds[object.ID]
			state.Charged, state.AllBack, state.Smallest = 119, left == 0, c.smallest
			d.refunds[object.ID] = state
			w.called(object, desk)
		}
		amounts, _ := w.refunds(o)
		if fmt.Sprint(amounts) != fmt.Sprint(c.counted) {
			t.Errorf("%s: the refunds are of %v, want %v", name, amounts, c.counted)
		}
		if now := w.now(o); now.RefundedAmount() != 100 || now.Status(w.node.Now()) != licensing.OrderRefunded {
			t.Errorf("%s: %+v", name, now)
		}
	}
	w.verify()
}

// TestRefundOfTaxOnly: a refund in the dashboard of which the price has no part, by rounding, changes nothing.
func TestRefundOfTaxOnly(t *testing.T) {
	w := newFixture(t)
	d := newDashboard(w.bank)
	_, desk := w.open(w.store, d)
	for name, second := range map[string]bool{"payment": false, "second payment": true} {
		o, of := w.paid(), ""
		if of = "bank_" + o.OrderNo; second {
			of = "pi_" + o.OrderNo
			if err := w.node.RecordSecond(w.ctx, o, licensing.Payment{
				Provider: licensing.ProviderSandbox, Reference: of, Amount: o.Amount, Currency: o.Currency,
			}); err != nil {
				t.Fatal(err)
			}
		}
		object := d.set(o, "re_"+of, "", 1, payment.OutcomeDone)
		state := d.refunds[object.ID]
		state.Payment, state.Charged = of, 300
		d.refunds[object.ID] = state
		w.called(object, desk)
		if now := w.now(o); now.AmountRefunded() != 0 || now.Refunds != 0 {
			t.Errorf("%s: %+v", name, now)
		}
		w.verify()
	}
}

// TestShare: shares are exact also of the largest amounts.
func TestShare(t *testing.T) {
	const most = 2 * licensing.MaxAmount
	for _, c := range []struct{ part, of, amount, want int64 }{
		{1, 3, 100, 33}, {2, 3, 100, 67}, {1, 2, 1, 1}, {0, 5, 100, 0}, {5, 5, 100, 100}, {0, 0, 100, 100},
		{most - 1, most, most, most - 1}, {licensing.MaxAmount, most, most - 2, licensing.MaxAmount - 1},
	} {
		if got := payment.Share(c.part, c.of, c.amount); got != c.want {
			t.Errorf("%d/%d of %d is %d, want %d", c.part, c.of, c.amount, got, c.want)
		}
	}
}

// TestRefundOfParts: a refund of a part that Stripe can't send back changes nothing.
func TestRefundOfParts(t *testing.T) {
	s := atStripe(t)
	for currency, amounts := range map[string][2]int64{"KWD": {15, 20}, "MGA": {150, 200}, "ISK": {0, 5}} {
		o := s.subscribeIn(currency)
		if amounts[0] > 0 {
			_, _, err := s.desk.Refund(s.ctx, owner, o.OrderNo, licensing.RequestRefund{Amount: amounts[0]}, nil)
			if licensing.ReasonOf(err) != licensing.ReasonInvalidField || s.order(o).Refunds != 0 ||
				s.order(o).StateReason != "" || s.order(o).RefundDue {
				t.Errorf("%s: %v, %+v", currency, err, s.order(o))
			}
		}
		now, _, err := s.desk.Refund(s.ctx, owner, o.OrderNo, licensing.RequestRefund{Amount: amounts[1]}, nil)
		if err != nil || now.Refunded != amounts[1] {
			t.Errorf("%s: %v, %+v", currency, err, now)
		}
	}
	s.verify()
}
