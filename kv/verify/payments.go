package verify

import (
	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/layout"
	"licet/licensing"
)

// checkPaymentRecord checks a payment: its order must name it.
func (v *recordChecks) checkPaymentRecord(e entry) {
	ref, bad, ok := v.named(e, "payment", layout.PaymentsFamily, layout.ReadPaymentKey)
	if !ok {
		return
	}
	stored, err := layout.DecodePayment(e.value)
	if err != nil {
		bad("value", "the value can't be read: %v", err)
		return
	}
	checkWriters(e.value, layout.PaymentWriter, bad)
	p := &stored.Payment
	if licensing.PaymentRef(ref.Owner, p.Provider, p.Reference) != ref {
		bad("name", "its key is not the hash of its provider and its reference")
	}
	v.want(layout.OrderKey(ref.Owner, p.OrderNo), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("order_missing", "its order %s does not exist", p.OrderNo)
			return
		}
		order, err := layout.DecodeOrder(licensing.OrderRef(ref.Owner, p.OrderNo), kv.Value)
		if err != nil {
			return // reported with the orders
		}
		switch o := &order.Order; {
		case o.PaidThrough() != p.Provider || o.Payment != p.Reference:
			bad("order_other", "its order %s does not name it", p.OrderNo)
		case o.Amount != p.Amount || o.Currency != p.Currency || !o.PaidAt.Equal(p.PaidAt):
			bad("order_differs", "its order %s has another amount, currency or time of payment", p.OrderNo)
		}
	})
}

// checkCheckout checks what an order tells about its checkout at a payment provider.
func checkCheckout(o *licensing.Order, bad func(rule, format string, args ...any)) {
	switch {
	case o.Attempt < 0, o.Attempt == 0 && (o.Checkout != "" || !o.CheckoutEnds.IsZero() || o.CheckoutOpen()):
		bad("checkout", "it has a checkout, but no attempt to pay has begun")
	case (o.Checkout == "") != o.CheckoutEnds.IsZero():
		bad("checkout", "its checkout has no end, or an end without a checkout")
	case o.Attempt > 0 && o.Provider == "":
		bad("checkout", "it does not name the provider of its checkout")
	}
}

// checkOutsidePayment checks that an order that was paid outside has a payment with a record.
func (v *recordChecks) checkOutsidePayment(o *licensing.Order, bad func(rule, format string, args ...any)) {
	if o.Provider != licensing.ProviderOutside || o.PaidAt.IsZero() {
		return
	}
	v.want(layout.PaymentKey(licensing.PaymentRef(o.Owner, o.Provider, o.Payment)), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("payment_missing", "its payment has no record, so another order can be paid with the same reference")
			return
		}
		if stored, err := layout.DecodePayment(kv.Value); err == nil && stored.Payment.OrderNo != o.OrderNo {
			bad("payment_other", "its payment is that of another order")
		}
	})
}
