package licensing

import (
	"cmp"
	"time"
)

// existingOrder returns the record's order, or ErrOrderNotFound.
func existingOrder(r *Record) (*Order, error) {
	if r.Order == nil {
		return nil, ErrOrderNotFound
	}
	return r.Order, nil
}

// PayOrder records that the payment provider has confirmed a payment. It is valid at any time and any
// number of times: an expired order is paid late, a paid order stays as it is, and the money for a
// canceled order becomes due for refund.
type PayOrder struct {
	By       Actor // who created a free order, or records the payment; empty: the provider
	Provider PaymentProvider
	Payment  string     // the provider's reference
	PaidAt   time.Time  // when the buyer has paid; zero: now
	Fee      *int64     // what the provider keeps of the payment; nil: not known
	Terms    Terms      // the terms of the new license
	Key      LicenseKey // a new key with the terms' prefix; used only if a license is issued
	// Seed and More are for an order for several licenses: Key and More are the keys of the first of them, which derive
	// from Seed. IssueLicenses issues the others.
	Seed KeySeed
	More []LicenseKey
	// Subscription is the provider's id of the subscription that the payment starts, which is paid until PaidEnd. Both
	// are zero for an order that is paid once.
	Subscription string
	PaidEnd      time.Time
	// Upgrades: Key is that of a trial, which the same transaction makes the paid license; see UpgradeTrial.
	Upgrades bool
}

// DeviceID is empty: no device is touched.
func (PayOrder) DeviceID() string { return "" }

func (PayOrder) growth(*Record, time.Time) Growth { return RequiredGrowth }

// PaidBy returns the actor of the payment.
func (c PayOrder) PaidBy() Actor { return cmp.Or(c.By, Provider) }

func (c PayOrder) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	switch status := o.Status(now); status {
	case OrderUnpaid, OrderExpired:
		if c.PaidAt.After(now) || c.PaidAt.Before(o.CreatedAt) { // providers count whole seconds, by their own clocks
			c.PaidAt = now
		}
		c.pay(r, status, now)
	case OrderCanceled:
		if !o.RefundDue {
			c.payThrough(o)
			o.PaidAt, o.Payment, o.Paid = now, c.Payment, o.Amount
			o.addFee(c.Fee, nil)
			o.RefundDue, o.RefundBy, r.Changed = true, Provider, true
			o.begin(c.Subscription, c.PaidEnd, now)
			o.endSubscription(now)
		}
	case OrderPaid, OrderRefunded:
	}
	return Result{order: new(*o), RefundDue: o.RefundDue}, nil
}

// payThrough notes the provider that has taken the payment. If that is the provider of the order's checkout, the
// checkout is over. Of an order without a checkout and subscription, the sandbox leaves no trace; see PaidThrough.
func (c PayOrder) payThrough(o *Order) {
	if c.Provider == "" || c.Provider == ProviderSandbox && o.Provider == "" && c.Subscription == "" {
		return
	}
	if o.Provider == c.Provider {
		o.AskAt, o.AskFailures = time.Time{}, 0
	}
	o.Provider = c.Provider
}

// pay makes an unpaid or expired order paid, and issues its first licenses.
func (c PayOrder) pay(r *Record, status OrderStatus, now time.Time) {
	o := r.Order
	paidAt := c.PaidAt
	if paidAt.IsZero() {
		paidAt = now
	}
	c.payThrough(o)
	o.PaidAt, o.Payment, o.Paid, o.LicenseKey, o.PaySeed = paidAt, c.Payment, o.Amount, c.Key, PaySeed{}
	o.Late = status == OrderExpired
	o.addFee(c.Fee, nil)
	o.begin(c.Subscription, c.PaidEnd, now)
	keys := []LicenseKey{c.Key}
	if o.Quantity > 1 {
		keys = append(keys, c.More[:min(len(c.More), o.Quantity-1)]...)
		o.LicensesIssued, o.KeySeed, o.Terms = len(keys), c.Seed, c.Terms
	}
	r.recordOrder(EventOrderPaid, c.PaidBy(), now)
	if !c.Upgrades {
		r.issue(c.Terms, c.PaidBy(), now, keys...)
	}
}

// CancelOrder cancels an unpaid order. A canceled order keeps its time and reason.
type CancelOrder struct {
	By     Actor
	Reason string // in the shop's words, or empty
}

// DeviceID is empty: no device is touched.
func (CancelOrder) DeviceID() string { return "" }

func (c CancelOrder) growth(r *Record, now time.Time) Growth {
	if r.Order == nil || r.Order.Status(now) != OrderUnpaid {
		return NoGrowth
	}
	return NoGrowth.withReason(c.Reason)
}

func (c CancelOrder) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	switch status := o.Status(now); status {
	case OrderUnpaid:
		o.CanceledAt, o.StateReason, o.PaySeed = now, c.Reason, PaySeed{}
		o.askSoon(now)
		r.recordOrder(EventOrderCanceled, c.By, now)
	case OrderCanceled:
	default:
		return Result{}, invalidOrderState(status, "canceled")
	}
	return Result{order: new(*o)}, nil
}

// ExpireOrder records that an order has expired. From then on the order is expired for every clock. It
// is a no-op for an order whose end is after Before, or that is paid, canceled or recorded already: the
// sweep that runs it may be late. ExpireLicense says why the sweep decides what has ended.
type ExpireOrder struct {
	Before time.Time // the latest end to record: the time of the sweep less a margin
}

// DeviceID is empty: no device is touched.
func (ExpireOrder) DeviceID() string { return "" }

func (ExpireOrder) growth(*Record, time.Time) Growth { return BoundedGrowth }

func (c ExpireOrder) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if o.awaitsEnd() && !o.ExpiresAt.After(c.Before) {
		o.ExpiredAt, o.PaySeed = now, PaySeed{}
		r.recordOrder(EventOrderExpired, System, now)
	}
	return Result{order: new(*o)}, nil
}
