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
	for name, c := range map[string]struct{ sent, counted []int64 }{
		"whole":       {[]int64{119}, []int64{100}},
		"in parts":    {[]int64{40, 40, 39}, []int64{34, 34, 32}},
		"rounded up":  {[]int64{1, 1, 1, 116}, []int64{1, 1, 1, 97}},
		"rounds to 0": {[]int64{118, 1}, []int64{99, 1}},
	} {
		o, left := w.paid(), int64(119)
		for i, amount := range c.sent {
			left -= amount
			object := d.set(o, fmt.Sprint("re_", o.OrderNo, i), "", amount, payment.OutcomeDone)
			state := d.refunds[object.ID]
			state.Charged, state.AllBack = 119, left == 0
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
