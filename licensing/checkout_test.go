package licensing_test

import (
	"testing"
	"time"

	"licet/licensing"
)

const stripe = licensing.ProviderStripe

// stripePayment is a payment that Stripe reports.
func stripePayment() licensing.PayOrder {
	pay := payment
	pay.Provider = stripe
	return pay
}

// atStripe returns the record of an unpaid order with an open checkout, the first attempt's, that ends in half an hour.
func atStripe(t *testing.T, edit func(*licensing.Order)) licensing.Record {
	t.Helper()
	r := ordered(edit)
	must(t, &r, licensing.StartCheckout{Provider: stripe}, noon)
	must(t, &r, licensing.NoteCheckout{Attempt: 1, Checkout: "cs_1", EndsAt: noon.Add(30 * time.Minute)}, noon)
	return r
}

// TestCheckoutAttempts: of many nodes that begin an attempt at the same time, one does, and a late answer about an
// attempt does not touch the next one.
func TestCheckoutAttempts(t *testing.T) {
	r := atStripe(t, nil)
	for _, late := range []licensing.Command{
		licensing.StartCheckout{Provider: stripe}, // of a node that has read the order before the first attempt
		licensing.NoteCheckout{Attempt: 1, Checkout: "cs_2", EndsAt: noon},
		licensing.NoteCheckout{Attempt: 2, Checkout: "cs_2", EndsAt: noon},
		licensing.NoteAnswer{Attempt: 2, Over: true},
	} {
		before := *r.Order
		r.Changed = false
		if must(t, &r, late, noon); r.Changed || *r.Order != before {
			t.Errorf("%+v changes the order", late)
		}
	}
	must(t, &r, licensing.NoteAnswer{Attempt: 1, Over: true}, noon)
	if r.Order.CheckoutOpen() || r.Order.Due().Kind != licensing.DueOrderEnd {
		t.Errorf("the checkout is over, and due is %+v", r.Order.Due())
	}
	must(t, &r, licensing.StartCheckout{Provider: stripe, After: 1}, noon.Add(time.Minute))
	if o := r.Order; o.Attempt != 2 || o.Checkout != "" || !o.CheckoutEnds.IsZero() || !o.CheckoutOpen() {
		t.Errorf("after the second attempt has begun, the order is %+v", o)
	}
	r.Changed = false
	if must(t, &r, licensing.NoteAnswer{Attempt: 1}, noon.Add(time.Hour)); r.Changed {
		t.Error("an answer about the first attempt changes the second")
	}
}

// TestCheckoutAsked: a sweep asks a minute after the attempt has begun, then each hour, and soon after the end.
func TestCheckoutAsked(t *testing.T) {
	r := atStripe(t, nil)
	for i, want := range []time.Duration{
		time.Minute, 31 * time.Minute, 91 * time.Minute, 151 * time.Minute,
	} {
		due := r.Order.AskAt
		if due != noon.Add(want) {
			t.Fatalf("question %d is due after %s, want %s", i+1, due.Sub(noon), want)
		}
		must(t, &r, licensing.NoteAnswer{Attempt: 1}, due)
	}
	r = atStripe(t, nil)
	if due := r.Order.Due(); due != (licensing.Due{Kind: licensing.DueCheckout, At: noon.Add(time.Minute)}) {
		t.Errorf("due is %+v", due)
	}
	must(t, &r, licensing.ExpireOrder{Before: noon.Add(2 * time.Hour)}, noon.Add(2*time.Hour))
	if r.Order.ExpiredAt.IsZero() || r.Order.Due().Kind != licensing.DueCheckout {
		t.Errorf("the end of an order with a checkout is not recorded, or its checkout is forgotten: %+v", r.Order)
	}
}

// TestCheckoutOfPaidAndCanceledOrders: a payment ends the questions about its provider's checkout. If the order is
// canceled or paid elsewhere, a sweep must end the checkout at once.
func TestCheckoutOfPaidAndCanceledOrders(t *testing.T) {
	for name, c := range map[string]struct {
		cmd  licensing.Command
		want licensing.Due
	}{
		"paid at the provider": {stripePayment(), licensing.Due{}},
		"paid outside":         {outside("INV-1"), licensing.Due{Kind: licensing.DueCheckout, At: noon}},
		"canceled":             {licensing.CancelOrder{}, licensing.Due{Kind: licensing.DueCheckout, At: noon}},
	} {
		r := atStripe(t, nil)
		if must(t, &r, c.cmd, noon); r.Order.Due() != c.want {
			t.Errorf("%s: due is %+v, want %+v", name, r.Order.Due(), c.want)
		}
		attempt := r.Order.Attempt
		if must(t, &r, licensing.StartCheckout{Provider: stripe, After: attempt}, noon); r.Order.Attempt != attempt {
			t.Errorf("%s: another attempt begins", name)
		}
	}
	pay := stripePayment()
	for said, want := range map[time.Time]time.Time{
		{}: noon, noon.Add(-time.Minute): noon.Add(-time.Minute), noon.Add(time.Second): noon,
		noon.Add(-time.Hour - time.Second): noon, // before the order was created
	} {
		r := atStripe(t, nil)
		pay.PaidAt = said
		if must(t, &r, pay, noon); !r.Order.PaidAt.Equal(want) {
			t.Errorf("Stripe says that the buyer paid at %s, and the order says %s", said, r.Order.PaidAt)
		}
	}
	r := atStripe(t, nil)
	must(t, &r, licensing.CancelOrder{}, noon)
	paid := must(t, &r, stripePayment(), noon)
	if !paid.RefundDue || r.Order.CheckoutOpen() || r.Order.PaidThrough() != stripe {
		t.Errorf("a payment of a canceled order leaves %+v", r.Order)
	}
}

// TestNoCheckout: no checkout begins for an order that can't be paid through a provider.
func TestNoCheckout(t *testing.T) {
	for name, edits := range orderStates() {
		r := ordered(func(o *licensing.Order) {
			for _, edit := range edits {
				edit(o)
			}
		})
		unpaid := r.Order.Status(noon) == licensing.OrderUnpaid
		must(t, &r, licensing.StartCheckout{Provider: stripe, After: 0}, noon)
		if began := r.Order.Attempt > 0; began != unpaid || r.Changed != unpaid {
			t.Errorf("%s: an attempt begins: %t", name, began)
		}
	}
	r := ordered(func(o *licensing.Order) { o.Provider = licensing.ProviderOutside })
	if must(t, &r, licensing.StartCheckout{Provider: stripe}, noon); r.Changed {
		t.Error("an attempt begins for an order that is paid outside")
	}
}

// TestAskPutOff: only the question that failed is put off, and an answer ends the count of the failures.
func TestAskPutOff(t *testing.T) {
	r := atStripe(t, nil)
	asked := r.Order.AskAt
	for name, now := range map[string]time.Time{"before its time": noon, "of another node": asked} {
		off := licensing.PutOffAsk{Asked: asked}
		if now == asked {
			off.Asked = noon
		}
		r.Changed = false
		if must(t, &r, off, now); r.Changed {
			t.Errorf("the question %s is put off", name)
		}
	}
	for i, want := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute} {
		now := r.Order.AskAt.Add(time.Second)
		must(t, &r, licensing.PutOffAsk{Asked: r.Order.AskAt}, now)
		if o := r.Order; o.AskAt != now.Add(want) || o.AskFailures != i+1 {
			t.Errorf("after failure %d, the question is put off by %s", o.AskFailures, o.AskAt.Sub(now))
		}
	}
	if must(t, &r, licensing.NoteAnswer{Attempt: 1}, r.Order.AskAt); r.Order.AskFailures != 0 {
		t.Errorf("after an answer, %d failures count", r.Order.AskFailures)
	}
}
