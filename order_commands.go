package licet

import "time"

func existing(r *Record) (*Order, error) {
	if r.Order == nil {
		return nil, ErrOrderNotFound
	}
	return r.Order, nil
}

// PayOrder is the provider's word that the buyer has paid. It counts whenever
// it comes, and however often: an expired order is paid late, a paid one is
// left as it is, and for a canceled one the money is owed back.
type PayOrder struct {
	Payment string     // the provider's reference
	Terms   Terms      // what to issue with
	Key     LicenseKey // freshly minted with the terms' prefix; used only if a license is issued
}

// DeviceID is empty: no device is touched.
func (PayOrder) DeviceID() string { return "" }

func (c PayOrder) apply(r *Record, now time.Time) (Result, error) {
	o, err := existing(r)
	if err != nil {
		return Result{}, err
	}
	switch status := o.Status(now); status {
	case OrderUnpaid, OrderExpired:
		o.PaidAt, o.Payment, o.LicenseKey = now, c.Payment, c.Key
		o.Late = status == OrderExpired
		r.Issued = c.Terms.Issue(c.Key, o.Owner, o.ProductID, o.OrderNo, now)
		r.Changed = true
	case OrderCanceled:
		if !o.RefundDue {
			o.PaidAt, o.Payment, o.RefundDue, r.Changed = now, c.Payment, true, true
		}
	case OrderPaid, OrderRefunded:
	}
	return Result{Order: *o, RefundDue: o.RefundDue}, nil
}

// CancelOrder gives an unpaid order up.
type CancelOrder struct{}

// DeviceID is empty: no device is touched.
func (CancelOrder) DeviceID() string { return "" }

func (CancelOrder) apply(r *Record, now time.Time) (Result, error) {
	o, err := existing(r)
	if err != nil {
		return Result{}, err
	}
	switch status := o.Status(now); status {
	case OrderUnpaid:
		o.CanceledAt, r.Changed = now, true
	case OrderCanceled:
	default:
		return Result{}, invalidOrderState(status, "canceled")
	}
	return Result{Order: *o}, nil
}

// ExpireOrder records that an order has run out. Orders that have not, or are
// past that, are left as they are: the sweep that sends this may come late.
type ExpireOrder struct{}

// DeviceID is empty: no device is touched.
func (ExpireOrder) DeviceID() string { return "" }

func (ExpireOrder) apply(r *Record, now time.Time) (Result, error) {
	o, err := existing(r)
	if err != nil {
		return Result{}, err
	}
	if o.Status(now) == OrderExpired && o.ExpiredAt.IsZero() {
		o.ExpiredAt, r.Changed = now, true
	}
	return Result{Order: *o}, nil
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
		o.RefundedAt, o.RefundDue, r.Changed = now, false, true
	default:
		return Result{}, invalidOrderState(status, "refunded")
	}
	return Result{Order: *o}, nil
}
