package licensing

import (
	"time"
)

// SandboxOrder is what the sandbox, the payment provider of test mode, knows about an order besides the order itself.
// An order that the sandbox pays at once has none. Each order has at most one, of less than 100 bytes, so the budget
// that refuses orders bounds these records too.
type SandboxOrder struct {
	Attempt int            // the order's attempt to pay that was played last; see StartCheckout
	Outcome SandboxOutcome // of the attempt's checkout
	PaidAt  time.Time      // when the buyer has paid; zero: not yet

	RefundFails bool // the next refund fails
	// RefundNo is our number of the latest refund that fails, which is pending until RefundEnds.
	RefundNo   string
	RefundEnds time.Time

	Subscription SandboxSubscription // what was played about the subscription
}

// SandboxOutcome is what has become of a checkout in the sandbox.
type SandboxOutcome string

// The outcomes.
const (
	SandboxPending SandboxOutcome = "pending" // the money is on its way; when the checkout ends, the payment fails
	SandboxPaid    SandboxOutcome = "paid"
	SandboxLate    SandboxOutcome = "late" // the buyer has paid, and the sandbox says so only when the checkout ends
	SandboxFailed  SandboxOutcome = "failed"
)

// Final reports whether nothing can become of the checkout any more.
func (o SandboxOutcome) Final() bool { return o == SandboxPaid || o == SandboxFailed }

// SandboxRef names what the sandbox knows about an order of an owner.
func SandboxRef(owner Owner, orderNo string) Ref {
	return Ref{Kind: KindSandbox, Owner: owner, ID: orderNo}
}

// CheckPayable returns why a buyer can't pay the order now; nil: the buyer can.
func (o *Order) CheckPayable(now time.Time) error {
	if status := o.Status(now); status != OrderUnpaid {
		return invalidOrderState(status, "paid")
	}
	return nil
}

// CheckRefundable returns why no refund of the order can be played now; nil: the next refund can.
func (o *Order) CheckRefundable(now time.Time) error {
	switch status := o.Status(now); {
	case status != OrderPaid || !o.AtProvider():
		return invalidOrderState(status, "refunded")
	case o.RefundDue:
		return ErrRefundUnderWay
	}
	return nil
}

// PlayCheckout records what the buyer does in the checkout of an attempt. It fails with ErrNothingPending if a later
// attempt was played, or if the checkout has another outcome, and the buyer can do nothing about it any more.
type PlayCheckout struct {
	Attempt int
	Outcome SandboxOutcome
}

// DeviceID is empty: no device is touched.
func (PlayCheckout) DeviceID() string { return "" }

// growth is bounded, since an order has at most one such record.
func (PlayCheckout) growth(*Record, time.Time) Growth { return BoundedGrowth }

func (c PlayCheckout) apply(r *Record, now time.Time) (Result, error) {
	if r.Sandbox == nil {
		r.Sandbox = &SandboxOrder{}
	}
	s := r.Sandbox
	switch {
	case s.Attempt == c.Attempt && s.Outcome == c.Outcome:
		return Result{sandbox: new(*s)}, nil
	case s.Attempt > c.Attempt,
		s.Attempt == c.Attempt && (s.Outcome.Final() || s.Outcome == SandboxLate && c.Outcome != SandboxPaid):
		return Result{}, ErrNothingPending
	}
	paid := time.Time{}
	switch {
	case s.Attempt == c.Attempt && s.Outcome == SandboxLate:
		paid = s.PaidAt
	case c.Outcome == SandboxPaid, c.Outcome == SandboxLate:
		paid = now
	}
	s.Attempt, s.Outcome, s.PaidAt, r.Changed = c.Attempt, c.Outcome, paid, true
	return Result{sandbox: new(*s)}, nil
}

// FailNextRefund makes the next refund of a paid order fail.
type FailNextRefund struct{}

// DeviceID is empty: no device is touched.
func (FailNextRefund) DeviceID() string { return "" }

func (FailNextRefund) growth(*Record, time.Time) Growth { return BoundedGrowth }

func (FailNextRefund) apply(r *Record, _ time.Time) (Result, error) {
	if r.Sandbox == nil {
		r.Sandbox = &SandboxOrder{}
	}
	r.Changed = !r.Sandbox.RefundFails
	r.Sandbox.RefundFails = true
	return Result{sandbox: new(*r.Sandbox)}, nil
}

// PlayRefund records that the service has asked for a refund that fails, and when it fails. An earlier end replaces a
// later one. PlayRefund is a no-op for a refund that does not fail.
type PlayRefund struct {
	Number string
	Ends   time.Time
}

// DeviceID is empty: no device is touched.
func (PlayRefund) DeviceID() string { return "" }

func (PlayRefund) growth(*Record, time.Time) Growth { return BoundedGrowth }

func (c PlayRefund) apply(r *Record, _ time.Time) (Result, error) {
	s := r.Sandbox
	switch {
	case s == nil:
		return Result{}, nil
	case s.RefundNo == c.Number && c.Ends.Before(s.RefundEnds), s.RefundNo != c.Number && s.RefundFails:
		s.RefundNo, s.RefundEnds, s.RefundFails, r.Changed = c.Number, c.Ends, false, true
	}
	return Result{sandbox: new(*s)}, nil
}

// The sandbox derives the subscription of an order from the order: it begins with the payment, and an invoice is due,
// and paid, at the end of each interval. SandboxSubscription is what was played besides. The payment of the order is
// invoice 0, which pays for the first interval.

// MaxSandboxInvoices is how many invoices a subscription in the sandbox has after the payment of its order. Then it
// ends: a forgotten subscription with an interval of ten seconds must not fill the store.
const MaxSandboxInvoices = 100

// SandboxSubscription is what was played about the subscription of an order. The zero value is nothing.
type SandboxSubscription struct {
	Ahead   int       // the latest invoice that was paid before it was due
	Unpaid  int       // the invoice whose payment has failed; 0: none
	Periods int       // after how many periods the subscription ends; 0: it renews
	EndedAt time.Time // when the subscription has ended before the end of its period; zero: it has not
	Amount  int64     // of the next invoices; 0: the order's amount
	// Changed is the number of the latest change of the amount; empty: it has none. ChangedFrom is the beginning of the
	// first period with this change, if it was for the next period.
	Changed     string
	ChangedFrom time.Time
}

// Plausible reports whether something can have been played that leaves s.
func (s SandboxSubscription) Plausible() bool {
	return min(s.Ahead, s.Unpaid, s.Periods) >= 0 && max(s.Ahead, s.Unpaid) <= MaxSandboxInvoices &&
		s.Periods <= MaxSandboxInvoices+1 && s.Amount >= 0
}

// SandboxView is the subscription of an order in the sandbox at one moment.
type SandboxView struct {
	Status    SandboxSubscriptionStatus
	Paid      int       // the number of the latest paid invoice
	PeriodEnd time.Time // of the latest paid invoice
	CancelAt  time.Time // when the subscription ends, or has ended; zero: it renews
}

// SandboxSubscriptionStatus is the state of a subscription in the sandbox.
type SandboxSubscriptionStatus string

// The states.
const (
	SandboxActive  SandboxSubscriptionStatus = "active"
	SandboxPastDue SandboxSubscriptionStatus = "past_due"
	SandboxEnded   SandboxSubscriptionStatus = "ended"
)

// SandboxPeriodEnd returns the end of the period that an invoice of an order's subscription pays for.
func (o *Order) SandboxPeriodEnd(invoice int) time.Time {
	return o.Interval.Times(invoice + 1).AddTo(o.PaidAt)
}

// View returns the subscription of a paid order in the sandbox.
func (s SandboxSubscription) View(o *Order, now time.Time) SandboxView {
	if !s.EndedAt.IsZero() && s.EndedAt.Before(now) {
		now = s.EndedAt // nothing was due after that
	}
	last := MaxSandboxInvoices
	if s.Periods > 0 {
		last = min(last, s.Periods-1)
	}
	due := 0 // the latest invoice that was due by now: time goes on while an invoice is unpaid
	for due < last && !o.SandboxPeriodEnd(due).After(now) {
		due++
	}
	v := SandboxView{Status: SandboxActive, Paid: min(max(due, s.Ahead), last)}
	if s.Unpaid > 0 {
		v.Status, v.Paid = SandboxPastDue, s.Unpaid-1
	}
	v.PeriodEnd = o.SandboxPeriodEnd(v.Paid)
	ends := time.Time{}
	switch {
	case !s.EndedAt.IsZero():
		ends = s.EndedAt
	case s.Unpaid > 0: // the invoice was not paid in its whole period
		ends = o.SandboxPeriodEnd(s.Unpaid)
	case s.Periods > 0 || v.Paid == MaxSandboxInvoices:
		ends = o.SandboxPeriodEnd(last)
	}
	if !ends.IsZero() && !ends.After(now) {
		v.Status = SandboxEnded
	}
	if s.Unpaid == 0 || v.Status == SandboxEnded {
		v.CancelAt = ends
	}
	return v
}

// SubscriptionPlay is something that is played about a subscription in the sandbox.
type SubscriptionPlay string

// The plays.
const (
	PlayInvoicePaid   SubscriptionPlay = "invoice_paid"   // the unpaid invoice is paid, or else the next one, now
	PlayInvoiceFailed SubscriptionPlay = "invoice_failed" // the next invoice is due now, and its payment fails
	PlayEndNow        SubscriptionPlay = "end_now"        // the subscription ends
	PlayEndOfPeriod   SubscriptionPlay = "end_of_period"  // it ends with the period that is paid for
	PlayResume        SubscriptionPlay = "resume"         // it renews again
	PlayAmount        SubscriptionPlay = "amount"         // it renews for another amount
)

// PlaySubscription records what is played about the subscription of an order. It fails with ErrNoSubscription if the
// subscription has ended, except that an end, or a change that was made before, is a no-op then.
type PlaySubscription struct {
	Order Order // which is paid
	Play  SubscriptionPlay
	// Of PlayAmount: the amount, the number of the change, and whether it is for the next period. The amount changes
	// once for each number.
	Amount int64
	Once   string
	Later  bool
}

// DeviceID is empty: no device is touched.
func (PlaySubscription) DeviceID() string { return "" }

func (PlaySubscription) growth(*Record, time.Time) Growth { return BoundedGrowth }

func (c PlaySubscription) apply(r *Record, now time.Time) (Result, error) {
	var played SandboxOrder
	if r.Sandbox != nil {
		played = *r.Sandbox
	}
	s := &played.Subscription
	v := s.View(&c.Order, now)
	if v.Status == SandboxEnded {
		made := c.Play == PlayAmount && s.Changed == c.Once && c.Once != ""
		if made || c.Play == PlayEndNow || c.Play == PlayEndOfPeriod {
			return Result{sandbox: new(played)}, nil
		}
		return Result{}, ErrNoSubscription
	}
	next := v.Paid + 1
	switch c.Play {
	case PlayInvoicePaid, PlayInvoiceFailed:
		if next > MaxSandboxInvoices || s.Periods > 0 && s.Unpaid == 0 {
			return Result{}, ErrNoSubscription
		}
		if c.Play == PlayInvoicePaid {
			s.Ahead, s.Unpaid = next, 0
		} else {
			s.Unpaid = next
		}
	case PlayEndNow:
		s.EndedAt = now
	case PlayEndOfPeriod:
		s.Periods = next
	case PlayResume:
		s.Periods = 0
	case PlayAmount:
		if c.Once != "" && s.Changed == c.Once {
			break
		}
		if s.Amount, s.Changed, s.ChangedFrom = c.Amount, c.Once, (time.Time{}); c.Later {
			s.ChangedFrom = v.PeriodEnd
		}
	}
	if r.Sandbox == nil || *r.Sandbox != played {
		r.Sandbox, r.Changed = &played, true
	}
	return Result{sandbox: new(played)}, nil
}
