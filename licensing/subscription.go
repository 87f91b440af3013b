package licensing

import "time"

// An order for a product with billing starts a subscription at the payment provider. The order contains what the latest
// answer of the provider said about the subscription. Each invoice that the buyer has paid is a record of its own, and
// extends the license once. The payment of the order is the first invoice.
//
// The answers about a subscription can go back: a subscription that is past due becomes active again. So the order
// counts the answers, and NoteSubscription carries the count that was read before the question: an older answer never
// replaces a newer answer. Invoices need no count: each has its record, and the paid end only moves forward.

// Billing is how a product is paid again and again.
type Billing struct {
	Interval Period // zero: the product is paid once
	// Grace is the time between the end of the paid period and the end of the license. The provider charges the buyer
	// in this time, and so the license does not expire before the next payment arrives.
	Grace Period
}

// Recurs reports whether orders of the product start a subscription.
func (b Billing) Recurs() bool { return !b.Interval.IsZero() }

// DefaultBillingGrace is the grace of billing without a description. Stripe charges about an hour after a period ends,
// and tries again in the following days.
var DefaultBillingGrace = Period{Days: 3}

// SubscriptionStatus is the state of a subscription.
type SubscriptionStatus string

// The states of subscriptions.
const (
	SubscriptionActive   SubscriptionStatus = "active"
	SubscriptionPastDue  SubscriptionStatus = "past_due" // the payment of an invoice has failed
	SubscriptionCanceled SubscriptionStatus = "canceled" // it has ended
)

// SubscriptionStatuses lists the states of subscriptions.
func SubscriptionStatuses() []SubscriptionStatus {
	return []SubscriptionStatus{SubscriptionActive, SubscriptionPastDue, SubscriptionCanceled}
}

// When a sweep asks the provider about a subscription.
const (
	subscriptionBeginAsk = time.Minute      // after the payment is recorded
	subscriptionEarlyAsk = time.Hour        // before the paid period ends: the buyer of a revoked license pays no more
	subscriptionFirstAsk = 10 * time.Minute // after the paid period has ended
	subscriptionNextAsk  = time.Hour        // after the latest answer, if that has moved nothing
)

// beginPaidTime stores which period the payment of an order pays for, and the subscription that it starts. A provider
// without subscriptions has taken the payment of one interval.
func (o *Order) beginPaidTime(subscription string, paidEnd, now time.Time) {
	if o.Interval.IsZero() {
		return
	}
	if o.PaidEnd = paidEnd; paidEnd.IsZero() {
		o.PaidEnd = o.Interval.AddTo(now)
	}
	if subscription != "" {
		o.Subscription, o.SubscriptionStatus = subscription, SubscriptionActive
		o.planAsk(now)
		// Callbacks about the subscription that came before its payment was recorded have changed nothing.
		if ask := now.Add(subscriptionBeginAsk); o.Provider != ProviderSandbox && ask.Before(o.AskAt) {
			o.AskAt = ask
		}
	}
}

// endSubscription makes a sweep end the subscription at the provider, at once: no more is to be paid. It raises the
// count of answers: the answer to an earlier question must not put off the end.
func (o *Order) endSubscription(now time.Time) {
	if o.Renews() {
		o.EndDue, o.AskAt = true, now
		o.Answers++
	}
}

// planAsk plans the next question of a sweep about the subscription, after an answer.
func (o *Order) planAsk(now time.Time) {
	o.AskFailures = 0
	first, knows := o.PaidEnd.Add(subscriptionFirstAsk), o.SubscriptionStatus == SubscriptionActive
	if o.Provider == ProviderSandbox { // which renews or ends the subscription at a time that the order knows
		if first = o.PaidEnd; !knows {
			first, knows = o.Interval.AddTo(first), true
		}
	} else if early := o.PaidEnd.Add(-subscriptionEarlyAsk); early.After(now) {
		first = early
	}
	switch {
	case o.SubscriptionStatus == SubscriptionCanceled:
		o.AskAt = time.Time{}
	case !o.ChangeDue() && knows && first.After(now):
		o.AskAt = first
	case o.PaidEnd.IsZero():
		o.AskAt = now.Add(subscriptionNextAsk)
	default:
		o.AskAt = now.Add(max(subscriptionNextAsk, now.Sub(o.PaidEnd)/askPause))
	}
}

// NoteSubscription records what the payment provider has answered about the subscription of an order. It is a no-op if
// another answer was recorded since After was read, or if the order has no subscription: then Result.Created is false,
// and the caller must ask again.
type NoteSubscription struct {
	After       int                // how many answers the order had before the provider was asked
	Status      SubscriptionStatus // empty: the provider could not be asked, and a sweep asks later
	CancelAt    time.Time          // when the subscription ends; zero: it renews
	ChangeEnded bool               // the provider has made or refused the change that was open before
	Refused     bool               // the provider has refused that change
	// Made reports that the provider has made the open change of the plan. Then the same transaction must give the
	// license Result.Plan; see ExtendLicense.
	Made bool
	From time.Time // the beginning of the first period with the change, if the change is for the next period
}

// DeviceID is empty: no device is touched.
func (NoteSubscription) DeviceID() string { return "" }

func (NoteSubscription) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c NoteSubscription) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if !o.Subscribed() || o.Answers != c.After {
		return Result{order: new(*o)}, nil
	}
	before := *o
	var applied *Plan
	o.Answers++
	if c.Status != "" {
		o.SubscriptionStatus, o.CancelAt = c.Status, c.CancelAt
		o.EndDue = o.EndDue && c.Status != SubscriptionCanceled
		switch made := c.ChangeEnded && c.Made && o.Change.Kind == ChangePlan; {
		case made && o.Change.Later:
			o.schedulePlan(o.Change.Plan, c.From)
		case made:
			applied = o.Change.Plan
			o.applyPlan(applied)
		}
		if c.ChangeEnded || c.Status == SubscriptionCanceled {
			if c.Refused {
				o.refuse(o.Change.Number)
			}
			o.Change = SubscriptionChange{}
		}
		if c.Status == SubscriptionCanceled {
			o.Next = nil
		}
	}
	o.planAsk(now)
	r.Changed = true
	switch {
	case before.SubscriptionStatus != SubscriptionPastDue && o.SubscriptionStatus == SubscriptionPastDue:
		r.recordOrder(EventOrderPaymentFailed, Provider, now)
	case before.SubscriptionStatus != o.SubscriptionStatus || !before.CancelAt.Equal(o.CancelAt) ||
		before.Plan != o.Plan || before.Next != o.Next:
		r.recordOrder(EventOrderSubscriptionChanged, Provider, now)
	}
	return Result{order: new(*o), Created: true, Plan: applied}, nil
}

// EndSubscription makes a sweep end the subscription of an order whose license is revoked. It is a no-op for an order
// without a subscription, and for a subscription that has ended or is to end.
type EndSubscription struct{}

// DeviceID is empty: no device is touched.
func (EndSubscription) DeviceID() string { return "" }

func (EndSubscription) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (EndSubscription) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if r.Changed = o.Ends(); r.Changed {
		o.endSubscription(now)
	}
	return Result{order: new(*o)}, nil
}

// AddInvoice creates the record of a paid invoice of a subscription. It is a no-op if the record exists; otherwise
// Result.Created is true, and the same transaction must count the invoice in its order (CountInvoice) and extend the
// license (ExtendLicense).
type AddInvoice struct{ Invoice Payment }

// DeviceID is empty: no device is touched.
func (AddInvoice) DeviceID() string { return "" }

func (AddInvoice) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c AddInvoice) apply(r *Record, now time.Time) (Result, error) {
	return r.addFurther(c.Invoice, KindOfInvoice, now), nil
}

// CountInvoice adds a new paid invoice to its order, and moves the end of the paid period forward. With the first
// invoice of a period that a change was planned for, the change takes effect: then the same transaction must give the
// license Result.Plan. Result.Created is New.
type CountInvoice struct {
	New     bool // as AddInvoice has returned it: otherwise CountInvoice is a no-op
	Invoice Payment
	// Planned is the product of the planned change as it is now; nil: it does not exist any more.
	Planned *Product
}

// DeviceID is empty: no device is touched.
func (CountInvoice) DeviceID() string { return "" }

func (CountInvoice) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c CountInvoice) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	var applied *Plan
	if c.New {
		if o.plannedBy(c.Invoice.PeriodStart) {
			applied = new(*o.Next)
			if p := c.Planned; p != nil && p.ID == applied.ProductID {
				applied.Terms = p.Terms
			}
			o.applyPlan(applied)
		}
		o.countFurther(&c.Invoice)
		if c.Invoice.PeriodEnd.After(o.PaidEnd) {
			o.PaidEnd = c.Invoice.PeriodEnd
			if !o.EndDue {
				o.planAsk(now)
			}
		}
		r.recordOrder(EventOrderPaymentSucceeded, Provider, now)
		if applied != nil {
			r.recordOrder(EventOrderSubscriptionChanged, Provider, now)
		}
	}
	return Result{order: new(*o), Created: c.New, Plan: applied}, nil
}

// ExtendLicense moves the end of a license to a later time, and gives the license what its subscription pays for. The
// end of a license that ends later or never ends stays. ExtendLicense is a no-op for a license that is revoked.
type ExtendLicense struct {
	End  time.Time // zero: the end stays
	Plan *Plan     // nil: the subscription pays for the same as before
}

// DeviceID is empty: no device is touched.
func (ExtendLicense) DeviceID() string { return "" }

func (ExtendLicense) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c ExtendLicense) apply(r *Record, now time.Time) (Result, error) {
	l := r.License
	if l == nil || !l.RevokedAt.IsZero() {
		return Result{}, nil
	}
	if c.Plan != nil && r.applyPlan(c.Plan, now) {
		r.recordLicense(l, EventLicenseUpdated, Provider, now, nil)
	}
	if !l.ExpiresAt.IsZero() && c.End.After(l.ExpiresAt) {
		l.extendTo(c.End, now)
		r.recordLicense(l, EventLicenseRenewed, Provider, now, nil)
	}
	return Result{License: *l}, nil
}

// applyPlan gives the record's license what its subscription pays for. No device is removed. It reports whether the
// license has changed.
func (r *Record) applyPlan(plan *Plan, now time.Time) bool {
	l, before := r.License, *r.License
	if l.ProductID != plan.ProductID {
		l.ProductID, l.UpgradedAt, l.Grace = plan.ProductID, now, plan.Terms.Grace
		r.takeTerms(plan.Terms)
	}
	if plan.SetMaximum {
		l.limitDevices(plan.MaxDevices)
	}
	return *l != before
}
