package payment

import (
	"context"
	"errors"
	"fmt"

	"licet/internal/fair"
	"licet/licensing"
	"licet/node/service"
)

// Desk takes and refunds payments of orders. Make it with [NewDesk]. It is safe for concurrent use.
type Desk struct {
	node      *service.Service
	providers Providers
	// The turns of callers who ask about the same object: of Check by the number of the order, and of others by the
	// number of the order or the id of the dispute. Fairly bounds how many ask at the same time.
	checks, asks *fair.Places[string]
}

// NewDesk returns a desk for the orders of a node. Orders of an owner without a provider can't be paid.
func NewDesk(n *service.Service, providers Providers) *Desk {
	return &Desk{
		node: n, providers: providers, checks: fair.NewTurns[string](), asks: fair.NewTurns[string](),
	}
}

// Pay pays an order, when the customer presses Pay. It returns the order after the payment, or the URL of the
// provider where the customer must pay. Pay does not charge again for an order that is paid or refunded. If a
// refund is due that no node has tried recently, Pay tries the refund.
func (d *Desk) Pay(ctx context.Context, order licensing.Order) (paid licensing.Order, redirect string, err error) {
	if order.RefundDue {
		paid, err = d.sendRefund(ctx, order, true)
		return paid, "", err
	}
	if !order.PaidAt.IsZero() {
		return order, "", nil
	}
	if order.Provider == licensing.ProviderOutside {
		return licensing.Order{}, "", licensing.ErrPaidOutside
	}
	provider := d.providers.Of(order.Owner)
	if provider == nil {
		return licensing.Order{}, "", licensing.ErrPaymentNotConfigured
	}
	if err := d.node.RefuseLicenses(ctx, &order); err != nil {
		return licensing.Order{}, "", err
	}
	if provider.Name() == licensing.ProviderSandbox { // which completes every payment at once
		paid, err = d.settleInSandbox(ctx, order, licensing.SandboxPaid)
		if !errors.Is(err, licensing.ErrNothingPending) {
			return paid, "", err
		}
		paid, _, _, err = d.beginCheckout(ctx, provider, order)
		return paid, "", err
	}
	return d.checkout(ctx, provider, order)
}

// Confirm marks an order as paid when the provider reports the payment. The provider and its reference of the payment
// must be set. Repeated reports pay the order once. Confirm refunds a payment for a canceled order before it returns.
// If that fails, the order keeps the refund as due, and the provider's next report or a pass of SendRefundsDue tries
// again.
func (d *Desk) Confirm(
	ctx context.Context, order licensing.Order, payment licensing.Payment,
) (licensing.Order, error) {
	result, err := d.node.PayOrder(ctx, order, payment)
	if err != nil || !result.RefundDue {
		return result.Order(), err
	}
	return d.sendRefund(ctx, result.Order(), false)
}

// Cancel cancels an order at the customer's request.
func (d *Desk) Cancel(ctx context.Context, order licensing.Order) (licensing.Order, error) {
	result, err := d.node.CancelOrder(ctx, order)
	d.Canceled(ctx, result.Order())
	return result.Order(), err
}

// Canceled ends the open checkout of a canceled order. If that fails, a sweep tries again.
func (d *Desk) Canceled(ctx context.Context, order licensing.Order) {
	if provider := d.checkoutProvider(order); provider != nil {
		_ = d.endCheckout(ctx, provider, order)
	}
}

// providerFailed returns the error for a client when the provider has failed with err. An error of the service itself
// stays as it is.
func providerFailed(err error) error {
	if errors.As(err, new(*licensing.Error)) {
		return err
	}
	return fmt.Errorf("%w: %w", &licensing.Error{
		Reason:  licensing.ReasonProviderFailed,
		Message: "the payment provider failed; try again",
	}, err)
}
