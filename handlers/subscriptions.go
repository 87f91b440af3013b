package handlers

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"licet/licensing"
	"licet/node/service"
)

// When a subscription ends.
const (
	endsNow       = "now"
	endsAtPeriods = "period_end"
)

// subscriptionEnd asks to end the subscription of an order.
type subscriptionEnd struct {
	orderPath
	At             text `json:"at"`
	optionalBody   `json:"-"`
	idempotencyKey `json:"-"`
}

func (in *subscriptionEnd) check(c *checks) { c.effect("at", in.At) }

// effect checks when a change of a subscription takes effect.
func (c *rules) effect(field string, in text) {
	switch {
	case c.describe(field, Limits{Enum: []string{endsNow, endsAtPeriods}}) || !in.given:
	case in.value != endsNow && in.value != endsAtPeriods:
		c.add(field, "must be "+endsNow+" or "+endsAtPeriods)
	}
}

// cancelSubscription ends the subscription of an order, with its period or now.
func (s orderRoutes) cancelSubscription(ctx context.Context, c *call, in subscriptionEnd) (order, error) {
	kind := licensing.ChangeEnd
	if in.At.value == endsNow {
		kind = licensing.ChangeEndNow
	}
	return s.changeSubscription(ctx, c, in.orderPath, licensing.SubscriptionChange{Kind: kind}, in.idempotencyKey)
}

// subscriptionResumption asks to cancel the planned end of the subscription of an order.
type subscriptionResumption struct {
	orderPath
	optionalBody   `json:"-"`
	idempotencyKey `json:"-"`
}

// resumeSubscription cancels the planned end of a subscription.
func (s orderRoutes) resumeSubscription(ctx context.Context, c *call, in subscriptionResumption) (order, error) {
	change := licensing.SubscriptionChange{Kind: licensing.ChangeResume}
	return s.changeSubscription(ctx, c, in.orderPath, change, in.idempotencyKey)
}

func (s orderRoutes) changeSubscription(
	ctx context.Context, c *call, in orderPath, change licensing.SubscriptionChange, key idempotencyKey,
) (order, error) {
	o, replayed, err := s.cfg.Desk.ChangeSubscription(ctx, c.owner(), in.OrderNo.value,
		licensing.ChangeSubscription{Change: change}, key.once)
	return s.changedOrder(ctx, c, &o, replayed, err)
}

// planChange asks to change what the subscription of an order pays for.
type planChange struct {
	orderPath
	ProductID      text    `json:"product_id"`
	Amount         integer `json:"amount"`
	MaxDevices     integer `json:"max_devices"`
	At             text    `json:"at"`
	idempotencyKey `json:"-"`
}

func (in *planChange) check(c *checks) {
	c.otherProductID("product_id", in.ProductID)
	c.integer("amount", in.Amount, true, 1, licensing.MaxAmount)
	c.integer("max_devices", in.MaxDevices, false, 0, maxMaxDevices)
	c.effect("at", in.At)
}

// changePlan changes what the subscription of an order pays for.
func (s orderRoutes) changePlan(ctx context.Context, c *call, in planChange) (order, error) {
	plan := service.NewPlan{
		ProductID: in.ProductID.value, Amount: int64(in.Amount.value), Later: in.At.value != endsNow,
	}
	if in.MaxDevices.given {
		plan.MaxDevices = new(int(in.MaxDevices.value))
	}
	o, replayed, err := s.cfg.Desk.ChangePlan(ctx, c.owner(), in.OrderNo.value, plan, in.once)
	return s.changedOrder(ctx, c, &o, replayed, err)
}

// portal leads to a page of the payment provider.
type portal struct {
	URL string `json:"url"`
}

// openPortal makes a link to the page where the buyer changes the card of a subscription.
func (s orderRoutes) openPortal(ctx context.Context, c *call, in orderPath) (portal, error) {
	url, err := s.cfg.Desk.Portal(ctx, c.owner(), in.OrderNo.value)
	return portal{url}, err
}

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
func (c *rules) billing(field string, in object) (terms licensing.Billing) {
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
