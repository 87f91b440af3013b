package licensing

import "time"

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
