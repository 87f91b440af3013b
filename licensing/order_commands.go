package licensing

import (
	"cmp"
	"time"
)

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
	By      Actor      // who made a free order; empty: the provider
	Payment string     // the provider's reference
	Terms   Terms      // what to issue with
	Key     LicenseKey // freshly minted with the terms' prefix; used only if a license is issued
}

// DeviceID is empty: no device is touched.
func (PayOrder) DeviceID() string { return "" }

func (c PayOrder) by() Actor { return cmp.Or(c.By, Provider) }

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
		r.tellOrder(EventOrderPaid, c.by(), now)
		r.tellLicense(r.Issued, EventLicenseIssued, c.by(), now, nil)
	case OrderCanceled:
		if !o.RefundDue {
			o.PaidAt, o.Payment, o.RefundDue, o.RefundBy, r.Changed = now, c.Payment, true, Provider, true
		}
	case OrderPaid, OrderRefunded:
	}
	return Result{Order: *o, RefundDue: o.RefundDue}, nil
}

// CancelOrder gives an unpaid order up. One that is canceled already keeps its
// time and reason.
type CancelOrder struct {
	By     Actor
	Reason string // in the shop's words, or empty
}

// DeviceID is empty: no device is touched.
func (CancelOrder) DeviceID() string { return "" }

func (c CancelOrder) apply(r *Record, now time.Time) (Result, error) {
	o, err := existing(r)
	if err != nil {
		return Result{}, err
	}
	switch status := o.Status(now); status {
	case OrderUnpaid:
		o.CanceledAt, o.StateReason = now, c.Reason
		r.tellOrder(EventOrderCanceled, c.By, now)
	case OrderCanceled:
	default:
		return Result{}, invalidOrderState(status, "canceled")
	}
	return Result{Order: *o}, nil
}

// ExpireOrder records that an order has run out. Orders that have not, or are
// past that, are left as they are: the sweep that sends this may come late.
type ExpireOrder struct {
	Margin time.Duration // how long it must have run out by now, since a clock may run ahead
}

// DeviceID is empty: no device is touched.
func (ExpireOrder) DeviceID() string { return "" }

func (c ExpireOrder) apply(r *Record, now time.Time) (Result, error) {
	o, err := existing(r)
	if err != nil {
		return Result{}, err
	}
	if due := o.Due(); due.Kind == DueOrderEnd && !due.At.After(now.Add(-c.Margin)) {
		o.ExpiredAt = now
		r.tellOrder(EventOrderExpired, System, now)
	}
	return Result{Order: *o}, nil
}
