package licensing

import (
	"errors"
	"strings"
	"time"
)

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
