package verify

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// balance is the sum of the payments and refunds in the listing of an order.
type balance struct {
	paid     int64
	refunded int64
	refunds  int              // without disputes
	lost     map[string]int64 // what counts of lost disputes, by the reference of the payment
	disputes map[string]int   // that count as refunded, or did, by the reference of the payment
	less     map[string]int64 // what does not count of lost disputes, and the same as payments have it, less than 0
	open     []string         // disputes, by their references
	pending  map[string]int64 // refunds, by their numbers
	returns  map[string]int64 // pending refunds of further payments under a number of ours
	seconds  map[string]int64 // the remainder of second payments, by their references
	short    map[string]int64 // the rest of further payments whose lost disputes count less, by their references
	invoices int
	invoiced int64
	returned int64 // of the invoices, as they have it
	back     int64 // of the invoices, by the records of refunds
	fee      int64 // the known fees
	fees     bool  // a fee is known
	unread   bool  // not all of them can be read
}

func (b *balance) add(p *licensing.Payment) {
	if p.Kind == licensing.KindOfUnmatched {
		return
	}
	if p.Fee != nil {
		b.fee, b.fees = b.fee+*p.Fee, true
	}
	switch p.Kind {
	case licensing.KindOfRefund:
	case licensing.KindOfDispute:
		b.addDispute(p)
		return
	case licensing.KindOfInvoice, licensing.KindOfSecond:
		if left := p.Amount - p.Returned; p.Kind == licensing.KindOfSecond && left != 0 {
			b.seconds[p.Reference] = left
		}
		if p.Uncounted > 0 {
			b.short[p.Reference] = p.Amount - p.Returned
		}
		b.invoices++
		b.less[p.Reference] -= p.Uncounted
		b.invoiced += p.Amount
		b.returned += p.Returned
		return
	case licensing.KindOfInvoiceRefund:
		switch {
		case p.State == licensing.PaymentDone:
			b.back += p.Amount
		case p.State == licensing.PaymentPending && licensing.OwnRefund(p.Reference):
			b.returns[p.Reference] = p.Amount
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
		b.disputes[p.Refunds]++
	}
	switch p.State {
	case licensing.PaymentLost:
		b.lost[p.Refunds] += p.Counted
		b.less[p.Refunds] += p.CountsLess()
	case licensing.PaymentOpen:
		b.open = append(b.open, p.Reference)
	}
}

// checkBalance compares the amounts of an order with its listed payments, once these were looked up.
func (v *orderChecks) checkBalance(
	o *licensing.Order, listed *balance, bad func(rule, format string, args ...any),
) {
	v.want(keyspace.OrderKey(o.Owner, o.OrderNo), func(*mvccpb.KeyValue) {
		pending := map[string]int64{}
		if o.RefundPending {
			pending[o.Refund().Reference] = o.OpenRefund()
		}
		refunded, refunds, back := listed.refunded, listed.refunds, listed.back
		for of, counted := range listed.lost {
			if of == o.Payment {
				refunded += counted
			} else {
				back += counted
			}
		}
		refunds += listed.disputes[o.Payment]
		listed.less[o.Payment] -= o.Uncounted
		for of, less := range listed.less {
			if less != 0 && !listed.unread {
				bad("uncounted", "what does not count of the lost disputes of %s differs by %d from their records",
					of, less)
			}
		}
		switch {
		case listed.unread:
		case listed.paid != o.Paid:
			bad("paid_sum", "%d was paid, and its payments are %d together", o.Paid, listed.paid)
		case refunded != o.Refunded:
			bad("refunded_sum", "%d is refunded, and its refunds are %d together", o.Refunded, refunded)
		case !maps.Equal(listed.pending, pending):
			bad("refund_pending", "the pending refunds are %v, and their records are %v", pending, listed.pending)
		case refunds != o.Refunds:
			bad("refund_count", "it has %d refunds, and there are %d records", o.Refunds, refunds)
		}
		// An order names only some of very many open disputes.
		named := o.OpenDisputes()
		unknown := func(id string) bool { return !slices.Contains(listed.open, id) }
		if !listed.unread && (len(named) != min(len(listed.open), licensing.MaxOpenDisputes) ||
			slices.ContainsFunc(named, unknown)) {
			bad("disputes", "its open disputes are %q, and the open records are %q", named, listed.open)
		}
		if (listed.returned != o.Returned || back != o.Returned) && !listed.unread {
			bad("returned_sum", "%d of its invoices has gone back: %d by the invoices, %d by their refunds",
				o.Returned, listed.returned, back)
		}
		returns, seconds := map[string]int64{}, map[string]int64{}
		for _, r := range o.OpenReturns() {
			if r.Pending {
				returns[r.Number] = r.Amount
			}
			if r.Second {
				seconds[r.Of] += r.Amount
			}
			if r.Pending || r.Tries > 0 && !r.Refused { // the provider may have taken the refund
				listed.short[r.Of] -= r.Amount
			}
		}
		for of, left := range listed.short {
			if left > 0 && o.DisputeAskAt.IsZero() && !listed.unread {
				bad("disputes", "%d is left of %s, whose lost disputes do not count as a whole, and no sweep counts "+
					"again", left, of)
			}
		}
		if (!maps.Equal(returns, listed.returns) || !maps.Equal(seconds, listed.seconds)) && !listed.unread {
			bad("returns", "%v of its second payments is to go back, and %v is left; the refunds %v of further "+
				"payments are pending, and the records of %v", seconds, listed.seconds, returns, listed.returns)
		}
		fee := int64(0)
		if o.Fee != nil {
			fee = *o.Fee
		}
		if (listed.fee != fee || listed.fees != (o.Fee != nil)) && !listed.unread {
			bad("fee_sum", "its fees are %d, and the fees of its payments are %d together", fee, listed.fee)
		}
		if (listed.invoiced != o.Invoiced || listed.invoices != o.Invoices) && !listed.unread {
			bad("invoiced_sum", "%d was paid with %d invoices, and it has %d invoices of %d together", o.Invoiced,
				o.Invoices, listed.invoices, listed.invoiced)
		}
	})
}

// checkListedPayments checks the listing of an order's payments, and adds up the payments.
func (v *orderChecks) checkListedPayments(ctx context.Context, payments *stream, order entry) (*balance, error) {
	sum := &balance{pending: map[string]int64{}, returns: map[string]int64{}, seconds: map[string]int64{},
		lost: map[string]int64{}, disputes: map[string]int{}, less: map[string]int64{}, short: map[string]int64{}}
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

func (v *orderChecks) checkListedPayment(e entry, sum *balance) {
	ref, orderNo, ok := keyspace.CutPaymentListing(e.rest)
	if !ok {
		v.report("payment_listing", keyspace.PaymentListings+Opaque(e.rest), "key",
			"this is not the key of an entry of a listing of payments")
		return
	}
	name := keyspace.PaymentsOf(ref.Owner, orderNo) + "/" + Opaque(ref.ID)
	v.checkBareEntry("payment_listing", name, e)
	v.want(keyspace.PaymentKey(ref), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.report("payment_listing", name, "payment_missing", "the payment listed here does not exist")
			return
		}
		stored, err := layout.DecodePayment(kv.Value)
		switch {
		case err != nil: // reported with the payments
			sum.unread = true
		case keyspace.PaymentListingKey(ref, &stored.Payment) != e.key:
			v.report("payment_listing", name, "misplaced", "the payment listed here is of the order %s, recorded at %s",
				stored.Payment.OrderNo, stored.Payment.RecordedAt.Format(time.RFC3339Nano))
		default:
			sum.add(&stored.Payment)
		}
	})
}

// strayPayments reports the entries of listings of payments that sort before those of an order: their own order does
// not exist.
func (v *orderChecks) strayPayments(ctx context.Context, payments *stream, order entry) error {
	for {
		e, more, err := payments.peek(ctx)
		if err != nil || !more || cmp.Or(cmp.Compare(e.slot, order.slot),
			cmp.Compare(e.rest[:min(len(e.rest), len(order.rest))], order.rest)) >= 0 {
			return err
		}
		payments.skip()
		v.report("payment_listing", keyspace.PaymentListings+Opaque(e.rest), "order_missing",
			"the order whose payment is listed here does not exist")
	}
}
