package payment

import (
	"context"

	"licet/licensing"
)

// Sandbox is the provider of test mode. Pay succeeds at once, and no money moves.
type Sandbox struct{}

// Name implements Provider.
func (Sandbox) Name() licensing.PaymentProvider { return licensing.ProviderSandbox }

// Accepts accepts every order.
func (Sandbox) Accepts(licensing.Order) error { return nil }

// SuspendOnDispute is false: nobody disputes a payment of the sandbox.
func (Sandbox) SuspendOnDispute() bool { return false }

// Begin completes the payment at once.
func (Sandbox) Begin(_ context.Context, order licensing.Order) (Step, error) {
	return Step{Payment: "sandbox_" + order.OrderNo}, nil
}

// Look knows no object: the sandbox keeps no records.
func (Sandbox) Look(context.Context, Object) (State, error) { return State{}, ErrUnknownObject }

// End is a no-op, because there are no checkouts.
func (Sandbox) End(context.Context, licensing.Order) error { return nil }

// Refund completes the refund at once. It is a no-op, because no money has moved.
func (Sandbox) Refund(_ context.Context, order licensing.Order, refund licensing.Payment) (State, error) {
	return State{
		Object: Object{Kind: ObjectRefund, ID: "sandbox_" + refund.Reference}, OrderNo: order.OrderNo,
		Refund: refund.Reference, Payment: order.Payment, Outcome: OutcomeDone, Amount: refund.Amount,
		Currency: refund.Currency,
	}, nil
}

// Change refuses every change: the sandbox has no subscriptions.
func (Sandbox) Change(context.Context, licensing.Order, Change) (State, error) {
	return State{}, ErrRefused
}

// Portal refuses: the sandbox has no subscriptions.
func (Sandbox) Portal(context.Context, licensing.Order) (string, error) { return "", ErrRefused }

// Signed is false: the sandbox sends no callbacks.
func (Sandbox) Signed(string) bool { return false }

// Callback refuses every callback.
func (Sandbox) Callback(string, []byte) (Object, error) { return Object{}, ErrSignature }
