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
			o.beginPaidTime(c.Subscription, c.PaidEnd, now)
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
	o.beginPaidTime(c.Subscription, c.PaidEnd, now)
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

// An order that is paid through a provider has at most one checkout at a time: the page of the provider where the buyer
// pays. Making a checkout takes two transactions, since the service asks the provider in between. StartCheckout stores
// the number of the attempt, which names the checkout at the provider, before the service asks for the checkout.
// NoteCheckout stores what the provider has made. A node that dies in between leaves an attempt without a checkout: the
// next request asks the provider again under the same number, and gets the same checkout.
//
// Until the checkout is over, a sweep asks the provider what has become of it, in case the provider's callbacks do not
// come; see DueCheckout and NoteAnswer.

// When a sweep asks the provider about a checkout that is not over.
const (
	checkoutFirstAsk = time.Minute // after the attempt has begun
	checkoutNextAsk  = time.Hour   // after the latest answer
	// checkoutLastAsk is how long after its end the provider has surely ended a checkout.
	checkoutLastAsk = time.Minute
	// askPause makes the questions about what has ended for long rarer: one more part of the time since the end.
	askPause    = 8
	askPauseMax = 24 * time.Hour // of failed questions
)

// StartCheckout begins the next attempt to pay an unpaid order through a provider. It is a no-op if the order can't be
// paid, or if another attempt has begun since After.
type StartCheckout struct {
	Provider PaymentProvider
	After    int // the number of the latest attempt, which has made no checkout or whose checkout is over; 0: none
}

// DeviceID is empty: no device is touched.
func (StartCheckout) DeviceID() string { return "" }

func (StartCheckout) growth(*Record, time.Time) Growth { return BoundedGrowth }

func (c StartCheckout) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if o.Status(now) == OrderUnpaid && o.Attempt == c.After && o.Provider != ProviderOutside {
		o.Attempt++
		o.Provider, o.Checkout, o.CheckoutEnds = c.Provider, "", time.Time{}
		o.AskAt, o.AskFailures, r.Changed = now.Add(checkoutFirstAsk), 0, true
	}
	return Result{order: new(*o)}, nil
}

// NoteCheckout records the checkout that the provider has made for an attempt. It is a no-op if the checkout is
// recorded or another attempt has begun.
type NoteCheckout struct {
	Attempt  int
	Checkout string    // the provider's id of the checkout
	EndsAt   time.Time // when the provider ends the checkout
}

// DeviceID is empty: no device is touched.
func (NoteCheckout) DeviceID() string { return "" }

func (NoteCheckout) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c NoteCheckout) apply(r *Record, _ time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if o.Attempt == c.Attempt && o.Checkout == "" {
		o.Checkout, o.CheckoutEnds, r.Changed = c.Checkout, c.EndsAt, true
	}
	return Result{order: new(*o)}, nil
}

// NoteAnswer records that the provider was asked about the checkout of an attempt, and when a sweep asks again. It is a
// no-op if another attempt has begun, or if nothing remains to be asked.
type NoteAnswer struct {
	Attempt int
	Over    bool // no buyer can pay in the checkout any more, and no payment of the checkout is under way
}

// DeviceID is empty: no device is touched.
func (NoteAnswer) DeviceID() string { return "" }

func (NoteAnswer) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c NoteAnswer) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if o.Attempt != c.Attempt || !o.CheckoutOpen() {
		return Result{order: new(*o)}, nil
	}
	next := time.Time{}
	if !c.Over {
		next = now.Add(checkoutNextAsk)
		if last := o.CheckoutEnds.Add(checkoutLastAsk); last.After(now) && last.Before(next) {
			next = last
		}
	}
	o.AskAt, o.AskFailures, r.Changed = next, 0, true
	return Result{order: new(*o)}, nil
}

// PutOffAsk records that a sweep has asked the provider in vain about the checkout or the subscription of an order. The
// sweep asks again after a pause, which grows with each failure from 15 seconds to an hour, and then to a day with the
// time since the checkout or the paid period has ended: the provider may never answer, as after the owner has moved to
// another account there. PutOffAsk is a no-op if the time of the next question has changed since.
type PutOffAsk struct {
	Asked time.Time // Order.AskAt, as read before the question
}

// DeviceID is empty: no device is touched.
func (PutOffAsk) DeviceID() string { return "" }

func (PutOffAsk) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c PutOffAsk) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if !o.AskAt.IsZero() && o.AskAt.Equal(c.Asked) && !o.AskAt.After(now) {
		o.AskFailures++
		pause := pauseAfter(o.AskFailures)
		if end := o.AskedUntil(); pause == refundPauseMax && !end.IsZero() {
			pause = max(pause, min(now.Sub(end)/askPause, askPauseMax))
		}
		o.AskAt, r.Changed = now.Add(pause), true
	}
	return Result{order: new(*o)}, nil
}

// AskedUntil returns the end of the checkout or of the paid period of the subscription, about which a sweep asks; zero:
// not known.
func (o *Order) AskedUntil() time.Time {
	if o.Subscribed() {
		return o.PaidEnd
	}
	return o.CheckoutEnds
}

// CheckoutOpen reports whether the provider must be asked about the order's latest attempt: the attempt has no checkout
// yet, or its checkout is not over.
func (o *Order) CheckoutOpen() bool { return !o.AskAt.IsZero() && !o.Subscribed() }

// askSoon makes a sweep ask the provider at once about a checkout that is not over.
func (o *Order) askSoon(now time.Time) {
	if o.CheckoutOpen() {
		o.AskAt = now
	}
}

// checkoutDue returns when a sweep asks the provider about the order's checkout, subscription or disputes.
func (o *Order) checkoutDue() Due {
	switch {
	case o.AskAt.IsZero():
		return o.disputesDue()
	case o.Subscribed() && o.Provider == ProviderSandbox:
		return Due{Kind: DueSandbox, At: o.AskAt}.or(o.disputesDue())
	}
	return Due{Kind: DueCheckout, At: o.AskAt}.or(o.disputesDue())
}
