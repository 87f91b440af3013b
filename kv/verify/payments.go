package verify

import (
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// checkPaymentRecord checks a payment, which its order must name, or a refund.
func (v *orderChecks) checkPaymentRecord(e entry) {
	ref, bad, ok := v.named(e, "payment", keyspace.PaymentsFamily, keyspace.ReadPaymentKey)
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
	if p.Ref(ref.Owner) != ref {
		bad("name", "its key is not the hash of its provider and its reference")
	}
	checkState(p, bad)
	if sale := layout.SaleEntry(ref, p); sale != (layout.Entry{}) {
		v.want(sale.Key, func(kv *mvccpb.KeyValue) {
			switch {
			case kv == nil:
				bad("sale_missing", "it is not among the sales of its owner, so reports lack it")
			case string(kv.Value) != sale.Value:
				bad("sale_differs", "its entry among the sales has another amount, currency or product")
			}
		})
	}
	v.want(keyspace.OrderKey(ref.Owner, p.OrderNo), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("order_missing", "its order %s does not exist", p.OrderNo)
			return
		}
		order, err := layout.DecodeOrder(licensing.OrderRef(ref.Owner, p.OrderNo), kv.Value)
		if err != nil {
			return // reported with the orders
		}
		switch o := &order.Order; {
		case p.Kind == licensing.KindOfUnmatched: // perhaps in another currency
			v.wantListed(ref, p, bad)
		case p.Kind == licensing.KindOfRefund, p.Kind == licensing.KindOfDispute,
			p.Kind == licensing.KindOfInvoiceRefund, p.Kind == licensing.KindOfSecond:
			if o.Currency != p.Currency {
				bad("order_differs", "its order %s has another currency", p.OrderNo)
			}
			v.wantListed(ref, p, bad)
		case p.Kind == licensing.KindOfInvoice:
			v.checkInvoice(ref, p, o, bad)
		case o.PaidThrough() != p.Provider || o.Payment != p.Reference:
			bad("order_other", "its order %s does not name it", p.OrderNo)
		case o.Amount != p.Amount || o.Currency != p.Currency || !o.PaidAt.Equal(p.PaidAt):
			bad("order_differs", "its order %s has another amount, currency or time of payment", p.OrderNo)
		case o.Paid != 0: // otherwise an older build has written the payment, and no entry
			v.wantListed(ref, p, bad)
		}
	})
}

// checkInvoice checks the record of a paid invoice of a subscription against its order.
func (v *orderChecks) checkInvoice(
	ref licensing.Ref, p *licensing.Payment, o *licensing.Order, bad func(rule, format string, args ...any),
) {
	switch {
	case !o.Subscribed():
		bad("invoice", "it is an invoice, and its order %s has no subscription", p.OrderNo)
	case p.Currency != o.Currency:
		bad("order_differs", "its order %s has another currency", p.OrderNo)
	case p.PeriodEnd.After(o.PaidEnd) && !p.FullyReturned():
		bad("invoice", "it pays for a period until %s, and its order %s is paid until %s only",
			p.PeriodEnd.Format(time.RFC3339), p.OrderNo, o.PaidEnd.Format(time.RFC3339))
	}
	v.wantListed(ref, p, bad)
}

// wantListed looks up the entry of a payment in the listing of its order.
func (v *orderChecks) wantListed(
	ref licensing.Ref, p *licensing.Payment, bad func(rule, format string, args ...any),
) {
	v.want(keyspace.PaymentListingKey(ref, p), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("listing_missing", "it is not in the listing of its order's payments")
		}
	})
}

// checkState checks what has become of a payment or a refund.
func checkState(p *licensing.Payment, bad func(rule, format string, args ...any)) {
	refund := p.Kind == licensing.KindOfRefund || p.Kind == licensing.KindOfInvoiceRefund
	further := p.Kind == licensing.KindOfInvoice || p.Kind == licensing.KindOfSecond
	if p.Returned < 0 || p.Returned > p.Amount || (p.Returned != 0 || p.Uncounted != 0) && !further {
		bad("state", "%d of %d has gone back, and %d of lost disputes does not count", p.Returned, p.Amount,
			p.Uncounted)
	}
	if p.Kind == licensing.KindOfDispute {
		checkDispute(p, bad)
		return
	}
	switch p.State {
	case licensing.PaymentDone:
	case licensing.PaymentPending, licensing.PaymentFailed:
		if !refund {
			bad("state", "it is a payment, and %s", p.State)
		}
	default:
		bad("state", "it is %q, which is no state", p.State)
		return
	}
	if refund && (p.Amount <= 0 || p.State != licensing.PaymentDone && !p.PaidAt.IsZero()) {
		bad("state", "it is a refund of %d that is made and %s", p.Amount, p.State)
	}
}

// checkDispute checks what has become of a dispute.
func checkDispute(p *licensing.Payment, bad func(rule, format string, args ...any)) {
	switch p.State {
	case licensing.PaymentOpen, licensing.PaymentWon, licensing.PaymentLost:
	default:
		bad("state", "it is a dispute, and %q, which is no state", p.State)
	}
	lost := p.State == licensing.PaymentLost
	if p.Answers < 1 || p.Counted < 0 || p.Counted > p.Amount || lost == p.PaidAt.IsZero() {
		bad("state", "it is a dispute of %d of which %d counts, decided at %s, after %d answers, and %s", p.Amount,
			p.Counted, p.PaidAt, p.Answers, p.State)
	}
}

// checkDisputes checks the order's fields about open disputes.
func checkDisputes(o *licensing.Order, bad func(rule, format string, args ...any)) {
	left := o.PaidAmount() - o.RefundedAmount()
	if o.RefundDue && (o.RefundPending || o.RefundTries > 0) { // the provider may have taken the refund
		left -= o.OpenRefund()
	}
	switch asks := !o.DisputeAskAt.IsZero(); {
	case o.Disputes != "" && !asks, o.Disputes == "" && o.Uncounted == 0 && o.Invoices == 0 && asks:
		bad("disputes", "it has an open dispute about which no sweep asks, or a sweep asks about none")
	case o.Uncounted > 0 && left > 0 && !asks:
		bad("disputes", "%d of its lost disputes does not count, although %d is left, and no sweep counts again",
			o.Uncounted, left)
	}
}

// checkRefunds checks what an order stores of its refunds.
func checkRefunds(o *licensing.Order, bad func(rule, format string, args ...any)) {
	switch {
	case o.Refunded < 0 || o.Refunding < 0 || o.RefundedAmount()+o.OpenRefund() > o.PaidAmount():
		bad("refunds", "%d was paid, %d is refunded and %d being refunded", o.PaidAmount(), o.RefundedAmount(),
			o.OpenRefund())
	case (o.Refunding > 0) != (o.RefundNo != "") || o.RefundPending && !o.RefundDue:
		bad("refunds", "its open refund has an amount without a number, or a number without an amount")
	case o.RefundEnds && (o.RefundNo == "" || !o.CanceledAt.IsZero()):
		bad("refunds", "a refund is to end it, and no refund is open, or it was canceled")
	case slices.ContainsFunc(o.OpenReturns(), func(r licensing.Return) bool {
		return !licensing.OwnRefund(r.Number) || r.Number == "" || r.Of == "" || r.Amount <= 0
	}):
		bad("returns", "an open refund of a further payment has no number of ours, no payment or no amount: %+v",
			o.OpenReturns())
	case o.RefundedAt.IsZero() && o.PaidAmount() > 0 && o.Refunded == o.PaidAmount():
		bad("refunds", "all that was paid is refunded, and the order does not say so")
	}
}

// checkSubscription checks the order's fields about its subscription.
func checkSubscription(o *licensing.Order, bad func(rule, format string, args ...any)) {
	known := slices.Contains(licensing.SubscriptionStatuses(), o.SubscriptionStatus)
	switch {
	case o.Interval.IsZero() && (o.Subscribed() || !o.PaidEnd.IsZero()):
		bad("subscription", "it is paid once, and has a subscription or the end of a paid period")
	case !o.Interval.IsZero() && o.PaidAt.IsZero() != o.PaidEnd.IsZero():
		bad("subscription", "its payment has no end of the paid period, or there is an end without a payment")
	case o.Subscribed() != known, !o.Subscribed() && (o.Answers != 0 || o.ChangeDue()):
		bad("subscription", "its subscription has no known status, or a status without a subscription")
	case o.Change.Kind != "" && (o.AskAt.IsZero() || o.SubscriptionStatus == licensing.SubscriptionCanceled):
		bad("subscription", "its subscription is to be changed, and no sweep does it, or it has ended")
	case !plausibleChange(o):
		bad("subscription", "the change of its subscription, or what the subscription pays for, is incomplete")
	case o.EndDue && (o.AskAt.IsZero() || o.SubscriptionStatus == licensing.SubscriptionCanceled):
		bad("subscription", "its subscription is to be ended, and no sweep does it, or it has ended")
	case o.SubscriptionStatus == licensing.SubscriptionActive && o.AskAt.IsZero():
		bad("subscription", "its subscription is active, and no sweep asks about it")
	}
}

// plausibleChange reports whether the open change, the planned change and the present plan of an order's subscription
// are complete.
func plausibleChange(o *licensing.Order) bool {
	complete := func(p *licensing.Plan) bool { return p != nil && p.ProductID != "" && p.Amount > 0 }
	switch {
	case (o.Change.Kind == licensing.ChangePlan) != (o.Change.Number != "" && complete(o.Change.Plan)),
		!o.Subscribed() && (o.Plan != nil || o.Next != nil),
		o.Plan != nil && !complete(o.Plan):
		return false
	}
	return o.Next == nil || complete(o.Next) && !o.Next.From.IsZero() &&
		o.SubscriptionStatus != licensing.SubscriptionCanceled
}

// checkCheckout checks the order's fields about its checkout at a payment provider.
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

// checkPaymentOfOrder checks that the payment of an order has a record. Older builds have recorded only outside
// payments.
func (v *orderChecks) checkPaymentOfOrder(o *licensing.Order, bad func(rule, format string, args ...any)) {
	if o.PaidAt.IsZero() || o.Paid == 0 && o.Provider != licensing.ProviderOutside {
		return
	}
	v.want(keyspace.PaymentKey(licensing.PaymentRef(o.Owner, o.PaidThrough(), o.Payment)), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("payment_missing", "its payment has no record, so another order can be paid with the same reference")
			return
		}
		if stored, err := layout.DecodePayment(kv.Value); err == nil && (stored.Payment.OrderNo != o.OrderNo ||
			stored.Payment.Kind != licensing.KindOfPayment) {
			bad("payment_other", "its payment is that of another order, or a second payment, an invoice or a refund")
		}
	})
}

// checkSale checks the entry of a payment or a refund by time.
func (v *listingChecks) checkSale(e entry) {
	ref, at, ok := keyspace.ReadSaleKey(e.rest)
	if !ok {
		v.report("sale", keyspace.SalesFamily+Opaque(e.rest), "key", "this is not the key of a sale")
		return
	}
	name := keyspace.SalesOf(ref.Owner) + at.Format(time.RFC3339Nano) + "/" + Opaque(ref.ID)
	v.checkEntry("sale", name, e)
	if _, err := layout.DecodeSale(e.rest[len(keyspace.OwnerPath(ref.Owner)):], e.value); err != nil {
		v.report("sale", name, "value", "the value can't be read: %v", err)
	}
	v.want(keyspace.PaymentKey(ref), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.report("sale", name, "payment_missing", "the payment that reports count here does not exist")
			return
		}
		stored, err := layout.DecodePayment(kv.Value)
		if err == nil && layout.SaleEntry(ref, &stored.Payment).Key != e.key {
			v.report("sale", name, "misplaced", "the payment that reports count here was made at %s, or is not counted",
				stored.Payment.PaidAt.Format(time.RFC3339Nano))
		}
	})
}

// checkProviderEvents checks how far the events of an account at a payment provider are read.
func (v *recordChecks) checkProviderEvents(e entry) {
	if !keyspace.ValidProviderEvents(e.rest) {
		v.report("provider_events", "cell/pe/"+Opaque(e.rest), "key", "the key names no account and mode")
		return
	}
	if _, err := layout.DecodeProviderEvents(e.value); err != nil {
		v.report("provider_events", "cell/pe/"+e.rest, "value", "the value can't be read: %v", err)
	}
}

// checkBooks checks the mark of the time from which on reports are complete.
func (v *recordChecks) checkBooks(e entry) {
	if e.rest != "" {
		v.report("books", "cell/books"+Opaque(e.rest), "key", "no key but cell/books may begin like this")
		return
	}
	if _, err := layout.ReadBooks(e.value); err != nil {
		v.report("books", "cell/books", "value", "it is no time")
	}
}
