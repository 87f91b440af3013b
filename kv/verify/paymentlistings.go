package verify

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/layout"
	"licet/licensing"
)

// balance is the sum of the payments and refunds in the listing of an order.
type balance struct {
	paid     int64
	refunded int64
	refunds  int              // and disputes that count as refunded, or did
	open     []string         // disputes, by their references
	pending  map[string]int64 // refunds, by their numbers
	invoices int
	invoiced int64
	returned int64 // of the invoices, as they have it
	back     int64 // of the invoices, by the records of refunds
	unread   bool  // not all of them can be read
}

func (b *balance) add(p *licensing.Payment) {
	switch p.Kind {
	case licensing.KindOfRefund:
	case licensing.KindOfDispute:
		b.addDispute(p)
		return
	case licensing.KindOfInvoice:
		b.invoices++
		b.invoiced += p.Amount
		b.returned += p.Returned
		return
	case licensing.KindOfInvoiceRefund:
		if p.State == licensing.PaymentDone {
			b.back += p.Amount
		}
		return
	default:
		b.paid += p.Amount
		return
	}
	b.refunds++
	switch p.State {
	case licensing.PaymentDone:
		b.refunded += p.Amount
	case licensing.PaymentPending:
		b.pending[p.Reference] += p.Amount
	}
}

func (b *balance) addDispute(p *licensing.Payment) {
	if p.Counted > 0 {
		b.refunds++
	}
	switch p.State {
	case licensing.PaymentLost:
		b.refunded += p.Counted
	case licensing.PaymentOpen:
		b.open = append(b.open, p.Reference)
	}
}

// checkBalance compares the amounts of an order with its listed payments, once these were looked up.
func (v *recordChecks) checkBalance(
	o *licensing.Order, listed *balance, bad func(rule, format string, args ...any),
) {
	v.want(layout.OrderKey(o.Owner, o.OrderNo), func(*mvccpb.KeyValue) {
		pending := map[string]int64{}
		if o.RefundPending {
			pending[o.Refund().Reference] = o.OpenRefund()
		}
		switch {
		case listed.unread:
		case listed.paid != o.Paid:
			bad("paid_sum", "%d was paid, and its payments are %d together", o.Paid, listed.paid)
		case listed.refunded != o.Refunded:
			bad("refunded_sum", "%d is refunded, and its refunds are %d together", o.Refunded, listed.refunded)
		case !maps.Equal(listed.pending, pending):
			bad("refund_pending", "the pending refunds are %v, and their records are %v", pending, listed.pending)
		case listed.refunds != o.Refunds:
			bad("refund_count", "it has %d refunds, and there are %d records", o.Refunds, listed.refunds)
		}
		// An order names only some of very many open disputes.
		named := o.OpenDisputes()
		unknown := func(id string) bool { return !slices.Contains(listed.open, id) }
		if !listed.unread && ((len(named) == 0) != (len(listed.open) == 0) || slices.ContainsFunc(named, unknown)) {
			bad("disputes", "its open disputes are %q, and the open records are %q", named, listed.open)
		}
		if (listed.returned != o.Returned || listed.back != o.Returned) && !listed.unread {
			bad("returned_sum", "%d of its invoices has gone back: %d by the invoices, %d by their refunds",
				o.Returned, listed.returned, listed.back)
		}
		if (listed.invoiced != o.Invoiced || listed.invoices != o.Invoices) && !listed.unread {
			bad("invoiced_sum", "%d was paid with %d invoices, and it has %d invoices of %d together", o.Invoiced,
				o.Invoices, listed.invoices, listed.invoiced)
		}
	})
}

// checkListedPayments checks the listing of an order's payments, and adds up the payments.
func (v *recordChecks) checkListedPayments(ctx context.Context, payments *stream, order entry) (*balance, error) {
	sum := &balance{pending: map[string]int64{}}
	for {
		e, more, err := payments.peek(ctx)
		if err != nil || !more || e.slot != order.slot || !strings.HasPrefix(e.rest, order.rest) {
			return sum, err
		}
		payments.skip()
		v.checkListedPayment(e, sum)
		if err := v.lookUp(ctx, lookupBatch); err != nil {
			return sum, err
		}
	}
}

func (v *recordChecks) checkListedPayment(e entry, sum *balance) {
	ref, orderNo, ok := layout.CutPaymentListing(e.rest)
	if !ok {
		v.report("payment_listing", layout.PaymentListings+Opaque(e.rest), "key",
			"the key is not in the form of an entry of a listing of payments")
		return
	}
	name := layout.PaymentsOf(ref.Owner, orderNo) + "/" + Opaque(ref.ID)
	v.checkBareEntry("payment_listing", name, e)
	v.want(layout.PaymentKey(ref), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.report("payment_listing", name, "payment_missing", "the payment listed here does not exist")
			return
		}
		stored, err := layout.DecodePayment(kv.Value)
		switch {
		case err != nil: // reported with the payments
			sum.unread = true
		case layout.PaymentListingKey(ref, &stored.Payment) != e.key:
			v.report("payment_listing", name, "misplaced", "the payment listed here is of the order %s, recorded at %s",
				stored.Payment.OrderNo, stored.Payment.RecordedAt.Format(time.RFC3339Nano))
		default:
			sum.add(&stored.Payment)
		}
	})
}

// strayPayments reports the entries of listings of payments that sort before those of an order: their own order does
// not exist.
func (v *recordChecks) strayPayments(ctx context.Context, payments *stream, order entry) error {
	for {
		e, more, err := payments.peek(ctx)
		if err != nil || !more || cmp.Or(cmp.Compare(e.slot, order.slot),
			cmp.Compare(e.rest[:min(len(e.rest), len(order.rest))], order.rest)) >= 0 {
			return err
		}
		payments.skip()
		v.report("payment_listing", layout.PaymentListings+Opaque(e.rest), "order_missing",
			"the order whose payment is listed here does not exist")
	}
}
