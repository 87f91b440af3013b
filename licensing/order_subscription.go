package licensing

import (
	"slices"
	"strings"
	"time"
)

// OrderSubscription holds the facts of the subscription of an order.
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
