package licensing

import "time"

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
