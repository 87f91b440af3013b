package licensing

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A refund takes several transactions, since the service asks the payment provider in between. First, the service
// stores that a refund is due (RequestRefund, or PayOrder of a canceled order). Then it stores each try before it asks
// the provider (TryRefund), and then the result (RefundOrder, NotePendingRefund, WithdrawRefund). A node that finds a
// due refund continues from there. The provider moves the money once for each number of a refund, however often it is
// asked.
//
// An order has one open refund at a time, whose facts are in the order. The refund gets a record of its own in the
// transaction that stores the provider's first answer other than a refusal: see PutRefund.

// The pause of a sweep after a try. It doubles with each try.
const (
	refundPause    = 15 * time.Second
	refundPauseMax = time.Hour
)

// RefundRetryMax is more than the longest pause and all that clocks may be wrong together. A node whose clock was days
// ahead has stored a RefundRetryAt that is further ahead, so sweeps do not wait for that time.
const RefundRetryMax = 24 * time.Hour

// MaxRefunds is how many refunds an order may have.
const MaxRefunds = 100

// ErrRefundClosed is the result of a command about a refund if another call has recorded what has become of the refund.
var ErrRefundClosed = errors.New("the refund is not open any more")

const refundPrefix = "ref_"

// RefundNumber returns the number of a refund with a ULID, or with another text that names the refund alone.
func RefundNumber(id string) string { return refundPrefix + id }

// Refund returns the open refund of an order, as its record.
func (o *Order) Refund() Payment {
	refund := Payment{
		Kind: KindOfRefund, OrderNo: o.OrderNo, Provider: o.PaidThrough(), Reference: cmp.Or(o.RefundNo, o.OrderNo),
		Refunds: o.Payment, Amount: o.OpenRefund(), Currency: o.Currency, By: o.RefundBy, ProductID: o.ProductID,
	}
	if !OwnRefund(o.RefundNo) {
		refund.ProviderID = o.RefundNo
	}
	return refund
}

// RequestRefund records the shop's request to refund a paid order, in whole or in part. The order stays paid, and its
// license valid, until the refund is recorded. A request for all that is left ends the order with its refund: see
// Order.EndsWithRefund. It opens no other refund if such a refund is open or made. Any other request is refused while a
// refund is open. An order that is refunded already keeps its reason.
type RequestRefund struct {
	By     Actor
	Reason string // in the shop's words, or empty
	Number string // of the new refund; empty: that of the order, which must have no refund so far
	Amount int64  // in the currency's minor unit; 0: all that is left
}

// DeviceID is empty: no device is touched.
func (RequestRefund) DeviceID() string { return "" }

func (c RequestRefund) growth(r *Record, now time.Time) Growth {
	switch {
	case r.Order == nil || r.Order.Status(now) != OrderPaid || r.Order.RefundDue && !r.Order.lacksRefundEnd():
		return NoGrowth
	case r.Order.RefundDue:
		return RequiredGrowth
	}
	return RequiredGrowth.withReason(c.Reason)
}

func (c RequestRefund) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	status, left := o.Status(now), o.Refundable()
	switch {
	case status != OrderPaid && status != OrderRefunded:
		return Result{}, invalidOrderState(status, "refunded")
	case c.Amount == 0 && (o.EndsWithRefund() || left == 0 && (o.RefundDue || status == OrderRefunded)):
		r.Changed = o.keepRefundEnd()
	case o.RefundDue:
		return Result{}, &Error{Reason: ReasonInvalidOrderState, Message: fmt.Sprintf(
			"a refund of %d, in minor units, is not confirmed yet, and %d is left besides: repeat the request once "+
				"refund_pending is 0", o.OpenRefund(), left)}
	case left == 0 && status == OrderRefunded:
		return Result{}, invalidOrderState(status, "refunded")
	case c.Amount > left && left == 0:
		return Result{}, InvalidField("amount", "must be left out: nothing was paid for this order")
	case c.Amount > left:
		return Result{}, InvalidField("amount",
			fmt.Sprintf("must be at most %d, which is left of the payment of %d", left, o.PaidAmount()))
	case o.Refunds >= MaxRefunds:
		return Result{}, &Error{Reason: ReasonInvalidOrderState, Message: fmt.Sprintf(
			"an order can have %d refunds: refund the rest, %d in minor units, at the payment provider",
			MaxRefunds, left)}
	default:
		if o.RefundDue, o.RefundBy, r.Changed = true, c.By, true; status == OrderPaid {
			o.StateReason = c.Reason
		}
		if amount := cmp.Or(c.Amount, left); amount > 0 && c.Number != "" {
			o.RefundNo, o.Refunding, o.RefundTries, o.RefundEnds = c.Number, amount, 0, false
			o.keepRefundEnd()
		}
	}
	return Result{order: new(*o), RefundDue: o.RefundDue}, nil
}

// TryRefund records that the service is about to ask the payment provider for a refund, and when to
// ask again if no result is recorded. If no refund is due, TryRefund is a no-op, and the result is not
// RefundDue.
type TryRefund struct {
	// Waiting is true for a sweep, which skips an order until RefundRetryAt, unless that time is RefundRetryMax ahead.
	Waiting bool
}

// DeviceID is empty: no device is touched.
func (TryRefund) DeviceID() string { return "" }

func (TryRefund) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c TryRefund) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	waits := o.RefundRetryAt.After(now) && o.RefundRetryAt.Before(now.Add(RefundRetryMax))
	if !o.RefundDue || c.Waiting && waits {
		return Result{order: new(*o)}, nil
	}
	o.RefundTries++
	o.RefundRetryAt, r.Changed = now.Add(pauseAfter(o.RefundTries)), true
	return Result{order: new(*o), RefundDue: true}, nil
}

func pauseAfter(tries int) time.Duration {
	pause := refundPause
	for range tries - 1 {
		if pause *= 2; pause >= refundPauseMax {
			return refundPauseMax
		}
	}
	return pause
}

// NotePendingRefund records that the payment provider has taken the open refund, and will send the money later. It is a
// no-op if another refund is open, or if that is recorded.
type NotePendingRefund struct {
	Number     string // of the refund, as in Order.RefundNo
	ProviderID string // the provider's id of the refund
}

// DeviceID is empty: no device is touched.
func (NotePendingRefund) DeviceID() string { return "" }

func (NotePendingRefund) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c NotePendingRefund) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	result := Result{RefundDue: o.RefundDue}
	if o.RefundDue && o.RefundNo == c.Number && !o.RefundPending {
		refund := o.Refund()
		refund.State, refund.ProviderID = PaymentPending, cmp.Or(refund.ProviderID, c.ProviderID)
		result.refund = &refund
		o.RefundPending = true
		o.Refunds++
		r.recordOrder(EventOrderRefundUpdated, Provider, now)
	}
	result.order = new(*o)
	return result, nil
}

// WithdrawRefund ends the shop's request: the payment provider has refused the refund in answer to the
// latest try, and no earlier try has moved the money. The order is paid, as before. If there was
// another try since, WithdrawRefund is a no-op. The money of a canceled order stays due whatever the
// provider answers, unless a lost dispute counts after the refusal. If the provider has the refund, and the
// refund has failed, the money is due under a new number, up to MaxRefunds times: the provider answers about
// the failed refund with the failure for good.
type WithdrawRefund struct {
	Number string // of the refund, as in Order.RefundNo
	Tries  int    // as TryRefund returned, or the current number if the provider was not asked
	Failed string // the provider's id of the failed refund; empty: the provider has refused to make the refund
}

// DeviceID is empty: no device is touched.
func (WithdrawRefund) DeviceID() string { return "" }

func (WithdrawRefund) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c WithdrawRefund) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	result, own := Result{}, OwnRefund(o.RefundNo)
	failed, refunds := o.RefundPending || c.Failed != "" && o.OpenRefund() > 0, o.Refunds
	if failed && !o.RefundPending {
		refunds++
	}
	ends := o.CanceledAt.IsZero() || !own || failed && refunds < MaxRefunds
	named := o.RefundDue && o.RefundNo == c.Number && o.RefundTries == c.Tries
	if named && !ends && !failed && o.Uncounted > 0 { // the provider has not taken the refund, so the dispute may count
		o.RefundTries, o.RefundRetryAt, r.Changed = 0, now.Add(refundPauseMax), true
		o.recountDisputes(now)
	}
	if named && ends {
		// RefundTries stays: a try of a later request must not get the number of an earlier try, whose refusal
		// may arrive late.
		if failed {
			refund := o.Refund()
			refund.State, refund.ProviderID = PaymentFailed, cmp.Or(refund.ProviderID, c.Failed)
			result.refund = &refund
		}
		o.Refunds = refunds
		if o.closeRefund(); !o.RefundDue && o.RefundedAt.IsZero() {
			o.RefundBy = ""
		}
		o.recountDisputes(now)
		switch {
		case !own || !o.RefundedAt.IsZero():
		case o.CanceledAt.IsZero():
			o.StateReason = ""
		default:
			o.RefundRetryAt = now.Add(pauseAfter(o.RefundTries))
		}
		r.Changed = true
		if failed {
			r.recordOrder(EventOrderRefundUpdated, Provider, now)
		}
	}
	result.order, result.RefundDue = new(*o), o.RefundDue
	return result, nil
}

// lacksRefundEnd reports whether the open refund of a paid order ends the order, and that is not stored.
func (o *Order) lacksRefundEnd() bool {
	return o.EndsWithRefund() && o.RefundNo != "" && !o.RefundEnds && o.CanceledAt.IsZero()
}

// keepRefundEnd stores that the open refund of a paid order ends the order, if that is so now. It reports whether that
// was not stored.
func (o *Order) keepRefundEnd() bool {
	lacks := o.lacksRefundEnd()
	o.RefundEnds = o.RefundEnds || lacks
	return lacks
}

// closeRefund removes what an order stores of its open refund, except the number of tries. The rest of a payment of
// a canceled order is due again, under a number that no refund has had.
func (o *Order) closeRefund() {
	o.RefundNo, o.Refunding, o.RefundPending, o.RefundRetryAt = "", 0, false, time.Time{}
	o.RefundEnds = false
	left := o.PaidAmount() - o.RefundedAmount()
	o.RefundDue = !o.CanceledAt.IsZero() && o.RefundedAt.IsZero() && left > 0
	if o.RefundDue && o.Refunds > 0 {
		o.RefundNo = RefundNumber(fmt.Sprint(strings.TrimPrefix(o.OrderNo, orderPrefix), "_", o.Refunds))
		o.Refunding = left
	}
}

// RefundOrder records that the payment provider has made the open refund, of a paid order or of an order that was
// canceled before it was paid. If the refund ends the order (see EndsWithRefund), the order is refunded: its first
// license must be revoked in the same transaction, and the others by ChangeOthers.
type RefundOrder struct {
	Number     string    // of the refund, as in Order.RefundNo
	ProviderID string    // the provider's id of the refund
	At         time.Time // when the provider has made the refund; zero: now
	// Partial: the transaction revokes no license. If the refund ends the order, RefundOrder is a no-op.
	Partial bool
}

// DeviceID is empty: no device is touched.
func (RefundOrder) DeviceID() string { return "" }

func (RefundOrder) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c RefundOrder) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	refund, status := o.Refund(), o.Status(now)
	if !o.RefundDue {
		refund.Amount = o.Refundable()
	}
	ends := o.RefundedAt.IsZero() && (o.RefundEnds || o.RefundedAmount()+refund.Amount >= o.PaidAmount())
	result := Result{}
	switch {
	case o.RefundNo != c.Number:
		return Result{}, ErrRefundClosed
	case status == OrderRefunded && !o.RefundDue:
	case ends && c.Partial:
	case status == OrderPaid, status == OrderRefunded, status == OrderCanceled && o.RefundDue:
		if refund.Amount > 0 {
			if refund.PaidAt = c.At; c.At.IsZero() || c.At.After(now) {
				refund.PaidAt = now
			}
			refund.ProviderID = cmp.Or(refund.ProviderID, c.ProviderID)
			result.refund = &refund
			if !o.RefundPending {
				o.Refunds++
			}
			o.Refunded += refund.Amount
		}
		o.closeRefund()
		o.RefundTries = 0
		kind := EventOrderRefundUpdated
		if ends {
			o.RefundedAt, kind = now, EventOrderRefunded
			o.endSubscription(now)
			o.decideOthers(OthersRevoke)
		}
		r.recordOrder(kind, o.RefundBy, now)
	default:
		return Result{}, invalidOrderState(status, "refunded")
	}
	result.order, result.RefundDue = new(*o), o.RefundDue
	return result, nil
}

// PutRefund stores the record of a refund, or what has become of the refund. The same transaction changes the order. If
// the record has this state or a later one, the result is ErrRefundClosed.
type PutRefund struct {
	Refund Payment // as the change of the order has returned it; zero: nothing is to be stored
}

// DeviceID is empty: no device is touched.
func (PutRefund) DeviceID() string { return "" }

func (PutRefund) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c PutRefund) apply(r *Record, now time.Time) (Result, error) {
	if c.Refund.Reference == "" {
		return Result{}, nil
	}
	refund := c.Refund
	refund.RecordedAt = now
	if stored := r.Payment; stored != nil {
		if !refund.State.follows(stored.State) {
			return Result{}, ErrRefundClosed
		}
		refund.RecordedAt, refund.ProviderID = stored.RecordedAt, cmp.Or(refund.ProviderID, stored.ProviderID)
	}
	r.Payment, r.Changed = &refund, true
	return Result{}, nil
}
