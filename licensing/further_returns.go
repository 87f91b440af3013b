package licensing

import (
	"cmp"
	"errors"
	"time"
)

// A refund of a later invoice of a subscription, or of a second payment, has a record of its own, KindOfInvoiceRefund.
// The service asks the provider for it (see Return), or it is made at the provider, as in Stripe's dashboard. One
// transaction stores what has become of the refund (NoteInvoiceRefund), how much of the invoice has gone back
// (RefundInvoice), the sum in the order along with the end of the paid period (CountInvoiceRefund), and the end of the
// license (ReturnPeriod). An invoice that has gone back as a whole pays for no period. If the refund fails after it was
// made, all of that goes back.

// ErrInvoicesChanged is the result of CountInvoiceRefund if the invoices of the order have changed since they were
// read.
var ErrInvoicesChanged = errors.New("the invoices of the order have changed since they were read")

// NoteInvoiceRefund creates the record of a refund of an invoice, or stores what has become of it. Result.Back is how
// much more of the invoice has gone back. If the record has this state or a later one, the result is ErrRefundClosed.
type NoteInvoiceRefund struct{ Refund Payment }

// DeviceID is empty: no device is touched.
func (NoteInvoiceRefund) DeviceID() string { return "" }

func (NoteInvoiceRefund) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c NoteInvoiceRefund) apply(r *Record, now time.Time) (Result, error) {
	refund := c.Refund
	refund.Kind, refund.RecordedAt = KindOfInvoiceRefund, now
	switch {
	case refund.State != PaymentDone:
		refund.PaidAt = time.Time{}
	case refund.PaidAt.IsZero() || refund.PaidAt.After(now):
		refund.PaidAt = now
	}
	back := refund.sentBack()
	if stored := r.Payment; stored != nil {
		if !refund.State.follows(stored.State) {
			return Result{}, ErrRefundClosed
		}
		refund.Amount, refund.RecordedAt, refund.By = stored.Amount, stored.RecordedAt, stored.By
		back = refund.sentBack() - stored.sentBack()
	}
	r.Payment, r.Changed = &refund, true
	return Result{refund: &refund, rare: &rareResult{Back: back}}, nil
}

// sentBack returns how much money of an invoice a refund has sent back.
func (p *Payment) sentBack() int64 {
	if p.State == PaymentDone {
		return p.Amount
	}
	return 0
}

// FullyReturned reports whether all that was paid with an invoice has gone back.
func (p *Payment) FullyReturned() bool { return p.Amount > 0 && p.Returned >= p.Amount }

// RefundInvoice adds Back to the returned amount of an invoice or a second payment, and Uncounted to the amount of its
// lost disputes that does not count as refunded. Result.Refund is the changed payment.
type RefundInvoice struct{ Back, Uncounted int64 }

// DeviceID is empty: no device is touched.
func (RefundInvoice) DeviceID() string { return "" }

func (RefundInvoice) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c RefundInvoice) apply(r *Record, _ time.Time) (Result, error) {
	if r.Payment == nil || r.Payment.Kind != KindOfInvoice && r.Payment.Kind != KindOfSecond {
		return Result{}, ErrRefundMisfit
	}
	invoice := *r.Payment
	if invoice.Returned += c.Back; invoice.Returned < 0 || invoice.Returned > invoice.Amount {
		return Result{}, ErrRefundMisfit
	}
	if invoice.Uncounted += c.Uncounted; invoice.Uncounted < 0 {
		return Result{}, ErrRefundMisfit
	}
	r.Payment, r.Changed = &invoice, c.Back != 0 || c.Uncounted != 0
	return Result{refund: &invoice, rare: &rareResult{Back: c.Back}}, nil
}

// CountInvoiceRefund adds what has gone back of an invoice to its order, and moves the end of the paid period. It fails
// with ErrInvoicesChanged if the order's invoices or their refunds have changed since they were counted.
type CountInvoiceRefund struct {
	Back              int64
	Invoices, Refunds int // as the order had them when PaidEnd was found
	PaidEnd           time.Time
	Refund            Payment // what has become of the refund
	Invoice           Payment // after that
}

// DeviceID is empty: no device is touched.
func (CountInvoiceRefund) DeviceID() string { return "" }

func (CountInvoiceRefund) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c CountInvoiceRefund) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	switch {
	case err != nil:
		return Result{}, err
	case o.Invoices != c.Invoices || o.InvoiceRefunds != c.Refunds:
		return Result{}, ErrInvoicesChanged
	}
	if c.Back != 0 {
		o.countReturned(c.Back, c.PaidEnd, now)
	}
	o.noteReturn(&c.Refund, &c.Invoice, now)
	o.recountFurther(&c.Invoice, now)
	r.recordOrder(EventOrderRefundUpdated, Provider, now)
	return Result{order: new(*o)}, nil
}

// ReturnPeriod moves the end of a license after an invoice was refunded, or its refund has failed: from the end that
// the invoices gave to the end that they give now. It is a no-op for a license that is revoked, and for a license whose
// end is another: the shop has set it. The license does not end before an end that the shop has set.
type ReturnPeriod struct{ From, To time.Time }

// DeviceID is empty: no device is touched.
func (ReturnPeriod) DeviceID() string { return "" }

func (ReturnPeriod) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c ReturnPeriod) apply(r *Record, now time.Time) (Result, error) {
	l := r.License
	if l == nil || !l.RevokedAt.IsZero() || l.ExpiresAt.IsZero() {
		return Result{}, nil
	}
	end := l.laterOf(c.To)
	if l.ExpiresAt.Equal(l.laterOf(c.From)) && !l.ExpiresAt.Equal(end) {
		l.extendTo(end, now)
		r.recordLicense(l, EventLicenseUpdated, Provider, now, nil)
	}
	return Result{License: *l}, nil
}

// laterOf returns the later of a time and the end that the shop has set.
func (l *License) laterOf(end time.Time) time.Time {
	if l.SetEnd.After(end) {
		return l.SetEnd
	}
	return end
}

// PaidEndOf returns the end of the paid period of an order with these records of payments, without the invoice with a
// reference: the latest end of the period of a payment, or of an invoice that has not gone back.
func (o *Order) PaidEndOf(records []Payment, without string) (end time.Time) {
	for i := range records {
		p := &records[i]
		until := p.PeriodEnd
		switch {
		case p.Kind == KindOfPayment:
			until = cmp.Or(until, o.Interval.AddTo(o.PaidAt))
		case p.Kind != KindOfInvoice, p.Reference == without, p.FullyReturned():
			continue
		}
		if until.After(end) {
			end = until
		}
	}
	return end
}

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

// countDispute adds count.Back to the returned amount of the order's further payments, and moves the end of the paid
// period. It ends each open refund of this payment for which too little is left, unless the provider may have taken
// the refund. If more of the dispute may count, a sweep asks about the dispute again.
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
	case !further.FullyReturned() && further.PeriodEnd.After(end):
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

// retryRefundNow makes an open refund of the disputed payment due at once if the provider was asked for it before and
// may have refused it because of the dispute, which has ended.
func (o *Order) retryRefundNow(further *FurtherDisputed, now time.Time) {
	if further == nil && o.refundAsked() && !o.RefundPending {
		o.RefundRetryAt = now
	}
	for _, r := range o.OpenReturns() {
		if further != nil && r.Of == further.Payment.Reference && r.Tries > 0 && !r.Pending {
			r.RetryAt = now
			o.changeReturn(r.Number, &r)
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
