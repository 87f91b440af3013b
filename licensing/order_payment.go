package licensing

import (
	"errors"
	"strings"
	"time"
)

// OrderPayment contains what an order costs, what was paid for it, and what has gone back.
type OrderPayment struct {
	Amount     int64  // in the currency's minor unit
	Currency   string // ISO 4217, upper case
	PaidAt     time.Time
	RefundedAt time.Time
	Payment    string // the payment provider's reference
	// Provider is where the order was paid, or must be paid; see PaidThrough.
	Provider PaymentProvider
	// Paid is how much the order's recorded payment has brought in. It is 0 for an order that an older build has
	// recorded as paid; see PaidAmount.
	Paid int64
	// Fee is the sum of the known fees of the provider, for the payment, the invoices and the disputes; nil: none is
	// known. It is never changed in place. See AddFee for fees that the provider tells later.
	Fee *int64

	// Refunded is how much of the payment has gone back, by Refunds records of refunds and of disputes that count as
	// refunded, or did; see RefundedAmount.
	Refunded int64
	Refunds  int
	// Uncounted is how much of lost disputes of the payment does not count in Refunded, as the money has gone back
	// otherwise, or the provider has taken a refund of it.
	Uncounted int64

	// Invoices is how many further payments there are, invoices after the payment of the order and second payments, and
	// Invoiced their sum.
	Invoices int
	Invoiced int64
	// Returned is how much of Invoiced has gone back. InvoiceRefunds counts the changes of Returned.
	Returned       int64
	InvoiceRefunds int

	// RefundDue reports that a refund is open: the shop has requested it, or the money was paid for a canceled order.
	// It is cleared when the refund is recorded, and when the provider has refused the refund permanently. RefundNo is
	// the number of the open refund, and Refunding its amount. Both are zero for a refund of all that is left whose
	// number is that of the order: older builds request such refunds, and a payment of a canceled order leads to one.
	RefundDue     bool
	RefundNo      string
	Refunding     int64
	RefundPending bool      // the provider has taken the open refund, and has not sent the money yet
	RefundEnds    bool      // the open refund ends the order, even if less has gone back by then; see EndsWithRefund
	RefundBy      Actor     // who requested the refund
	RefundTries   int       // how often a refund was tried, including earlier requests
	RefundRetryAt time.Time // when a sweep asks the provider again; zero: at once
}

// PaidThrough returns where the order was paid, or is to be paid; empty: that is open, or the order is free.
func (p *OrderPayment) PaidThrough() PaymentProvider {
	if p.Provider == "" && p.Payment != "" {
		return ProviderSandbox
	}
	return p.Provider
}

// PaidAmount returns how much was paid for the order.
func (p *OrderPayment) PaidAmount() int64 {
	if p.Paid == 0 && !p.PaidAt.IsZero() {
		return p.Amount
	}
	return p.Paid
}

// RefundedAmount returns how much of the payment has gone back.
func (p *OrderPayment) RefundedAmount() int64 {
	if p.Refunds == 0 && !p.RefundedAt.IsZero() { // an older build has recorded the refund
		return p.PaidAmount()
	}
	return p.Refunded
}

// AmountPaid returns what the buyer has paid in all: for the order, with the later invoices of its subscription, and
// with second payments.
func (p *OrderPayment) AmountPaid() int64 { return p.PaidAmount() + p.Invoiced }

// AmountRefunded returns how much of AmountPaid has gone back.
func (p *OrderPayment) AmountRefunded() int64 { return p.RefundedAmount() + p.Returned }

// countFurther adds a further payment to the sums of the order.
func (p *OrderPayment) countFurther(further *Payment) {
	p.Invoices++
	p.Invoiced += further.Amount
	p.addFee(further.Fee, nil)
}

// addFee adds the fee in a record to those of the order. before is the fee that the record had before. A fee that is
// nil is not known.
func (p *OrderPayment) addFee(fee, before *int64) {
	if fee == nil {
		return
	}
	sum := *fee
	if p.Fee != nil {
		sum += *p.Fee
	}
	if before != nil {
		sum -= *before
	}
	if p.Fee == nil || sum != *p.Fee {
		p.Fee = &sum
	}
}

// PaymentUnlisted reports whether an older build has recorded the order as paid. Then the payment is not in the listing
// of the order's payments, and it has a record only if it is outside.
func (p *OrderPayment) PaymentUnlisted() bool { return p.Paid == 0 && p.Payment != "" }

// AtProvider reports whether a payment provider has taken the money of a paid order, and so can send it back.
func (p *OrderPayment) AtProvider() bool { return p.Amount > 0 && p.Provider != ProviderOutside }

// OpenRefund returns the amount of the open refund; 0: there is none, or the order is free.
func (p *OrderPayment) OpenRefund() int64 {
	if p.RefundDue && p.RefundNo == "" {
		return p.PaidAmount() - p.RefundedAmount()
	}
	return p.Refunding
}

// Refundable returns how much of the payment may still be refunded.
func (p *OrderPayment) Refundable() int64 {
	return p.PaidAmount() - p.RefundedAmount() - p.OpenRefund()
}

// EndsWithRefund reports whether the open refund sends back all that is left of the payment, or all that was left when
// it was requested. Then the refund revokes the licenses of the order. What an earlier refund that fails, or a dispute
// that is won, brings back to the shop meanwhile, the shop owes the buyer, as if that came after the refund.
func (p *OrderPayment) EndsWithRefund() bool {
	return p.RefundDue && p.RefundedAt.IsZero() && (p.RefundEnds || p.Refundable() == 0)
}

// refundAsked reports whether the provider may have taken the open refund: the refund was tried, or was made.
func (p *OrderPayment) refundAsked() bool {
	return p.RefundDue && (p.RefundPending || p.RefundTries > 0)
}

// disputable returns how much of a lost dispute of the payment may count: what neither has gone back nor is in a refund
// that the provider may have taken.
func (p *OrderPayment) disputable() int64 {
	left := p.PaidAmount() - p.RefundedAmount()
	if p.refundAsked() {
		left -= p.OpenRefund()
	}
	return left
}

// recounts reports whether more of the lost disputes of the payment may count.
func (p *OrderPayment) recounts() bool { return p.Uncounted > 0 && p.disputable() > 0 }

// A refund may be made at the payment provider, such as in Stripe's dashboard. The service learns of the refund from a
// callback, when the provider has taken the refund already. NoteRefund makes it the open refund of the order, and from
// then on it ends as a refund of our own: by RefundOrder or WithdrawRefund. Its number is the provider's id.
//
// A refund may also fail after it was made, ours or not: the buyer's bank sends the money back. See TakeBackRefund.

var (
	// ErrRefundOpen is the result of NoteRefund if another refund of the order is open.
	ErrRefundOpen = errors.New("another refund of the order is open")
	// ErrRefundMisfit is the result of NoteRefund for a refund of more than is left of the payment.
	ErrRefundMisfit = errors.New("the refund is of more than is left of the payment")
)

// OwnRefund reports whether a refund has a number of ours. Otherwise the refund was made at the payment provider, and
// the number is the provider's id.
func OwnRefund(number string) bool {
	return number == "" || strings.HasPrefix(number, refundPrefix) || ValidOrderNo(number)
}

// NoteRefund records a refund that was made at the payment provider, as the open refund of a paid order. It is a no-op
// if the refund is open already. PutRefund, in the same transaction, refuses a refund that has a record.
//
// The refund of a payment of a canceled order waits until the other one has ended, unless the provider has taken it.
type NoteRefund struct {
	ProviderID string // the provider's id of the refund
	Amount     int64
}

// DeviceID is empty: no device is touched.
func (NoteRefund) DeviceID() string { return "" }

func (NoteRefund) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c NoteRefund) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	waits := OwnRefund(o.RefundNo) && !o.CanceledAt.IsZero() && !o.RefundPending
	switch {
	case o.RefundNo == c.ProviderID:
		return Result{order: new(*o), RefundDue: true}, nil
	case o.RefundDue && !waits:
		return Result{}, ErrRefundOpen
	case c.Amount <= 0 || c.Amount > o.PaidAmount()-o.RefundedAmount():
		return Result{}, ErrRefundMisfit
	}
	o.RefundDue, o.RefundNo, o.Refunding, o.RefundPending = true, c.ProviderID, c.Amount, true
	o.RefundBy, o.RefundRetryAt = Provider, now.Add(refundPause)
	o.RefundEnds = false
	o.keepRefundEnd()
	o.Refunds++
	o.recountDisputes(now) // it may be of less than the refund whose place it takes
	refund := o.Refund()
	refund.State = PaymentPending
	r.recordOrder(EventOrderRefundUpdated, Provider, now)
	return Result{order: new(*o), refund: &refund, RefundDue: true}, nil
}

// TakeBackRefund records that a refund has failed after it was made: the shop has the money again. A refunded order
// stays refunded, and its licenses stay revoked: the shop has ended the sale, and owes the buyer the money. It can ask
// for another refund, or send the money another way. PutRefund, in the same transaction, refuses a refund that has
// failed already.
type TakeBackRefund struct {
	Refund Payment // as recorded
}

// DeviceID is empty: no device is touched.
func (TakeBackRefund) DeviceID() string { return "" }

func (TakeBackRefund) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c TakeBackRefund) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if c.Refund.State != PaymentDone || c.Refund.Amount > o.Refunded {
		return Result{}, ErrRefundClosed
	}
	refund := c.Refund
	refund.State, refund.PaidAt = PaymentFailed, time.Time{}
	o.Refunded -= refund.Amount
	o.recountDisputes(now)
	r.recordOrder(EventOrderRefundUpdated, Provider, now)
	return Result{order: new(*o), refund: &refund, RefundDue: o.RefundDue}, nil
}

// follows reports whether a state may replace another state of a refund: the answers of a provider about a refund only
// go forward.
func (s PaymentState) follows(before PaymentState) bool {
	order := map[PaymentState]int{PaymentPending: 0, PaymentDone: 1, PaymentFailed: 2}
	return order[before] < order[s]
}
