package handlers

import (
	"time"

	"github.com/go-json-experiment/json"

	"licet/licensing"
)

// billing says how a product is paid again and again, in requests and in responses.
type billing struct {
	Interval string `json:"interval"`
	Grace    string `json:"grace"`
}

// billingAnswer shows the billing of a product; nil: the product is paid once.
func billingAnswer(b licensing.Billing) *billing {
	if !b.Recurs() {
		return nil
	}
	answer := &billing{b.Interval.String(), b.Grace.String()}
	if b.Grace.IsZero() {
		answer.Grace = noGrace
	}
	return answer
}

// noGrace is the grace of billing without a grace.
const noGrace = "PT0S"

// maxBillingMonths is the longest interval, which is Stripe's: three years.
const maxBillingMonths = 36

// shortInterval reports whether an interval is too short even for the sandbox.
func shortInterval(p licensing.Period) bool {
	return p.Clock < minBillingClock && p.Years+p.Months+p.Days == 0
}

// minBillingClock is the shortest interval, which is the sandbox's.
const minBillingClock = 10 * time.Second

// billing checks how a product is paid; an empty object: it is paid once.
func (c *checks) billing(field string, in object) (terms licensing.Billing) {
	if c.describe(field, Limits{MaxProperties: 2}) || !in.given || in.value == "{}" {
		return terms
	}
	var sent billing
	if err := json.Unmarshal([]byte(in.value), &sent, json.RejectUnknownMembers(true)); err != nil {
		c.add(field, "must have no other members than interval and grace, both strings")
		return terms
	}
	var ok bool
	if terms.Interval, ok = licensing.ParsePeriod(sent.Interval); !ok || shortInterval(terms.Interval) ||
		terms.Interval.Years*12+terms.Interval.Months > maxBillingMonths {
		c.add(field, "must have an ISO 8601 duration from PT10S to 3 years as interval, such as P1M or P1Y")
	}
	switch sent.Grace {
	case "":
		terms.Grace = licensing.DefaultBillingGrace
	case noGrace:
	default:
		if terms.Grace, ok = licensing.ParsePeriod(sent.Grace); !ok || licensing.GraceProblem(terms.Grace) != "" {
			c.add(field, "must have an ISO 8601 duration of at most a year as grace, such as P3D")
		}
	}
	return terms
}

// subscription is the subscription of an order.
type subscription struct {
	Status    licensing.SubscriptionStatus `json:"status"`
	PeriodEnd timestamp                    `json:"current_period_end"`
	CancelAt  timestamp                    `json:"cancel_at"`
	ProductID string                       `json:"product_id"`
	Amount    int64                        `json:"amount"`
	Planned   *plannedChange               `json:"planned_change,omitempty"`
}

// plannedChange is a change of a subscription that takes effect with its next period.
type plannedChange struct {
	ProductID  string    `json:"product_id"`
	Amount     int64     `json:"amount"`
	MaxDevices *int      `json:"max_devices"`
	From       timestamp `json:"from"`
}

// subscriptionAnswer shows the subscription of an order; nil: it has none.
func subscriptionAnswer(o *licensing.Order) *subscription {
	if o.SubscriptionStatus == "" {
		return nil
	}
	answer := &subscription{
		Status: o.SubscriptionStatus, PeriodEnd: timestamp(o.PaidEnd), CancelAt: timestamp(o.CancelAt),
	}
	answer.ProductID, answer.Amount = o.Pays()
	if next := o.Next; next != nil {
		answer.Planned = &plannedChange{ProductID: next.ProductID, Amount: next.Amount, From: timestamp(next.From)}
		if next.SetMaximum {
			answer.Planned.MaxDevices = &next.MaxDevices
		}
	}
	return answer
}
