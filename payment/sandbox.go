package payment

import (
	"context"

	"licet/licensing"
)

// Sandbox is the provider of test mode: pressing Pay is paying, and no money
// moves.
type Sandbox struct{}

// Begin settles the payment at once.
func (Sandbox) Begin(_ context.Context, order licensing.Order) (Step, error) {
	return Step{Payment: "sandbox_" + order.OrderNo}, nil
}

// Refund has nothing to send back: no money moved.
func (Sandbox) Refund(context.Context, licensing.Order) error { return nil }
