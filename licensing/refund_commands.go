package licensing

import "time"

// Sending money back is not one transaction: the provider is asked in between.
// So it is stored first that the money is due (RequestRefund, or PayOrder of a
// canceled order), each time before the provider is asked (TryRefund), and then
// what came of it (RefundOrder, WithdrawRefund). Whoever finds an order whose
// refund is due goes on from there; the provider moves the money once, however
// often it is asked.

// The pause after a try, for those who try by themselves; it doubles.
const (
	refundPause    = 15 * time.Second
	refundPauseMax = time.Hour
)

// RequestRefund is the shop's wish to send a paid order's money back. The order
// stays paid, and its license good, until the refund is recorded.
type RequestRefund struct {
	By     Actor
	Reason string // in the shop's words, or empty
}

// DeviceID is empty: no device is touched.
func (RequestRefund) DeviceID() string { return "" }

func (c RequestRefund) apply(r *Record, now time.Time) (Result, error) {
	o, err := existing(r)
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

// TryRefund notes that the provider is about to be asked to send an order's money
// back, and when that is to be done again if nothing is heard of it. Where
// nothing is due, nothing is noted, and the answer is not RefundDue.
type TryRefund struct {
	// Waiting: it is for a sweep, which leaves alone what somebody has tried a
	// moment ago.
	Waiting bool
}

// DeviceID is empty: no device is touched.
func (TryRefund) DeviceID() string { return "" }

func (c TryRefund) apply(r *Record, now time.Time) (Result, error) {
	o, err := existing(r)
	if err != nil {
		return Result{}, err
	}
	if !o.RefundDue || c.Waiting && o.RefundRetryAt.After(now) {
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

// WithdrawRefund ends the shop's wish: the provider has refused to send the money
// back, in answer to the latest try, and none of the tries before has moved it.
// The order is paid, as before. Where somebody has tried again since, that try
// tells. Money for a canceled order stays due whatever the provider says.
type WithdrawRefund struct {
	Tries int // as TryRefund answered, or as they are where the provider was not asked
}

// DeviceID is empty: no device is touched.
func (WithdrawRefund) DeviceID() string { return "" }

func (c WithdrawRefund) apply(r *Record, _ time.Time) (Result, error) {
	o, err := existing(r)
	if err != nil {
		return Result{}, err
	}
	if o.RefundDue && o.CanceledAt.IsZero() && o.RefundTries == c.Tries {
		// The tries count on: if the money is wished for again, no try of that has the
		// number of an old one, whose refusal may come late.
		o.RefundDue, o.RefundRetryAt = false, time.Time{}
		o.RefundBy, o.StateReason, r.Changed = "", "", true
	}
	return Result{Order: *o, RefundDue: o.RefundDue}, nil
}

// RefundOrder records that the provider has sent the money back: of a paid
// order, whose license is to be revoked along with it, or of one that was
// canceled before it was paid.
type RefundOrder struct{}

// DeviceID is empty: no device is touched.
func (RefundOrder) DeviceID() string { return "" }

func (RefundOrder) apply(r *Record, now time.Time) (Result, error) {
	o, err := existing(r)
	if err != nil {
		return Result{}, err
	}
	switch status := o.Status(now); {
	case status == OrderRefunded:
	case status == OrderPaid, status == OrderCanceled && o.RefundDue:
		o.RefundDue, o.RefundTries, o.RefundRetryAt = false, 0, time.Time{}
		o.RefundedAt = now
		r.tellOrder(EventOrderRefunded, o.RefundBy, now)
	default:
		return Result{}, invalidOrderState(status, "refunded")
	}
	return Result{Order: *o}, nil
}
