package licensing

import "time"

// A buyer may also dispute a further payment of an order. A lost dispute then counts in Order.Returned, and in the
// record of the further payment, as a refund of the payment does. If a lost dispute leaves nothing of an invoice, it
// takes back the period that the invoice paid for.

// FurtherDisputed is what NoteDispute needs of the further payment that a buyer disputes.
type FurtherDisputed struct {
	Payment  Payment // its record
	Invoices int     // Order.Invoices, read no later than the record
	Refunds  int     // Order.InvoiceRefunds, read no later than the record
	// PaidEnd is the end of the period that the other payments of the order pay for.
	PaidEnd time.Time
}

// disputableOf is Order.disputable for a further payment.
func (o *OrderReturns) disputableOf(further *Payment) int64 {
	left := further.Amount - further.Returned
	for _, r := range o.OpenReturns() {
		if r.Of == further.Reference && r.asked() {
			left -= r.Amount
		}
	}
	return left
}

// recountFurther makes a sweep ask again about the lost disputes of a further payment, if more of them may count.
func (o *Order) recountFurther(further *Payment, now time.Time) {
	if further.Uncounted > 0 && o.disputableOf(further) > 0 {
		o.DisputeAskAt = now
	}
}

// countDispute adds to what has gone back of the further payment, and to what does not count. An open refund of it for
// which nothing is left ends, unless the provider may have taken the refund.
func (o *Order) countDispute(f *FurtherDisputed, count RefundInvoice, now time.Time) {
	further, end := f.Payment, f.PaidEnd
	further.Returned += count.Back
	further.Uncounted += count.Uncounted
	defer o.recountFurther(&further, now)
	if count.Back == 0 {
		return
	}
	switch {
	case further.Kind == KindOfSecond: // which pays for no period
		end = o.PaidEnd
	case !further.Whole() && further.PeriodEnd.After(end):
		end = further.PeriodEnd
	}
	o.countReturned(count.Back, end, now)
	if further.Kind == KindOfSecond {
		o.dueSecond(&further, "", o.InvoiceRefunds, now)
		return
	}
	for _, r := range o.OpenReturns() {
		if r.Of == further.Reference && !r.asked() && r.Amount > o.disputableOf(&further) {
			o.changeReturn(r.Number, nil)
		}
	}
}

// countReturned adds to what has gone back of further payments, and moves the end of the paid period.
func (o *Order) countReturned(back int64, end, now time.Time) {
	o.Returned += back
	o.InvoiceRefunds++
	if o.PaidEnd.Equal(end) {
		return
	}
	if o.PaidEnd = end; !o.EndDue {
		o.planAsk(now)
	}
}
