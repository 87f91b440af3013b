package licensing

import (
	"slices"
	"strings"
	"time"
)

// ChangeKind is what a shop changes about a subscription.
type ChangeKind string

// The kinds of changes.
const (
	ChangeEndNow ChangeKind = "end_now" // the subscription ends; see Order.EndDue, which stores it
	ChangeEnd    ChangeKind = "end"     // the subscription ends with its period
	ChangeResume ChangeKind = "resume"  // a subscription that would end with its period renews
	ChangePlan   ChangeKind = "plan"    // the subscription pays for another product, amount or number of devices
)

// SubscriptionChange is a change of a subscription that the payment provider must make. The zero value is no change.
// The other fields are of a change of the plan.
type SubscriptionChange struct {
	Kind   ChangeKind
	Number string // the provider makes the change once for each number; empty: an older build has stored the request
	Later  bool   // the change takes effect with the next period; otherwise at once
	Plan   *Plan  // never changed in place
}

// Plan is what a subscription pays for.
type Plan struct {
	ProductID  string
	Amount     int64 // of each invoice, in the minor unit of the order's currency
	SetMaximum bool  // whether MaxDevices replaces what the product has, or what the license has of the same product
	MaxDevices int   // 0: unlimited
	Terms      Terms // of the product when the shop requested the change
	// From is the beginning of the first period that the plan is for; zero: the plan is for the present period.
	From time.Time
}

const changePrefix = "chg_"

// ChangeNumber returns the number of a change with a ULID.
func ChangeNumber(id string) string { return changePrefix + id }

// changeRetry is when a sweep makes a change that the node of the request has not made.
const changeRetry = time.Minute

// Pays returns the product and the amount of the present period. Both are those of the order until a change of its
// subscription takes effect.
func (o *Order) Pays() (productID string, amount int64) {
	if o.Plan != nil {
		return o.Plan.ProductID, o.Plan.Amount
	}
	return o.ProductID, o.Amount
}

// ProductOf returns the product that an invoice of the subscription pays for. start is the beginning of the invoice's
// period; zero: the invoice is for the difference of a change.
func (o *Order) ProductOf(start time.Time) string {
	productID, _ := o.Pays()
	switch {
	case start.IsZero() && o.Change.Kind == ChangePlan && !o.Change.Later:
		return o.Change.Plan.ProductID // the provider has made the change, and that is not recorded yet
	case o.plannedBy(start):
		return o.Next.ProductID
	}
	return productID
}

// applyPlan makes a plan the plan of the present period.
func (o *Order) applyPlan(plan *Plan) {
	o.Plan, o.Next = &Plan{ProductID: plan.ProductID, Amount: plan.Amount}, nil
	if plan.ProductID == o.ProductID && plan.Amount == o.Amount {
		o.Plan = nil
	}
}

// schedulePlan makes a plan the plan of a later period. A plan that equals the plan of the present period drops the
// scheduled plan instead.
func (o *Order) schedulePlan(plan *Plan, from time.Time) {
	o.Next = new(*plan)
	o.Next.From = from
	if product, amount := o.Pays(); plan.ProductID == product && plan.Amount == amount && !plan.SetMaximum {
		o.Next = nil
	}
}

// ChangeSubscription stores the shop's request to change the subscription of an order. The node of the request asks the
// payment provider for the change, or else a sweep does, and NoteSubscription records the answer. So the change is made
// whatever dies meanwhile. To end a subscription that has ended, or that is being ended, is a no-op.
//
// No later request replaces an open change, as the request to the provider may still be under way: if it arrived after
// the later one, it would undo that. So the open change must be completed first, under its number. The same change
// again is a no-op.
type ChangeSubscription struct{ Change SubscriptionChange }

// DeviceID is empty: no device is touched.
func (ChangeSubscription) DeviceID() string { return "" }

func (ChangeSubscription) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c ChangeSubscription) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	over := o.EndDue || o.SubscriptionStatus == SubscriptionCanceled
	switch kind := c.Change.Kind; {
	case !o.Subscribed():
		return Result{}, ErrNotSubscribed
	case over && (kind == ChangeEndNow || kind == ChangeEnd):
		return Result{order: new(*o)}, nil
	case over:
		return Result{}, ErrSubscriptionOver
	case kind == ChangeEndNow:
		o.endSubscription(now)
	case o.Change.Kind != "" && o.Change.repeatedBy(c.Change):
		return Result{order: new(*o)}, nil
	case o.Change.Kind != "":
		return Result{}, ErrPlanChanging
	case kind == ChangePlan && !c.Change.Later && o.renewsForOther():
		return Result{}, ErrPlanned
	default:
		o.Change, o.AskAt = c.Change, now.Add(changeRetry)
	}
	o.Answers++ // an answer to an earlier question does not know the change
	r.Changed = true
	return Result{order: new(*o)}, nil
}

// repeatedBy reports whether a request is for the same change.
func (c SubscriptionChange) repeatedBy(request SubscriptionChange) bool {
	if c.Kind != ChangePlan || request.Kind != ChangePlan || c.Later != request.Later {
		return c.Kind == request.Kind && c.Kind != ChangePlan
	}
	open, asked := *c.Plan, *request.Plan
	open.Terms, asked.Terms = Terms{}, Terms{}
	return open == asked
}

// renewsForOther reports whether the subscription renews for another amount than the present period was paid with. The
// provider would count the difference of a change from that amount.
func (o *Order) renewsForOther() bool {
	_, amount := o.Pays()
	return o.Next != nil && o.Next.Amount != amount
}

// OrderSubscription contains the facts of the subscription of an order.
type OrderSubscription struct {
	Subscription string // the provider's id of the order's subscription; empty: there is none yet
	Interval     Period // of the invoices of a subscription; zero: the order is paid once
	BillingGrace Period // see Billing.Grace
	// SubscriptionStatus and CancelAt are what the provider has answered. Answers counts the answers. PaidEnd is the
	// end of the period that is paid for.
	SubscriptionStatus SubscriptionStatus
	CancelAt           time.Time
	Answers            int
	PaidEnd            time.Time
	EndDue             bool               // a sweep must end the subscription at the provider
	Change             SubscriptionChange // that the provider must make; see ChangeSubscription
	RefusedChanges     string             // the numbers of the latest changes that the provider has refused
	// Plan is what the subscription pays for in the present period; nil: as the order was sold. Next is a planned
	// change; nil: there is none. Both are never changed in place.
	Plan, Next *Plan
}

// Subscribed reports whether the order has a subscription.
func (s *OrderSubscription) Subscribed() bool { return s.Subscription != "" }

// Renews reports whether the order has a subscription that has not ended.
func (s *OrderSubscription) Renews() bool {
	return s.Subscribed() && s.SubscriptionStatus != SubscriptionCanceled
}

// Ends reports whether EndSubscription changes the order.
func (s *OrderSubscription) Ends() bool { return s.Renews() && !s.EndDue }

// PaidUntil returns when a license ends that is paid for until the end of a period: with the grace of billing after
// that. The zero time stays.
func (s *OrderSubscription) PaidUntil(end time.Time) time.Time {
	if end.IsZero() {
		return time.Time{}
	}
	if until := s.BillingGrace.AddTo(end); until.Year() <= lastYear {
		return until
	}
	return time.Date(lastYear, 12, 31, 23, 59, 59, 0, time.UTC)
}

// ChangeDue reports whether the payment provider must change or end the subscription.
func (s *OrderSubscription) ChangeDue() bool { return s.EndDue || s.Change.Kind != "" }

// plannedBy reports whether the planned change takes effect with a period that begins at start.
func (s *OrderSubscription) plannedBy(start time.Time) bool {
	return s.Next != nil && !start.IsZero() && !start.Before(s.Next.From)
}

// maxRefusedChanges bounds the numbers of refused changes that an order keeps.
const maxRefusedChanges = 8

// refuse keeps the number of a change that the provider has refused, so that a repeated request gets the refusal again.
func (s *OrderSubscription) refuse(number string) {
	if number == "" {
		return
	}
	list := append(strings.Fields(s.RefusedChanges), number)
	s.RefusedChanges = strings.Join(list[max(len(list)-maxRefusedChanges, 0):], " ")
}

// RefusedChange reports whether the payment provider has refused the change with a number.
func (s *OrderSubscription) RefusedChange(number string) bool {
	return slices.Contains(strings.Fields(s.RefusedChanges), number)
}
