package licensing

import "time"

// A refund takes several transactions, since the service asks the payment provider in between. First, the service
// stores that a refund is due (RequestRefund, or PayOrder of a canceled order). Then it stores each try before it asks
// the provider (TryRefund), and then the result (RefundOrder, WithdrawRefund). A node that finds a due refund continues
// from there. The provider moves the money once, however often it is asked.

// The pause of a sweep after a try. It doubles with each try.
const (
	refundPause    = 15 * time.Second
	refundPauseMax = time.Hour
)

// RefundRetryMax is more than the longest pause and all that clocks may be wrong together. A node whose clock was days
// ahead has stored a RefundRetryAt that is further ahead, so sweeps do not wait for that time.
const RefundRetryMax = 24 * time.Hour

// RequestRefund records the shop's request to refund a paid order. The order stays paid, and its
// license valid, until the refund is recorded.
type RequestRefund struct {
	By     Actor
	Reason string // in the shop's words, or empty
}

// DeviceID is empty: no device is touched.
func (RequestRefund) DeviceID() string { return "" }

func (c RequestRefund) growth(r *Record, now time.Time) Growth {
	if r.Order == nil || r.Order.Status(now) != OrderPaid || r.Order.RefundDue {
		return NoGrowth
	}
	return RequiredGrowth.withReason(c.Reason)
}

func (c RequestRefund) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	switch status := o.Status(now); status {
	case OrderPaid:
		if !o.RefundDue {
			o.RefundDue, o.RefundBy, o.StateReason, r.Changed = true, c.By, c.Reason, true
		}
	case OrderRefunded:
	default:
		return Result{}, invalidOrderState(status, "refunded")
	}
	return Result{Order: *o, RefundDue: o.RefundDue}, nil
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
		return Result{Order: *o}, nil
	}
	o.RefundTries++
	o.RefundRetryAt, r.Changed = now.Add(pauseAfter(o.RefundTries)), true
	return Result{Order: *o, RefundDue: true}, nil
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

// WithdrawRefund ends the shop's request: the payment provider has refused the refund in answer to the
// latest try, and no earlier try has moved the money. The order is paid, as before. If there was
// another try since, WithdrawRefund is a no-op. A refund for a canceled order stays due whatever the
// provider answers.
type WithdrawRefund struct {
	Tries int // as TryRefund returned, or the current number if the provider was not asked
}

// DeviceID is empty: no device is touched.
func (WithdrawRefund) DeviceID() string { return "" }

func (WithdrawRefund) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c WithdrawRefund) apply(r *Record, _ time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if o.RefundDue && o.CanceledAt.IsZero() && o.RefundTries == c.Tries {
		// RefundTries stays: a try of a later request must not get the number of an earlier try, whose refusal
		// may arrive late.
		o.RefundDue, o.RefundRetryAt = false, time.Time{}
		o.RefundBy, o.StateReason, r.Changed = "", "", true
	}
	return Result{Order: *o, RefundDue: o.RefundDue}, nil
}

// RefundOrder records that the payment provider has refunded a paid order, whose license must be
// revoked in the same transaction, or an order that was canceled before it was paid.
type RefundOrder struct {
	// Revoked is how many licenses of an order for several licenses are revoked by now, with the first one, which the
	// same transaction revokes. If the order has more, RefundOrder is a no-op.
	Revoked int
}

// DeviceID is empty: no device is touched.
func (RefundOrder) DeviceID() string { return "" }

func (RefundOrder) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c RefundOrder) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	switch status := o.Status(now); {
	case status == OrderRefunded, o.LicensesIssued > c.Revoked:
	case status == OrderPaid, status == OrderCanceled && o.RefundDue:
		o.RefundDue, o.RefundTries, o.RefundRetryAt = false, 0, time.Time{}
		o.RefundedAt = now
		r.recordOrder(EventOrderRefunded, o.RefundBy, now)
	default:
		return Result{}, invalidOrderState(status, "refunded")
	}
	return Result{Order: *o}, nil
}
