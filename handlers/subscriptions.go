package handlers

import (
	"context"

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
func (c *checks) effect(field string, in text) {
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
