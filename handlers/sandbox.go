package handlers

import (
	"context"
	"slices"
	"strings"

	"licet/payment"
)

// paySandbox pays an order of test mode without a buyer.
func (s orderRoutes) paySandbox(ctx context.Context, c *call, in orderPath) (order, error) {
	return s.play(ctx, c, in, payment.PlayPay)
}

// sandboxPlay plays something about an order of test mode.
type sandboxPlay struct {
	orderPath
	Action text `json:"action"`
}

func (in *sandboxPlay) check(c *checks) {
	names := payment.PlayNames()
	switch {
	case c.describe("action", Limits{Required: true, Enum: names}):
	case !in.Action.given:
		c.add("action", problemRequired)
	case !slices.Contains(names, in.Action.value):
		c.add("action", "must be one of "+strings.Join(names, ", "))
	}
}

// playInSandbox plays what a buyer or a bank does about an order of test mode.
func (s orderRoutes) playInSandbox(ctx context.Context, c *call, in sandboxPlay) (order, error) {
	return s.play(ctx, c, in.orderPath, payment.Play(in.Action.value))
}

func (s orderRoutes) play(ctx context.Context, c *call, in orderPath, play payment.Play) (order, error) {
	o, err := s.cfg.Node.Order(ctx, c.owner(), in.OrderNo.value)
	if err != nil {
		return order{}, err
	}
	o, err = s.cfg.Desk.Play(ctx, o, play)
	return s.changedOrder(ctx, c, &o, false, err)
}
