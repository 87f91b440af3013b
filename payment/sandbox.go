package payment

import (
	"context"

	"licet/licensing"
)

// Sandbox is the provider of test mode. Pay succeeds at once, and no money moves.
type Sandbox struct{}

// Begin completes the payment at once.
func (Sandbox) Begin(_ context.Context, order licensing.Order) (Step, error) {
	return Step{Payment: "sandbox_" + order.OrderNo}, nil
}

// Refund is a no-op, because no money has moved.
func (Sandbox) Refund(context.Context, licensing.Order) error { return nil }
